package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/report/reporttest"
)

var (
	treePath = report.Path{Side: wire.Host, Driver: "soft 1", File: "photos"}
	treePlan = job.Planned{Sent: true, Tree: true, Size: job.Unknown, Digest: digest.CRC32C,
		Durability: wire.DurabilityFull}
)

// treeResult returns the summary of a tree that this side has sent, with a change.
func treeResult(change func(*job.TreeSummary)) job.Summary {
	t := &job.TreeSummary{Files: 9900, Directories: 1, Symlinks: 2, Unchanged: 100, Bytes: 40 << 20}
	change(t)
	return job.Summary{
		Sent: true, Path: "photos", Size: 41 << 20, Elapsed: 200 * time.Millisecond, Protocol: wire.Native,
		Durability: wire.DurabilityFull, Tree: t,
	}
}

// planned returns the summary of a dry run.
func planned(s job.Summary) job.Summary {
	s.DryRun = true
	return s
}

// entries are one entry of each action.
var entries = []job.FileDone{
	{Path: "", Kind: wire.EntryDirectory, Action: job.Unchanged},
	{Path: "a b", Kind: wire.EntryFile, Action: job.WouldCopy, Bytes: 4096, Change: native.ChangeSize},
	{Path: "a\n\xff\\", Kind: wire.EntryFile, Action: job.Copied, Bytes: 7},
	{Path: "link", Kind: wire.EntrySymlink, Action: job.Skipped},
	{Path: "z", Kind: wire.EntryFile, Action: job.Failed, Err: fmt.Errorf("%w: no space", job.ErrTarget)},
}

func TestTreeSummaryAsText(t *testing.T) {
	cases := []struct {
		name    string
		summary job.Summary
		planned job.Planned
		want    string
	}{
		{"all copied", treeResult(func(t *job.TreeSummary) { t.Unchanged = 0 }), treePlan,
			"ok    sent photos  9,900 files, 1 directory, 2 symlinks, 40 MiB in 200ms (200 MiB/s)\n" +
				"      verified, durable on the DPU\n"},
		{"with failures",
			treeResult(func(t *job.TreeSummary) { t.Files, t.Symlinks, t.Skipped, t.Failed = 1, 0, 3, 1500 }),
			treePlan, "part  sent photos  1 file, 1 directory, 40 MiB in 200ms (200 MiB/s)\n" +
				"      100 unchanged, 3 skipped, 1,500 failed; verified, durable on the DPU\n"},
		{"without a digest", treeResult(func(t *job.TreeSummary) {}), job.Planned{Tree: true},
			"ok    sent photos  9,900 files, 1 directory, 2 symlinks, 40 MiB in 200ms (200 MiB/s)\n" +
				"      100 unchanged; not verified (digest none), durable on the DPU\n"},
		{"nothing copied", treeResult(func(t *job.TreeSummary) {
			t.Files, t.Directories, t.Symlinks, t.Bytes = 0, 0, 0, 0
		}), treePlan, "ok    sent photos  0 files, 0 B in 200ms\n      100 unchanged; durable on the DPU\n"},
		{"a plan", planned(treeResult(func(*job.TreeSummary) {})), treePlan,
			"plan  would send photos  9,900 files, 1 directory, 2 symlinks, 40 MiB in 200ms\n" +
				"      100 unchanged; nothing was changed\n"},
		{"a plan of a file", planned(job.Summary{Path: "x", Size: 3 << 20}), job.Planned{},
			"plan  would receive x  3.0 MiB\n      nothing was changed\n"},
		{"a file that both sides have", job.Summary{Path: "x", Size: 3 << 20, UpToDate: true}, job.Planned{},
			"ok    x is already up to date  3.0 MiB\n"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			p := newText(io.Discard, &out, nil, Form{Verbose: true}, zerolog.Nop())
			p.Begin(treePath)
			p.Event(tc.planned)
			if err := p.Result(tc.summary); err != nil {
				t.Fatal(err)
			}
			if got, want := out.String(), tc.want+"path  soft 1\n"; got != want {
				t.Errorf("printed\n%swant\n%s", got, want)
			}
		})
	}
}

// A dry run prints one line per entry on stdout, from which the bytes of each name can be restored.
func TestPlanOfADryRun(t *testing.T) {
	var stdout, stderr strings.Builder
	p := newText(&stdout, &stderr, nil, Form{DryRun: true, Quiet: true}, zerolog.Nop())
	p.Begin(treePath)
	for _, e := range entries {
		p.Event(e)
	}
	if err := p.Result(treeResult(func(*job.TreeSummary) {})); err != nil {
		t.Fatal(err)
	}
	want := "unchanged  -                     -  ./\n" +
		"copy       size               4096  a b\n" +
		`copied     -                     7  a\n\xff\\` + "\n" +
		"skipped    -                     -  link\n" +
		"failed     -                     0  z: target: no space\n"
	if stdout.String() != want || stderr.Len() > 0 {
		t.Errorf("printed\n%swant\n%s; on stderr %q", stdout.String(), want, stderr.String())
	}
}

// A dry run of a single file prints a line for it, which says whether it would be copied.
func TestPlanOfAFile(t *testing.T) {
	for want, s := range map[string]job.Summary{
		"copy       new                  10  a\\nb\n": {
			Path: "a\nb", Size: 10, DryRun: true, Change: native.ChangeNew,
		},
		"unchanged  -                    10  file\n": {Path: "file", Size: 10, DryRun: true, UpToDate: true},
		"existing   -                    10  file\n": {Path: "file", Size: 10, DryRun: true, Existing: true},
	} {
		var stdout strings.Builder
		p := newText(&stdout, io.Discard, nil, Form{DryRun: true}, zerolog.Nop())
		if err := p.Result(s); err != nil {
			t.Fatal(err)
		}
		if stdout.String() != want {
			t.Errorf("printed\n%swant\n%s", stdout.String(), want)
		}
	}
}

// Only a plan that was asked for is printed, and one that could not be printed is an error.
func TestPlanOnAFullDisk(t *testing.T) {
	for _, dryRun := range []bool{false, true} {
		p := newText(fullDisk{}, io.Discard, nil, Form{DryRun: dryRun}, zerolog.Nop())
		p.Event(entries[1])
		err := p.Result(treeResult(func(*job.TreeSummary) {}))
		if errors.Is(err, syscall.ENOSPC) != dryRun {
			t.Errorf("dry run %t: error %v", dryRun, err)
		}
	}
}

// The events of a tree match the schema; names that are not UTF-8 can be restored.
func TestEventsOfATree(t *testing.T) {
	var out bytes.Buffer
	p := newJSON(&out, Form{Events: EventsAll}, zerolog.Nop())
	p.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) }
	p.Begin(treePath)
	p.Event(treePlan)
	p.Progress(job.Sample{Phase: job.Moving, Moved: 5, Total: job.Unknown, Elapsed: time.Second, Files: 1,
		FilesFound: 3, Found: 10})
	p.Progress(job.Sample{Phase: job.Moving, Moved: 10, Total: job.Unknown, Elapsed: 2 * time.Second, Files: 3,
		FilesFound: 3, Found: 10, Walked: true})
	for _, e := range entries {
		p.Event(e)
	}
	if err := p.Result(treeResult(func(t *job.TreeSummary) { t.AddFailure(job.FailedEntry{}) })); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if _, err := checkEvent(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	reporttest.CompareGolden(t, "testdata/tree_events.golden", out.String(), *update)
}

// By default only entries that failed have an event, in a dry run all of them.
func TestEntriesWithEvents(t *testing.T) {
	for _, tc := range []struct {
		s    Form
		want int
	}{{Form{}, 1}, {Form{DryRun: true}, len(entries)}, {Form{Events: "all"}, len(entries)}} {
		var out bytes.Buffer
		p := newJSON(&out, tc.s, zerolog.Nop())
		for _, e := range entries {
			p.Event(e)
		}
		if got := strings.Count(out.String(), `"type":"file"`); got != tc.want {
			t.Errorf("%+v: %d events, want %d", tc.s, got, tc.want)
		}
	}
}

// A file that both sides had is an event and a summary without copied bytes.
func TestEventsOfAFileThatIsUpToDate(t *testing.T) {
	var out bytes.Buffer
	p := newJSON(&out, Form{}, zerolog.Nop())
	p.Event(job.PeerKnown{Protocol: wire.Native, Version: 2})
	summary := job.Summary{Path: "file", Size: 10, UpToDate: true, Elapsed: time.Second, Protocol: wire.Native}
	if err := p.Result(summary); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if _, err := checkEvent(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, part := range []string{`"action":"unchanged","bytes":10,"verified":false}`, `"up_to_date":true`,
		`"copied_bytes":0`, `"bytes_per_second":0`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%s without %s", out.String(), part)
		}
	}
}

// The events of a dry run of a file do not claim that it was copied, verified or flushed.
func TestEventsOfADryRunOfAFile(t *testing.T) {
	var out bytes.Buffer
	p := newJSON(&out, Form{DryRun: true}, zerolog.Nop())
	p.Event(job.PeerKnown{Protocol: wire.Native, Version: 2})
	summary := job.Summary{
		Path: "file", Size: 10, DryRun: true, Elapsed: time.Second, Protocol: wire.Native,
		Durability: wire.DurabilityFull,
	}
	if err := p.Result(summary); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if _, err := checkEvent(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, part := range []string{`"action":"would-copy","bytes":10,"verified":false}`, `"dry_run":true`,
		`"copied_bytes":0`, `"bytes_per_second":0`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%s without %s", out.String(), part)
		}
	}
}

// Entries that only the sender knows are one line on the receiver, and are counted in its event.
func TestUnreadableEntries(t *testing.T) {
	var out bytes.Buffer
	p := newJSON(&out, Form{}, zerolog.Nop())
	p.Begin(treePath)
	summary := treeResult(func(t *job.TreeSummary) {
		t.AddFailure(job.FailedEntry{Path: "a", Err: errors.New("no space left on device")})
		t.AddFailure(job.FailedEntry{Path: "dir", Err: errors.New("not permitted")})
		t.AddUnreadable(1200)
	})
	err := report.NewMonitor(p, report.Asked{}).Conclude(summary, job.ErrSomeFailed)
	for line := range strings.Lines(out.String()) {
		if _, err := checkEvent(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if want := `"failed":1202,"unreadable":1200`; !strings.Contains(out.String(), want) {
		t.Errorf("%s without %s", out.String(), want)
	}
	var said strings.Builder
	report.WriteError(&said, err)
	want := "dma-copy: host: a: no space left on device\n" +
		"dma-copy: host: dir: not permitted\n" +
		"dma-copy: host: the DPU could not read 1,200 entries: see its error messages\n" +
		"dma-copy: host: 1,202 of 11,205 entries failed: " +
		"remove the causes and run the same commands, with --ignore-existing or --overwrite on the side that receives\n"
	if said.String() != want {
		t.Errorf("printed\n%swant\n%s", said.String(), want)
	}
}
