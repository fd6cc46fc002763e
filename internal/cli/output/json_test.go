package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/report/reporttest"
)

var checkEvent = reporttest.EventChecker("../../../docs/events.schema.json")

// everyEvent reports a copy with every type of event.
func everyEvent(p *jsonReporter) {
	sum, _ := digest.ParseSum("crc32c:1f0e22c4")
	p.Begin(report.Path{Software: "dma-copy VERSION", Side: wire.DPU, Device: "0000:03:00.1", Driver: "soft 1",
		File: "file"})
	w := report.WaitForPeer(wire.DPU, "b1:00.1", "file", "", 30*time.Second)
	p.Write("waiting", waitingOf(w, 12*time.Second))
	p.Event(job.PeerKnown{Protocol: wire.Native, Version: 1, Software: "dma-copy 1.0"})
	p.Event(job.Planned{Size: 10, Chunk: 4, Depth: 2, Digest: digest.CRC32C, Durability: wire.DurabilityFull,
		Resumed: 3})
	p.Progress(job.Sample{Phase: job.Moving, Moved: 5, Total: 10, Elapsed: time.Second,
		Shares: pump.Shares{0.5, 0.5}})
	p.Event(job.Retransmitted{Offset: 4, Length: 4})
	p.Event(job.Warned{Text: "beware"})
	_ = p.Result(job.Summary{
		Path: "file", Size: 10, Resumed: 3, Elapsed: time.Second, Protocol: wire.Native, Chunk: 4, Depth: 2,
		Sum: sum, Durability: wire.DurabilityFull, Shares: pump.Shares{0.5, 0.5},
		Unconfirmed: "the host did not confirm",
	})
	p.Deleting(report.Deleting{Entries: 2, Of: 9, First: []report.Deletion{{Path: "old"}, {Path: "older"}}})
	p.Deleted(report.Deletion{Path: "old", Kind: wire.EntryDirectory})
	_ = p.Total(report.Total{
		Sources: 2, Failed: 1, Files: 1, Bytes: 10, Elapsed: time.Second, Deletes: true, Deleted: 1,
	})
	p.Fail(&report.SideError{Side: wire.DPU, Err: job.ErrIdle, Kept: 5})
}

// The fields of each event, which programs rely on: they are only ever added.
func TestEveryEvent(t *testing.T) {
	var out bytes.Buffer
	p := newJSON(&out, Form{}, zerolog.Nop())
	p.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) }
	everyEvent(p)
	everyPeer(&Fleet{events: p.Events, moved: map[int]int64{}})
	everyChange(&Changes{events: p.Events, action: "removed"})
	var kinds []string
	for line := range strings.Lines(out.String()) {
		kind, err := checkEvent(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	elsewhere := []string{"entry", "text", "ping"} // of ls and ping
	wanted := slices.Sorted(slices.Values(reporttest.EventKinds))
	wanted = slices.DeleteFunc(wanted, func(kind string) bool { return slices.Contains(elsewhere, kind) })
	if !slices.Equal(kinds, wanted) {
		t.Errorf("events %q, want %q", kinds, wanted)
	}
	reporttest.CompareGolden(t, "testdata/events.golden", out.String(), *update)
}

// What a peer chooses cannot control the terminal on which events are read, and is unchanged for a program.
func TestEventsEscapeUnprintableText(t *testing.T) {
	const text = "\x1b[31m \x7f \u009b31m \u202e \U000e0001 \ufeff \" \\ <ä日🙂"
	var out bytes.Buffer
	p := New(io.Discard, &out, nil, Form{Output: option.OutputJSON}, true, zerolog.Nop())
	p.Event(job.Warned{Text: text})
	for _, r := range strings.TrimSuffix(out.String(), "\n") {
		if !strconv.IsPrint(r) {
			t.Errorf("printed %q", r)
		}
	}
	var event warningEvent
	if err := json.Unmarshal(out.Bytes(), &event); err != nil || event.Message != text {
		t.Errorf("printed %s, which is %q: %v", out.String(), event.Message, err)
	}
	if !strings.Contains(out.String(), "ä日🙂") {
		t.Errorf("printed %s without printable characters", out.String())
	}
}

// Values that are unknown for a stream or in the reference protocol are left out instead of being 0.
func TestEventsLeaveOutUnknownValues(t *testing.T) {
	var out bytes.Buffer
	p := New(io.Discard, &out, nil, Form{Output: option.OutputJSON}, true, zerolog.Nop())
	p.Event(job.PeerKnown{Protocol: wire.Reference})
	p.Event(job.Planned{Size: job.Unknown})
	p.Progress(job.Sample{Phase: job.Moving, Total: job.Unknown})
	_ = p.Result(job.Summary{Protocol: wire.Reference})
	for line := range strings.Lines(out.String()) {
		if _, err := checkEvent(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		for _, name := range []string{"bytes\":-", "total_bytes", "digest", "durability", "peer", "protocol_version",
			"stages"} {
			if strings.Contains(line, name) {
				t.Errorf("%s has %s", line, name)
			}
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 5 {
		t.Errorf("%d lines on stderr, want 5", lines)
	}
}

// Events that could not be written are an error.
func TestEventsOnAFullDisk(t *testing.T) {
	p := newJSON(fullDisk{}, Form{}, zerolog.Nop())
	p.Event(job.Warned{Text: "beware"})
	if err := p.Result(job.Summary{}); !errors.Is(err, syscall.ENOSPC) || exit.Code(err) != exit.Failure {
		t.Errorf("error %v", err)
	}
}

var update = flag.Bool("update", false, "rewrite the golden file of the events")

// fullDisk is a writer that fails like a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
