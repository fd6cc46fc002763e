package plot

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// Lines is a diagram of lines over a horizontal axis that is logarithmic to the base 2.
type Lines struct {
	Title, X, Y string
	// Logarithmic selects the vertical axis. Otherwise it is linear and starts at zero.
	Logarithmic bool

	ticks []tick
	lines []line
}

// tick is a labelled position on the horizontal axis.
type tick struct {
	value float64
	text  string
}

// line has the points of one series.
type line struct {
	name   string
	strong bool
	points []point
}

type point struct{ x, y float64 }

// Add adds a point to the line with that name. Of two points of a line at one place the higher one counts.
func (l *Lines) Add(name string, strong bool, x float64, tickText string, y float64) {
	at := slices.IndexFunc(l.lines, func(l line) bool { return l.name == name })
	if at < 0 {
		at, l.lines = len(l.lines), append(l.lines, line{name: name, strong: strong})
	}
	points := &l.lines[at].points
	if same := slices.IndexFunc(*points, func(p point) bool { return p.x == x }); same >= 0 {
		(*points)[same].y = max((*points)[same].y, y)
	} else {
		*points = append(*points, point{x, y})
	}
	if !slices.ContainsFunc(l.ticks, func(t tick) bool { return t.value == x }) {
		l.ticks = append(l.ticks, tick{x, tickText})
	}
}

// Empty reports whether there is nothing to draw.
func (l *Lines) Empty() bool { return len(l.lines) == 0 }

// The layout of lines, in pixels.
const (
	chartWidth   = 760
	chartHeight  = 380
	marginLeft   = 64
	marginTop    = 40
	marginBottom = 56
	labelWidth   = 190
	labelHeight  = 15
	plotWidth    = chartWidth - marginLeft - labelWidth
	plotHeight   = chartHeight - marginTop - marginBottom
)

// WriteLines draws charts one below the other.
func WriteLines(w io.Writer, title string, charts []Lines) error {
	page := linesPage{Title: title, Width: chartWidth, Height: chartHeight * len(charts)}
	for i, c := range charts {
		page.Charts = append(page.Charts, c.draw(i*chartHeight))
	}
	return linesTemplate().Execute(w, page)
}

// The data of the template of lines.
type (
	linesPage struct {
		Title         string
		Width, Height int
		Charts        []linesChart
	}
	linesChart struct {
		At                          int
		Title, X, Y                 string
		Left, Top, Right, Bottom    int
		MiddleX, MiddleY, NameBelow int
		Columns, Rows               []drawnTick
		Lines                       []drawnLine
	}
	drawnTick struct {
		At   string // pixels
		Text string
	}
	drawnLine struct {
		Name, Class, Points string
		Dots                []dot
		EndX, EndY          string // of the line
		LabelX, LabelY      string
	}
	dot struct{ X, Y string }
)

func (l *Lines) draw(at int) linesChart {
	slices.SortFunc(l.ticks, func(a, b tick) int { return cmp.Compare(a.value, b.value) })
	drawn := linesChart{
		At: at, Title: l.Title, X: l.X, Y: l.Y,
		Left: marginLeft, Top: marginTop, Right: marginLeft + plotWidth, Bottom: marginTop + plotHeight,
		MiddleX: marginLeft + plotWidth/2, MiddleY: marginTop + plotHeight/2, NameBelow: chartHeight - 14,
	}
	for _, t := range l.ticks {
		drawn.Columns = append(drawn.Columns, drawnTick{At: pixels(l.xPosition(t.value)), Text: t.text})
	}
	up := l.yAxis()
	for _, mark := range up.marks {
		drawn.Rows = append(drawn.Rows, drawnTick{At: pixels(up.position(mark)), Text: fmt.Sprintf("%.3g", mark)})
	}
	labels := l.labels(up)
	ours := 0
	// The strong lines are drawn last, and so lie above the others.
	for i, each := range l.lines {
		if !each.strong {
			drawn.Lines = append(drawn.Lines, l.drawLine(each, up, grey, labels[i]))
		}
	}
	for i, each := range l.lines {
		if each.strong {
			drawn.Lines = append(drawn.Lines, l.drawLine(each, up, strong(ours)+" thick", labels[i]))
			ours++
		}
	}
	return drawn
}

func (l *Lines) drawLine(drawn line, up axis, class string, label float64) drawnLine {
	slices.SortFunc(drawn.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	result := drawnLine{Name: drawn.name, Class: class, LabelY: pixels(label)}
	var points []string
	for _, p := range drawn.points {
		at := dot{X: pixels(l.xPosition(p.x)), Y: pixels(up.position(p.y))}
		result.Dots = append(result.Dots, at)
		points = append(points, at.X+","+at.Y)
		result.EndX, result.EndY = at.X, at.Y
	}
	result.Points = strings.Join(points, " ")
	result.LabelX = pixels(marginLeft + plotWidth + 6)
	return result
}

// labels returns the vertical positions of the names at the ends of the lines, which do not cover each other.
func (l *Lines) labels(up axis) []float64 {
	at, order := make([]float64, len(l.lines)), make([]int, len(l.lines))
	for i, each := range l.lines {
		last := slices.MaxFunc(each.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
		at[i], order[i] = up.position(last.y), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	for i := 1; i < len(order); i++ {
		at[order[i]] = max(at[order[i]], at[order[i-1]]+labelHeight)
	}
	lowest := float64(marginTop + plotHeight)
	for i := len(order) - 1; i >= 0; i-- {
		at[order[i]] = min(at[order[i]], lowest)
		lowest = at[order[i]] - labelHeight
	}
	return at
}

// xPosition returns a horizontal position, logarithmic from the first tick to the last.
func (l *Lines) xPosition(x float64) float64 {
	first, last := math.Log2(l.ticks[0].value), math.Log2(l.ticks[len(l.ticks)-1].value)
	if first == last {
		return marginLeft + plotWidth/2
	}
	const inside = 18 // keeps the outermost points off the frame
	return marginLeft + inside + (plotWidth-2*inside)*(math.Log2(x)-first)/(last-first)
}

func pixels(at float64) string { return fmt.Sprintf("%.1f", at) }

var linesTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("lines").Parse(frame + linesText))
})

const linesText = `
{{- range $chart := .Charts}}
<g transform="translate(0 {{.At}})">
<text x="{{.Left}}" y="24" font-size="15" font-weight="bold">{{html .Title}}</text>
{{- range .Rows}}
<line x1="{{$chart.Left}}" x2="{{$chart.Right}}" y1="{{.At}}" y2="{{.At}}" class="grid"/>
<text x="{{$chart.Left}}" dx="-8" y="{{.At}}" dy="4" text-anchor="end">{{.Text}}</text>
{{- end}}
{{- range .Columns}}
<line x1="{{.At}}" x2="{{.At}}" y1="{{$chart.Top}}" y2="{{$chart.Bottom}}" class="grid"/>
<text x="{{.At}}" y="{{$chart.Bottom}}" dy="18" text-anchor="middle">{{html .Text}}</text>
{{- end}}
<path d="M{{.Left}} {{.Top}}V{{.Bottom}}H{{.Right}}" class="frame"/>
<text x="{{.MiddleX}}" y="{{.NameBelow}}" text-anchor="middle">{{html .X}}</text>
<text transform="translate(18 {{.MiddleY}}) rotate(-90)" text-anchor="middle">{{html .Y}}</text>
{{- range $line := .Lines}}
<g class="{{.Class}}"><polyline points="{{.Points}}"/>
{{- range .Dots}}<circle cx="{{.X}}" cy="{{.Y}}" r="3"/>{{end}}
<line x1="{{.EndX}}" y1="{{.EndY}}" x2="{{.LabelX}}" y2="{{.LabelY}}" stroke-width="0.7"/>
<text x="{{.LabelX}}" dx="3" y="{{.LabelY}}" dy="4">{{html .Name}}</text></g>
{{- end}}
</g>
{{- end}}
</svg>
`
