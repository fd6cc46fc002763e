package bench

import (
	"bytes"
	"strings"
	"testing"
)

func TestReportOfTheEngine(t *testing.T) {
	result := func(chunk int64, depth int, rate float64) EngineResult {
		return EngineResult{
			Direction: HostToDPU, Chunk: chunk, Depth: depth, Seconds: &Spread{P50: 1}, Rate: rate,
			TasksPerSecond: 1e5, CPUPerGiB: 0.1,
		}
	}
	r := &Record{
		Program: "dma-copy 1", Command: []string{"lab", "engine"},
		Device: &Device{Driver: "soft", Version: "soft 1", Model: "x: 1 GB/s"},
		Engine: &EngineRecord{Bytes: 1 << 30, Results: []EngineResult{
			result(64<<10, 1, 10<<30), result(64<<10, 16, 20<<30), result(1<<20, 16, 30<<30),
			{Direction: HostToDPU, Chunk: 1 << 20, Depth: 1, Error: "too\nlarge"},
		}},
	}
	var text, markdown bytes.Buffer
	for _, report := range []*Report{{W: &text, Form: Text}, {W: &markdown, Form: Markdown}} {
		report.List(r.Conditions())
		r.Engine.Write(report)
		if report.Err != nil {
			t.Fatal(report.Err)
		}
	}
	for _, want := range []string{
		"soft 1 (software device, no hardware); completion times of the model x: 1 GB/s, not measured on a card; " +
			"NO BYTES ARE MOVED",
		"command: lab engine",
		"host-to-dpu  64 KiB    10.00     20.00          10.00       0.10",
		"host-to-dpu   1 MiB   failed     30.00          10.00       0.10",
		"host-to-dpu, tasks of 1 MiB, depth 1 failed: too; large",
	} {
		if !strings.Contains(text.String(), "\n"+want+"\n") && !strings.HasSuffix(text.String(), "\n"+want+"\n") {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	if want := "| host-to-dpu | 64 KiB | 10.00 | 20.00 |"; !strings.Contains(markdown.String(), want) {
		t.Errorf("%q is not in\n%s", want, &markdown)
	}
}
