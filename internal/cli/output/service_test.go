package output

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
)

// daemonPath is the path of a copy with a daemon whose key is trusted.
var daemonPath = report.Path{
	Side: wire.Host, Driver: "soft 1", File: "x", Remote: "dpu:in/x",
	Peer: &report.Peer{Key: "dpu", Fingerprint: "dma-copy-v1:abc", Authenticated: true},
}

func TestSummaryOfACopyWithADaemon(t *testing.T) {
	sum, _ := digest.ParseSum("crc32c:1f0e22c4")
	done := job.Summary{Sent: true, Path: "x", Size: 1 << 20, Elapsed: time.Second, Protocol: wire.Native,
		Sum: sum, Durability: wire.DurabilityFull}
	received, streamed := done, done
	received.Sent = false
	streamed.Sent, streamed.Path = false, option.Stream
	nobody := daemonPath
	nobody.Peer = &report.Peer{Fingerprint: "dma-copy-v1:abc"}
	for name, tc := range map[string]struct {
		summary job.Summary
		path    report.Path
		want    []string
	}{
		"push":            {done, daemonPath, []string{"ok    sent x to dpu:in/x  1.0 MiB", "durable on the DPU"}},
		"pull":            {received, daemonPath, []string{"ok    received dpu:in/x as x  1.0 MiB", "durable here"}},
		"to stdout":       {streamed, daemonPath, []string{"ok    received dpu:in/x to standard output  1.0 MiB"}},
		"who":             {done, daemonPath, []string{"\npeer  dpu: authenticated, not encrypted\n"}},
		"nobody":          {done, nobody, []string{"\npeer  not authenticated, not encrypted (--auth none)\n"}},
		"a file for both": {done, treePath, []string{"ok    sent x  1.0 MiB"}},
	} {
		var out bytes.Buffer
		writeSummary(&out, tc.summary, job.Planned{}, tc.path, true)
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: printed\n%s\nlacks %q", name, out.String(), want)
			}
		}
		if tc.path.Peer == nil && strings.Contains(out.String(), "peer") {
			t.Errorf("%s: a peer in\n%s", name, out.String())
		}
	}
	unnamed := report.Path{Peer: &report.Peer{Fingerprint: "dma-copy-v1:abc", Authenticated: true}}
	if got := unnamed.PeerTitle(); got != "dma-copy-v1:abc: authenticated, not encrypted" {
		t.Errorf("a key without a name: %q", got)
	}
}

func TestTotal(t *testing.T) {
	var total report.Total
	total.Add(job.Summary{Size: 3 << 20}, nil)
	total.Add(job.Summary{Size: 5, UpToDate: true}, nil)
	total.Add(job.Summary{Tree: &job.TreeSummary{Files: 7, Bytes: 1 << 20}}, job.ErrSomeFailed)
	total.Add(job.Summary{}, job.ErrTarget)
	total.Elapsed = 1500 * time.Millisecond
	want := "4 sources (2 failed), 8 files copied, 4.0 MiB in 1.5s"
	if got := totalText(total, "source", 0); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !total.Worthy() || (&report.Total{Sources: 1}).Worthy() || !(&report.Total{Sources: 1, Deletes: true}).Worthy() {
		t.Error("a total is worthy of several sources, or of deletions")
	}
	total = report.Total{Elapsed: time.Second}
	total.Add(job.Summary{DryRun: true, Tree: &job.TreeSummary{Files: 2}}, nil)
	total.Delete(report.Deletion{})
	total.Delete(report.Deletion{})
	total.Delete(report.Deletion{Err: job.ErrTarget})
	want = "1 source, 2 files to copy, 0 B, 2 entries to delete, 1 entry not deleted in 1s; nothing was changed"
	if got := totalText(total, "source", 0); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDeletionsAsText(t *testing.T) {
	for name, tc := range map[string]struct {
		s              Form
		d              report.Deletion
		stdout, stderr string
	}{
		"a directory": {Form{}, report.Deletion{Path: "a\nb", Kind: wire.EntryDirectory}, "", "deleted a\\nb/\n"},
		"quiet":       {Form{Quiet: true}, report.Deletion{Path: "a"}, "", ""},
		"a dry run":   {Form{DryRun: true}, report.Deletion{Path: "a"}, "delete     -                     -  a\n", ""},
		"a failure, even if quiet": {Form{Quiet: true},
			report.Deletion{Path: "a", Err: job.NewError(job.ErrTarget, nil, "look", "cannot remove a")}, "",
			"dma-copy: a: cannot remove a"},
	} {
		var stdout, stderr bytes.Buffer
		r := newText(&stdout, &stderr, nil, tc.s, zerolog.Nop())
		r.Deleted(tc.d)
		if err := r.endPlan(); err != nil {
			t.Fatal(err)
		}
		unexpected := tc.stderr == "" && stderr.Len() > 0
		if stdout.String() != tc.stdout || !strings.HasPrefix(stderr.String(), tc.stderr) || unexpected {
			t.Errorf("%s: printed %q and %q", name, stdout.String(), stderr.String())
		}
	}
}
