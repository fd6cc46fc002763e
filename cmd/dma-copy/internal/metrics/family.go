package metrics

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The types of Prometheus that are in use.
const (
	typeCounter   = "counter"
	typeGauge     = "gauge"
	typeHistogram = "histogram"
)

// family is a metric with one series for each combination of label values. Any goroutine may call its methods.
type family struct {
	name, help, kind string
	labels           []string
	bounds           []float64 // of the buckets of a histogram, ascending, without +Inf

	mu     sync.Mutex
	series map[string]*series // by the labels as they are written
}

// series holds the value of a counter, or the observations of a histogram.
type series struct {
	value  float64
	counts []uint64 // by bucket, not cumulative; the last one is that of +Inf
}

func newCounter(name, help string, labels ...string) *family {
	f := &family{
		name: namespace + name, help: help, kind: typeCounter, labels: labels, series: map[string]*series{},
	}
	if len(labels) == 0 {
		f.add(0)
	}
	return f
}

func newHistogram(name, help string, bounds []float64, labels ...string) *family {
	f := newCounter(name, help, labels...)
	f.kind, f.bounds = typeHistogram, bounds
	clear(f.series)
	return f
}

// add increases a counter. A negative amount, which is a defect elsewhere, counts as 0, and makes the series, too.
func (f *family) add(amount float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values).value += max(amount, 0)
}

// set changes a counter to the number that is counted elsewhere. A smaller one, of a count that is not the latest any
// more, has no effect.
func (f *family) set(value float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of(values)
	s.value = max(s.value, value)
}

// observe counts a value in a histogram.
func (f *family) observe(value float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of(values)
	s.value += value
	bucket, _ := slices.BinarySearch(f.bounds, value)
	s.counts[bucket]++
}

// prepare makes the series of these label values, so that the first event is an increase.
func (f *family) prepare(values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values)
}

// of returns the series of these label values. The lock must be held.
func (f *family) of(values []string) *series {
	key := labelText(f.labels, values)
	s := f.series[key]
	if s == nil {
		s = &series{}
		if f.kind == typeHistogram {
			s.counts = make([]uint64, len(f.bounds)+1)
		}
		f.series[key] = s
	}
	return s
}

// write appends the family in the text format of Prometheus, its series in the order of their labels.
func (f *family) write(to *strings.Builder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series) == 0 {
		return
	}
	writeHead(to, f.name, f.help, f.kind)
	for _, labels := range slices.Sorted(maps.Keys(f.series)) {
		s := f.series[labels]
		if f.kind != typeHistogram {
			writeSample(to, f.name, labels, s.value)
			continue
		}
		var total uint64
		for i, count := range s.counts {
			bound := math.Inf(1)
			if i < len(f.bounds) {
				bound = f.bounds[i]
			}
			total += count
			writeSample(to, f.name+"_bucket", joinLabels(labels, `le="`+number(bound)+`"`), float64(total))
		}
		writeSample(to, f.name+"_sum", labels, s.value)
		writeSample(to, f.name+"_count", labels, float64(total))
	}
}

// writeGauge appends a gauge of one series, whose labels are as labelText returns them, or empty.
func writeGauge(to *strings.Builder, name, help, labels string, value float64) {
	writeHead(to, name, help, typeGauge)
	writeSample(to, name, labels, value)
}

func writeHead(to *strings.Builder, name, help, kind string) {
	fmt.Fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func writeSample(to *strings.Builder, name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(to, "%s%s %s\n", name, labels, number(value))
}

// number formats a value as Prometheus reads it, which has the same words for infinity as Go.
func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelText returns labels with their values as they are written between the braces.
func labelText(names, values []string) string {
	if len(names) != len(values) {
		panic(fmt.Sprintf("internal error: %d values for the labels %q", len(values), names))
	}
	text := ""
	for i, name := range names {
		text = joinLabels(text, name+`="`+labelEscapes.Replace(values[i])+`"`)
	}
	return text
}

func joinLabels(first, second string) string {
	if first == "" {
		return second
	}
	return first + "," + second
}
