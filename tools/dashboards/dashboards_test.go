package dashboards

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	graphs "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/dma-copy/dma-copy/tools/daemon"
)

const examples = "../../examples/grafana"

func TestExamples(t *testing.T) {
	served := scrape(t, daemon.Start(t).Get("/metrics"))
	var used []string
	for _, q := range append(queriesOfDashboard(t), queriesOfAlerts(t)...) {
		names, err := served.check(q)
		if err != nil {
			t.Errorf("%s: %v", q.name, err)
		}
		used = append(used, names...)
	}
	for name := range served {
		family := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		shown := func(name string) bool { return strings.HasPrefix(name, family) }
		if strings.HasPrefix(name, "dma_copy_") && !slices.ContainsFunc(used, shown) {
			t.Errorf("neither the dashboard nor an alert uses %s", name)
		}
	}
}

// Queries with one mistake each are refused.
func TestMistakes(t *testing.T) {
	served := scrape(t, `# TYPE dma_copy_bytes_total counter
dma_copy_bytes_total{direction="sent"} 1
`)
	for _, test := range []struct{ expression, legend, want string }{
		{"sum(dma_copy_bytes_total", "", "unclosed left parenthesis"},
		{"dma_copy_byte_total", "", "no metric dma_copy_byte_total"},
		{"sum by (directions) (dma_copy_bytes_total)", "", "no label directions"},
		{`dma_copy_bytes_total{way="sent"}`, "", "no label way"},
		{`dma_copy_bytes_total{direction="send"}`, "", `no direction "send"`},
		{"sum by (direction) (dma_copy_bytes_total)", "{{way}}", "no label way"},
		{"rate(dma_copy_bytes_total)", "", "expected type range vector"},
	} {
		_, err := served.check(query{test.expression, test.expression, test.legend})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.expression, err, test.want)
		}
	}
	right := query{"right", `sum by (instance) (dma_copy_bytes_total{direction="sent"})`, ""}
	if _, err := served.check(right); err != nil {
		t.Error(err)
	}
}

// metrics has the label values of each metric, by name of the label.
type metrics map[string]map[string][]string

// scrape parses the text of a daemon. A histogram has the names of its series.
func scrape(t *testing.T, text string) metrics {
	t.Helper()
	textParser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := textParser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	served := metrics{
		// What Prometheus adds.
		"up": {},
	}
	for name, family := range families {
		values := map[string][]string{}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				values[label.GetName()] = append(values[label.GetName()], label.GetValue())
			}
		}
		names := []string{name}
		if family.GetType().String() == "HISTOGRAM" {
			names = []string{name + "_bucket", name + "_sum", name + "_count"}
		}
		for _, name := range names {
			served[name] = values
		}
	}
	return served
}

// query is an expression of an example, with the labels that a text beside it has.
type query struct{ name, expression, legend string }

// check returns the metrics of a query. Each must be served, and have the labels that the query uses.
func (m metrics) check(q query) (names []string, err error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(withoutVariables.Replace(q.expression))
	if err != nil {
		return nil, err
	}
	known := []string{"instance", "job", "le"} // Prometheus adds the first two, and a histogram the last one
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is && err == nil {
			names = append(names, selector.Name)
			known, err = m.checkSelector(selector, known)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, label := range labelsOf(parsed, q.legend) {
		if !slices.Contains(known, label) {
			return nil, fmt.Errorf("no label %s in %s", label, q.expression)
		}
	}
	return names, nil
}

// checkSelector returns the known labels with those of the selected metric.
func (m metrics) checkSelector(selector *parser.VectorSelector, known []string) ([]string, error) {
	values, is := m[selector.Name]
	if !is {
		return nil, fmt.Errorf("no metric %s", selector.Name)
	}
	for label := range values {
		known = append(known, label)
	}
	for _, matcher := range selector.LabelMatchers {
		switch {
		case matcher.Name == labels.MetricName:
		case !slices.Contains(known, matcher.Name):
			return nil, fmt.Errorf("no label %s of %s", matcher.Name, selector.Name)
		case matcher.Name == "instance", matcher.Name == "job":
		case !slices.Contains(values[matcher.Name], matcher.Value):
			return nil, fmt.Errorf("no %s %q of %s", matcher.Name, matcher.Value, selector.Name)
		}
	}
	return known, nil
}

var legendLabel = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z]\w*)\s*\}\}`)

// labelsOf returns the labels by which a query groups and joins, and those of its legend.
func labelsOf(parsed parser.Expr, legend string) (names []string) {
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.AggregateExpr:
			names = append(names, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				names = append(names, node.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	for _, found := range legendLabel.FindAllStringSubmatch(legend, -1) {
		names = append(names, found[1])
	}
	return names
}

// withoutVariables replaces the variables of Grafana by values.
var withoutVariables = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".+")

// readDashboard reads a dashboard. Unknown fields, wrong types and missing fields are errors.
func readDashboard(text []byte) (board dashboard.Dashboard, err error) {
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterDataqueryVariant(graphs.VariantConfig())
	// The strict decoder finds what is wrong, but returns an empty list instead of nil, for which it drops the panels.
	err = new(dashboard.Dashboard).UnmarshalJSONStrict(text)
	if found, is := errors.AsType[cog.BuildErrors](err); is && len(found) == 0 {
		err = nil
	}
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	return board, err
}

// Dashboards with one mistake each are refused.
func TestMistakesInADashboard(t *testing.T) {
	text := string(readExample(t, "dma-copy.json"))
	for _, test := range []struct{ from, to, want string }{
		{`"legendFormat": "`, `"legendFormats": "`, `unexpected field 'legendFormats'`},
		{`"showHeader": true`, `"showHeader": "yes"`, "showHeader"},
		{`"gridPos": {`, `"gridPosition": {`, "unexpected field 'gridPosition'"},
		{`"schemaVersion": 39`, `"schemaVersion": "39"`, "schemaVersion"},
	} {
		if !strings.Contains(text, test.from) {
			t.Errorf("the dashboard has no %s", test.from)
		}
		_, err := readDashboard([]byte(strings.Replace(text, test.from, test.to, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.to, err, test.want)
		}
	}
}

func queriesOfDashboard(t *testing.T) (queries []query) {
	t.Helper()
	board, err := readDashboard(readExample(t, "dma-copy.json"))
	if err != nil {
		t.Fatal(err)
	}
	ids, places := map[uint32]bool{}, map[string]bool{}
	for _, each := range board.Panels {
		if each.Panel == nil {
			continue // a row
		}
		panel := *each.Panel
		if ids[*panel.Id] || places[fmt.Sprint(*panel.GridPos)] || *panel.Description == "" {
			t.Errorf("panel %s: its id or place is that of another one, or it has no description", *panel.Title)
		}
		ids[*panel.Id], places[fmt.Sprint(*panel.GridPos)] = true, true
		for _, target := range panel.Targets {
			asked, is := target.(*graphs.Dataquery)
			if !is {
				t.Fatalf("panel %s: a query is a %T", *panel.Title, target)
			}
			queries = append(queries, query{*panel.Title, asked.Expr, *asked.LegendFormat})
		}
	}
	if len(queries) < 20 {
		t.Fatalf("%d queries", len(queries))
	}
	return append(queries, variableQueries(t)...)
}

// variableQueries returns what the variables and annotations of the dashboard ask for.
func variableQueries(t *testing.T) (queries []query) {
	t.Helper()
	var board struct {
		Annotations struct {
			List []struct{ Name, Expr, TitleFormat string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(readExample(t, "dma-copy.json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, each := range board.Annotations.List {
		queries = append(queries, query{each.Name, each.Expr, each.TitleFormat})
	}
	for _, each := range board.Templating.List {
		if each.Definition == "" {
			continue
		}
		inside := strings.TrimSuffix(strings.TrimPrefix(each.Definition, "label_values("), ")")
		name, label, _ := strings.Cut(inside, ", ")
		queries = append(queries, query{each.Name, fmt.Sprintf("count by (%s) (%s)", label, name), ""})
	}
	return queries
}

// alerts is what a file of rules of Prometheus has that consists of alerts.
type alerts struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// queriesOfAlerts reads the alert rules strictly: an unknown field, a wrong type or a duplicate key is an error.
func queriesOfAlerts(t *testing.T) (queries []query) {
	t.Helper()
	var rules alerts
	if err := yaml.UnmarshalStrict(readExample(t, "alerts.yml"), &rules); err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if _, err := model.ParseDuration(cmp.Or(rule.For, "0s")); err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
			text := rule.Annotations["summary"] + rule.Annotations["description"]
			checkTemplate(t, rule.Alert, text)
			if len(rule.Annotations) != 2 || len(rule.Labels) != 1 || rule.Labels["severity"] == "" {
				t.Errorf("%s has not just a summary, a description and a severity", rule.Alert)
			}
			queries = append(queries, query{rule.Alert, rule.Expr, text})
		}
	}
	if len(queries) < 10 {
		t.Fatalf("%d alerts", len(queries))
	}
	return queries
}

// checkTemplate parses a text with the variables, and those functions of Prometheus that the alerts use.
func checkTemplate(t *testing.T, name, text string) {
	t.Helper()
	format := func(float64) string { return "" }
	functions := template.FuncMap{"humanizePercentage": format, "humanize1024": format}
	variables := "{{$labels := .}}{{$value := .}}"
	if _, err := template.New(name).Funcs(functions).Parse(variables + text); err != nil {
		t.Error(err)
	}
}

func readExample(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
