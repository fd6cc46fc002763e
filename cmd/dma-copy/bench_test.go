//go:build cgo

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/bench"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// The schema describes all that a report may have.
func TestBenchSchema(t *testing.T) {
	of := bench.Case{From: "host", Path: "dma", Chunk: 4096, Depth: 8, Lanes: 2}
	results := []bench.Result{{Case: of, Bytes: 1 << 20, Seconds: 0.5, Rate: 2 << 20, Latency: 1e-4}}
	r := bench.Report{
		Version: 1, Software: "dma-copy 1", Side: "host", Driver: "soft", Peer: "dma-copy 2", Results: results,
		Control:     &bench.RoundTrips{Count: 200, Min: 1e-6, Median: 2e-6, P99: 3e-6},
		Skipped:     []bench.Skipped{{From: "dpu", Path: "fast", Reason: "it lacks that"}},
		Recommended: bench.Recommend(results),
	}
	var text strings.Builder
	must(t, output.Print(&text, option.OutputJSON, "results", r, ""))
	document := checkDocument(t, "bench.schema.json", text.String())
	if chosen := document["recommended"].(map[string]any); fmt.Sprint(chosen["depth"]) != "8" {
		t.Errorf("recommends %v", chosen)
	}
}

// Settings that cannot be measured are refused at once.
func TestBenchIsRefused(t *testing.T) {
	useSoftDevice(t, "all")
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"bench --path tls": "--path tls is for daemons on other machines",
		"bench a b":        "dma-copy bench takes one PEER or none",
		"bench --each 6s":  "a measurement takes at most 5s",
		"bench --chunks 1": "not a chunk; give 4KiB to 1GiB",
	} {
		got := invoke(nil, words(line)...)
		if exit.Code(got.err) != 3 || !strings.Contains(fmt.Sprint(got.err), want) {
			t.Errorf("%s: %v", line, got.err)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
