package output

import (
	"bytes"
	"os"
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
)

var localPath = report.Path{File: "here", Local: true, Target: "there", Device: "0000:b1:00.0", Driver: "soft 1"}

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

func TestLocalEvents(t *testing.T) {
	var out bytes.Buffer
	p := newJSON(&out, Form{Events: EventsAll}, zerolog.Nop())
	m := report.NewMonitor(p, report.Asked{})
	m.Begin(localPath)
	m.Event(job.PeerKnown{Protocol: wire.Native, Version: 2})
	m.Event(job.Planned{Sent: true, Size: 2 << 20, Digest: digest.CRC32C})
	m.Event(job.FileDone{Path: "x", Kind: wire.EntryFile, Action: job.Failed,
		Err: &native.PeerAborted{Code: wire.AbortTarget, Text: "cannot create x"}})
	m.Progress.Enter(job.Moving)
	asked := make(chan os.Signal)
	stop := m.Watch(asked)
	asked <- syscall.SIGUSR1
	stop()
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
