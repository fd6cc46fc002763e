package output

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

var localPath = Path{File: "here", Local: true, Target: "there", Device: "0000:b1:00.0", Driver: "soft 1"}

// localResult returns the summary of a local copy, with a change.
func localResult(change func(*job.Summary)) job.Summary {
	s := job.Summary{
		Sent: true, Path: "here", Target: "there", Size: 2 << 20, Elapsed: time.Second, Protocol: wire.Native,
		Durability: wire.DurabilityFull, Sum: digest.Sum{}, Chunk: 1 << 20, Depth: 2,
	}
	change(&s)
	return s
}

func TestLocalSummary(t *testing.T) {
	const path = "path  soft 1  local DMA on 0000:b1:00.0  chunk 1.0 MiB  depth 2\n"
	for name, tc := range map[string]struct {
		change func(*job.Summary)
		want   string
	}{
		"a file": {func(*job.Summary) {},
			"ok    copied here to there  2.0 MiB in 1s (2.0 MiB/s)\n" +
				"      not verified (digest none), durable\n" + path},
		"content only": {func(s *job.Summary) { s.Durability = wire.DurabilityFile },
			"ok    copied here to there  2.0 MiB in 1s (2.0 MiB/s)\n" +
				"      not verified (digest none), content durable\n" + path},
		"from stdin": {func(s *job.Summary) { s.Path, s.Durability = "-", wire.DurabilityNone },
			"ok    copied standard input to there  2.0 MiB in 1s (2.0 MiB/s)\n" +
				"      not verified (digest none), not flushed\n" + path},
		"to stdout": {func(s *job.Summary) { s.Target = "-" },
			"ok    copied here to standard output  2.0 MiB in 1s (2.0 MiB/s)\n" +
				"      not verified (digest none), written to the stream\n" + path},
		"up to date": {func(s *job.Summary) { s.UpToDate = true },
			"ok    there is already up to date  2.0 MiB\n" + path},
		"a plan": {func(s *job.Summary) { s.DryRun = true },
			"plan  would copy here to there  2.0 MiB\n      nothing was changed\n" + path},
		"a tree": {func(s *job.Summary) { s.Tree = &job.TreeSummary{Files: 2, Bytes: 2 << 20} },
			"ok    copied here to there  2 files, 2.0 MiB in 1s (2.0 MiB/s)\n" +
				"      not verified (digest none), durable\n" + path},
	} {
		var out strings.Builder
		writeSummary(&out, localResult(tc.change), job.Planned{}, localPath, true)
		if out.String() != tc.want {
			t.Errorf("%s:\n%swant\n%s", name, out.String(), tc.want)
		}
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

func TestLocalEvents(t *testing.T) {
	var out bytes.Buffer
	p := newJSON(&out, Form{Events: EventsAll}, zerolog.Nop())
	m := NewMonitor(p, Asked{})
	m.Begin(localPath)
	m.Event(job.PeerKnown{Protocol: wire.Native, Version: 2})
	m.Event(job.Planned{Sent: true, Size: 2 << 20, Digest: digest.CRC32C})
	m.Event(job.FileDone{Path: "x", Kind: wire.EntryFile, Action: job.Failed,
		Err: &native.PeerAborted{Code: wire.AbortTarget, Text: "cannot create x"}})
	m.Progress.Enter(job.Moving)
	m.sample(m.Reporter.Progress)
	if err := m.Conclude(localResult(func(*job.Summary) {}), nil); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if _, err := checkEvent(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, part := range []string{
		`"side":"local","device":"0000:b1:00.0"`, `"file":"here","target":"there","direction":"copy","bytes":2097152`,
		`"file":"x","direction":"copy","kind":"file","action":"failed","bytes":0,"verified":false,"code":5,` +
			`"message":"cannot create x"`,
		`"file":"here","target":"there","direction":"copy","action":"copied"`,
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%s\nlacks %s", out.String(), part)
		}
	}
	for _, word := range []string{`"peer":"`, "the DPU", "the host"} {
		if strings.Contains(out.String(), word) {
			t.Errorf("%s\nhas %s", out.String(), word)
		}
	}
}
