package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Each of the first failures is a line on stderr, then their number; the exit code is that of a partial success.
func TestFailedEntries(t *testing.T) {
	reporter := &recorder{}
	m := NewMonitor(reporter, Asked{})
	m.Begin(Path{Side: wire.Host})
	result := &job.TreeSummary{Files: 9900, Directories: 1, Symlinks: 2, Unchanged: 100}
	result.AddFailure(job.FailedEntry{Path: "a\x1b", Err: errors.New("no space left on device")})
	result.AddFailure(job.FailedEntry{
		Path: "b", Err: job.NewError(job.ErrSource, nil, "check the disk", "cannot read b"),
	})
	result.AddFailure(job.FailedEntry{Path: "c", Err: aborted(wire.AbortTarget, "cannot create c")})
	for i := range 30 {
		result.AddFailure(job.FailedEntry{Path: fmt.Sprintf("d%d", i), Err: job.ErrTarget})
	}
	err := m.Conclude(job.Summary{Tree: result}, fmt.Errorf("the copy: %w", job.ErrSomeFailed))
	if code := exit.Code(err); code != exit.SomeFailed || len(reporter.results) != 1 {
		t.Errorf("exit code %d, results %+v", code, reporter.results)
	}
	var said strings.Builder
	WriteError(&said, err)
	lines := strings.Split(strings.TrimSuffix(said.String(), "\n"), "\n")
	want := map[int]string{
		0:  `dma-copy: host: a\x1b: no space left on device`,
		1:  "dma-copy: host: b: cannot read b: check the disk",
		2:  "dma-copy: host: c: the DPU reports: cannot create c",
		3:  "dma-copy: host: d0: target",
		20: "dma-copy: host: and 13 more",
		21: "dma-copy: host: 33 of 10,036 entries failed: remove the causes and run the same commands, " +
			"with --ignore-existing or --overwrite on the side that receives",
	}
	for i, line := range want {
		if i >= len(lines) || lines[i] != line {
			t.Errorf("line %d is not %s:\n%s", i, line, said.String())
		}
	}
	if len(lines) != len(want)+16 {
		t.Errorf("%d lines:\n%s", len(lines), said.String())
	}
}

// A transfer that failed as a whole has no result, whatever entries failed before.
func TestFailedTree(t *testing.T) {
	reporter := &recorder{}
	m := NewMonitor(reporter, Asked{})
	m.Begin(Path{Side: wire.Host})
	m.Event(job.Planned{Sent: true, Tree: true})
	err := m.Conclude(job.Summary{Tree: new(job.TreeSummary)}, job.ErrIdle)
	if code := exit.Code(err); code != exit.Peer || len(reporter.results) > 0 {
		t.Errorf("exit code %d, results %+v", code, reporter.results)
	}
	if got, want := Sentence(err), "host: no progress"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The lines about a failure name no side, and the entries that either side has failed read the same.
func TestLocalFailures(t *testing.T) {
	reporter := &recorder{}
	m := NewMonitor(reporter, Asked{})
	m.Begin(Path{File: "here", Local: true, Target: "there"})
	m.Event(job.Planned{Sent: true, Tree: true})
	told := job.FileDone{
		Path: "c", Action: job.Failed, Err: aborted(wire.AbortTarget, "cannot create c: free some"),
	}
	m.Event(told)
	result := &job.TreeSummary{Files: 1}
	unreadable := job.NewError(job.ErrSource, nil, "check the disk", "cannot read b")
	result.AddFailure(job.FailedEntry{Path: "b", Err: unreadable})
	result.AddFailure(job.FailedEntry{Path: told.Path, Err: told.Err})
	err := m.Conclude(job.Summary{Sent: true, Tree: result}, job.ErrSomeFailed)
	var said strings.Builder
	WriteError(&said, err)
	want := "dma-copy: b: cannot read b: check the disk\n" +
		"dma-copy: c: cannot create c: free some\n" +
		"dma-copy: 2 of 3 entries failed: remove the causes and run the same command to copy these entries\n"
	if said.String() != want || exit.Code(err) != exit.SomeFailed {
		t.Errorf("code %d, printed\n%swant\n%s", exit.Code(err), said.String(), want)
	}
	failed := &SideError{Local: true, Err: fmt.Errorf("reading: %w", doca.CodeDriver), Kept: 1 << 20}
	want = "reading: DOCA_ERROR_DRIVER; 1.0 MiB are kept: run the same command to resume"
	if got := Sentence(failed); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Sentence(&SideError{Local: true, Err: &doca.Error{Op: "x", Code: doca.CodeDriver}}),
		"x: DOCA_ERROR_DRIVER: check the device"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A sender of a local copy knows what was kept, and does not guess.
func TestLocalCopyDoesNotGuessWhatIsKept(t *testing.T) {
	m := NewMonitor(&recorder{}, Asked{})
	m.Begin(Path{Local: true})
	m.Event(job.PeerKnown{Protocol: wire.Native})
	m.Event(job.Planned{Sent: true, Size: 5, Digest: digest.CRC32C})
	m.Progress.ChunkMoved(3)
	if got := Sentence(m.Conclude(job.Summary{}, job.ErrIdle)); got != "no progress" {
		t.Errorf("%q", got)
	}
}

// Between machines there is no host and no DPU, and a daemon is not on a side.
func TestFailureBetweenMachines(t *testing.T) {
	refused := &service.Refusal{Code: wire.AbortRefused, Text: "not there"}
	for want, err := range map[string]error{
		"the daemon refused: not there": refused,
		"something else":                errors.New("something else"),
	} {
		if got := Sentence(&SideError{Side: wire.Client, Err: err}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
