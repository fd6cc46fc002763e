package output

import (
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
)

// One line says what was copied, how much, in which time, and what is known of it, of the path and of the peer.
func TestBriefSummary(t *testing.T) {
	path := report.Path{Driver: "soft 1 (software device, no hardware)", Reason: "it was asked for",
		Location: native.Location{Machine: "dpu7", User: "ann", Path: "/srv/x"}}
	for name, tc := range map[string]struct {
		summary job.Summary
		want    string
	}{
		"a file": {
			job.Summary{Path: "x", Size: 3 << 20, Sent: true, Elapsed: time.Second, Protocol: wire.Native},
			"ok    sent x  3.0 MiB in 1s (3.0 MiB/s)  not verified (digest none), not flushed on the DPU; soft 1; " +
				"peer ann@dpu7:/srv/x\n",
		},
		"nothing new": {job.Summary{Path: "x", UpToDate: true},
			"ok    x is already up to date  0 B  soft 1; peer ann@dpu7:/srv/x\n"},
		"a tree": {
			job.Summary{Path: "t", Tree: &job.TreeSummary{Files: 2, Bytes: 5, Failed: 1}, Elapsed: time.Second,
				Protocol: wire.Native},
			"part  received t  2 files, 5 B in 1s (5 B/s)  1 failed; not verified (digest none), not flushed here; " +
				"soft 1; peer ann@dpu7:/srv/x\n",
		},
	} {
		var out strings.Builder
		writeSummary(&out, tc.summary, job.Planned{}, path, false)
		if got := out.String(); got != tc.want {
			t.Errorf("%s: printed\n%swant\n%s", name, got, tc.want)
		}
	}
}
