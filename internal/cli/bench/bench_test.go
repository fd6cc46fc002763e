package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// model is the arithmetic of a time model of the software device: tasks have a latency and a rate of their own, and
// all of them together the rate of their direction.
type model struct {
	latency     time.Duration
	task        float64            // bytes per second
	rates       map[string]float64 // by sender
	largest     int64              // chunk
	unavailable string             // path
}

func (m model) rate(c Case) float64 {
	alone := m.latency.Seconds() + float64(c.Chunk)/m.task
	return min(float64(c.Depth)*float64(c.Chunk)/alone, m.rates[c.From])
}

func (m model) measure(_ context.Context, c Case, bytes int64) (Measured, error) {
	if c.Path == m.unavailable {
		return Measured{}, &Unavailable{errors.New("it lacks that")}
	}
	c.Chunk = min(c.Chunk, m.largest)
	return Measured{c.Chunk, c.Depth, time.Duration(float64(bytes) / m.rate(c) * 1e9)}, nil
}

// bluefield3 has the values of softdoca/docs/SOFTDEVICE.md.
var bluefield3 = model{
	latency: 1437, task: 10787e6, rates: map[string]float64{"host": 38118e6, "dpu": 31568e6}, largest: 2 << 20,
}

var everything = Plan{
	Chunks: []int64{64 << 10, 256 << 10, 1 << 20, 2 << 20},
	Depths: []int{1, 4, 16, 32}, Lanes: []int{1, 2}, Window: 64 << 20, Each: 100 * time.Millisecond,
}

func results(t *testing.T, p Plan, m model) (all []Result) {
	t.Helper()
	for _, from := range []string{"host", "dpu"} {
		got, err := p.Run(t.Context(), from, "dma", m.measure)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
	}
	return all
}

// A machine with other work slows some copies, and only the fastest round of a case counts.
func TestNoiseDoesNotCount(t *testing.T) {
	copies := 0
	noisy := func(ctx context.Context, c Case, bytes int64) (Measured, error) {
		m, err := bluefield3.measure(ctx, c, bytes)
		if copies++; copies%rounds != 0 {
			m.Elapsed *= time.Duration(1 + copies%rounds)
		}
		return m, err
	}
	got, err := everything.Run(t.Context(), "host", "dma", noisy)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got {
		if want := bluefield3.rate(r.Case); r.Rate < 0.99*want || r.Rate > 1.01*want {
			t.Errorf("%+v: %g bytes per second, want %g", r.Case, r.Rate, want)
		}
	}
}

// The recommendation is what the arithmetic of a model says: of the settings that reach the rate of both directions,
// those with the smallest window and one lane.
func TestRecommendedUnderAModel(t *testing.T) {
	fast := bluefield3
	fast.rates = map[string]float64{"host": 50e9, "dpu": 50e9}
	slow := bluefield3
	slow.rates = map[string]float64{"host": 8e9, "dpu": 8e9}
	for name, c := range map[string]struct {
		model model
		chunk int64
		depth int
	}{
		"bluefield3": {bluefield3, 256 << 10, 4}, // 4 chunks of 64 KiB reach 35 GB/s, of 256 KiB 41
		"400g":       {fast, 64 << 10, 16},       // 4 chunks of 2 MiB reach 43 GB/s
		"slow":       {slow, 64 << 10, 1},
	} {
		got := Recommend(results(t, everything, c.model))
		if got.Chunk != c.chunk || got.Depth != c.depth || got.Lanes != 1 || got.Path != "dma" {
			t.Errorf("%s: %+v", name, got)
		}
		for from, best := range got.Best {
			if best < 0.999*c.model.rates[from] || best > 1.001*c.model.rates[from] || got.Rates[from] < near*best {
				t.Errorf("%s: from the %s %g of %g", name, from, got.Rates[from], best)
			}
		}
	}
}

// Another path is recommended only if it is faster by more than what counts as near, and a setting only if it is good
// in both directions.
func TestRecommendedAmongOthers(t *testing.T) {
	of := func(from, path string, chunk int64, rate float64) Result {
		return Result{Case: Case{from, path, chunk, 8, 1}, Rate: rate}
	}
	for name, c := range map[string]struct {
		results []Result
		path    string
		chunk   int64
	}{
		"nearly as fast": {[]Result{of("host", "dma", 8192, 100), of("host", "fast", 4096, 104)}, "dma", 8192},
		"faster":         {[]Result{of("host", "dma", 8192, 100), of("host", "fast", 8192, 110)}, "fast", 8192},
		"one direction": {[]Result{
			of("host", "dma", 4096, 100), of("host", "dma", 8192, 100), of("dpu", "dma", 4096, 10),
			of("dpu", "dma", 8192, 50),
		}, "dma", 8192},
		"not measured": {[]Result{
			of("host", "dma", 4096, 100), of("host", "dma", 8192, 100), of("dpu", "dma", 8192, 50),
		}, "dma", 8192},
	} {
		if got := Recommend(c.results); got.Path != c.path || got.Chunk != c.chunk {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := Recommend(nil); got != nil {
		t.Errorf("without results: %+v", got)
	}
}

// The rounds of a measurement take about the time that was given, each setting is measured once, and
// latencies follow from the chunks in flight.
func TestPlanRun(t *testing.T) {
	m := bluefield3
	m.largest = 1 << 20
	seen := map[Case]bool{}
	all := results(t, everything, m)
	for _, r := range all {
		if seen[r.Case] || r.Chunk > m.largest || r.Lanes > r.Depth {
			t.Errorf("%+v", r)
		}
		seen[r.Case] = true
		if round := everything.Each.Seconds() / rounds; r.Seconds < 0.9*round || r.Seconds > 1.1*round {
			t.Errorf("%+v took %g s", r.Case, r.Seconds)
		}
		if want := 1437e-9 + float64(r.Chunk)/m.task; r.Depth == 1 && (r.Latency < 0.99*want || r.Latency > 1.01*want) {
			t.Errorf("%+v: latency %g s, want %g", r.Case, r.Latency, want)
		}
	}
	if len(all) != 2*3*7 {
		t.Errorf("%d results", len(all))
	}
	m.unavailable = "dma"
	_, err := everything.Run(t.Context(), "host", "dma", m.measure)
	if _, is := errors.AsType[*Unavailable](err); !is {
		t.Errorf("got %v", err)
	}
}

// A slow path, or a daemon with a bandwidth limit, is measured with small copies, and a case that reaches a limit does
// not hide the others.
func TestSlowPath(t *testing.T) {
	const limit = 10 * time.Second
	slow := bluefield3
	slow.rates = map[string]float64{"host": 1e6}
	p := everything
	p.Each, p.Lanes = 5*time.Second, []int{1}
	limited := func(ctx context.Context, c Case, bytes int64) (Measured, error) {
		m, err := slow.measure(ctx, c, bytes)
		if m.Elapsed > limit || c.Depth == 4 {
			return Measured{}, fmt.Errorf("%w: it takes %s", ErrSkipped, m.Elapsed)
		}
		return m, err
	}
	got, err := p.Run(t.Context(), "host", "dma", limited)
	if err != nil || len(got) != 4*3 {
		t.Fatalf("%d results, %v", len(got), err)
	}
	for _, r := range got {
		if r.Rate < 0.99e6 || r.Rate > 1.01e6 {
			t.Errorf("%+v", r)
		}
	}
}

func TestWriteText(t *testing.T) {
	all := results(t, everything, bluefield3)
	var text strings.Builder
	WriteTable(&text, all[:28])
	r := Report{
		Recommended: Recommend(all), Skipped: []Skipped{{"host", "fast", "it lacks\nthat"}},
		Control: &RoundTrips{200, 10e-6, 11e-6, 20e-6},
	}
	text.WriteString(r.Text())
	for _, want := range []string{
		"from the host by dma, GB/s at a depth of\n",
		"   64KiB     1         7.5    8.72   34.89   38.12   38.12\n",
		"   64KiB     2         7.5       -   34.89 ", "from the host by fast: not measured: it lacks\\nthat\n",
		"recommended flags       --path dma --chunk 256KiB --depth 4 --lanes 1\n",
		`"path": "dma", "chunk": "256KiB", "depth": 4, "lanes": 1`, "mean nothing for a card",
		"control channel: 200 round trips, min 10.0 us",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}
