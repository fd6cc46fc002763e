package metrics

import (
	"bytes"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// parse reads metrics with the parser of Prometheus.
func parse(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

// What the parser of Prometheus reads is written in the same way by its own writer, except for the order.
func TestPrometheusReadsAll(t *testing.T) {
	m := New("a \\ \"quoted\"\nname", idle)
	m.requests.add(3, "14", "push")
	m.seconds.observe(0.25, "pull")
	m.seconds.observe(7200, "pull")
	text := m.text()
	families := parse(t, text)
	var written bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&written, family); err != nil {
			t.Fatal(err)
		}
	}
	lines := map[string]bool{}
	for line := range strings.Lines(written.String()) {
		lines[line] = true
	}
	count := 0
	for line := range strings.Lines(text) {
		if count++; !lines[line] {
			t.Errorf("Prometheus writes another line than %s", line)
		}
	}
	if count != len(lines) {
		t.Errorf("%d lines, and Prometheus writes %d", count, len(lines))
	}
	if got := families[namespace+"info"].GetMetric()[0].GetLabel()[0].GetValue(); got != m.software {
		t.Errorf("software %q", got)
	}
}

// A value belongs to the first bucket whose bound is not below it.
func TestHistogram(t *testing.T) {
	f := newHistogram("values", "Values.", []float64{1, 10})
	for _, value := range []float64{0.5, 1, 1.5, 10, 11, math.MaxFloat64} {
		f.observe(value)
	}
	var text strings.Builder
	f.write(&text)
	got := parse(t, text.String())[namespace+"values"].GetMetric()[0].GetHistogram()
	want := []uint64{2, 4, 6}
	for i, bucket := range got.GetBucket() {
		if bucket.GetCumulativeCount() != want[i] {
			t.Errorf("%d values up to %v, want %d", bucket.GetCumulativeCount(), bucket.GetUpperBound(), want[i])
		}
	}
	if got.GetSampleCount() != 6 || got.GetSampleSum() != math.MaxFloat64 {
		t.Errorf("%d values, sum %v", got.GetSampleCount(), got.GetSampleSum())
	}
}

func TestCountersOfManyGoroutines(t *testing.T) {
	m := New("", idle)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				m.entries.add(1, "push")
				m.seconds.observe(1, "push")
			}
		})
	}
	for range 10 {
		parse(t, m.text())
	}
	all.Wait()
	for _, want := range []string{
		`dma_copy_entries_total{operation="push"} 800` + "\n",
		`dma_copy_request_seconds_count{operation="push"} 800` + "\n",
	} {
		if !strings.Contains(m.text(), want) {
			t.Errorf("no line %s", want)
		}
	}
}

// The metrics of the process agree with what the process itself and /proc say.
func TestProcess(t *testing.T) {
	began := time.Now()
	families := parse(t, New("", idle).text())
	value := func(name string) float64 {
		t.Helper()
		family := families[name]
		if family == nil {
			t.Errorf("%s is missing", name)
			return 0
		}
		first := family.GetMetric()[0]
		return first.GetGauge().GetValue() + first.GetCounter().GetValue()
	}
	if start := value("process_start_time_seconds"); start > float64(began.Unix())+1 ||
		start < float64(began.Add(-time.Hour).Unix()) {
		t.Errorf("started at %v, and now it is %v", start, began.Unix())
	}
	resident, virtual := value("process_resident_memory_bytes"), value("process_virtual_memory_bytes")
	if resident < 1<<20 || virtual < resident {
		t.Errorf("%v bytes of memory, %v resident", virtual, resident)
	}
	if open := value("process_open_fds"); open < 3 || open > value("process_max_fds") {
		t.Errorf("%v open files", open)
	}
	if value("process_cpu_seconds_total") <= 0 || value("go_goroutines") < 1 || value("go_threads") < 1 ||
		value("go_memstats_sys_bytes") < value("go_memstats_heap_inuse_bytes") {
		t.Error("metrics of Go are wrong")
	}
	if got := families["go_info"].GetMetric()[0].GetLabel()[0].GetValue(); got != runtime.Version() {
		t.Errorf("version %q", got)
	}
}
