package ping

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/report/reporttest"
)

var somePings = ping.Summary{
	Count: 100, Size: 64, Min: 1500 * time.Nanosecond, Median: 2 * time.Microsecond, P99: time.Millisecond,
}

// fullDisk is a writer that fails like a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// The fields of each event, which programs rely on: they are only ever added.
func TestEvents(t *testing.T) {
	var out bytes.Buffer
	r := newReporter(&out, option.OutputJSON, false, zerolog.Nop())
	r.Begin(report.Path{Software: "dma-copy VERSION", Side: wire.DPU, Device: "0000:03:00.1", Driver: "soft 1"})
	r.Event(ping.Connected{Version: 1})
	r.Event(ping.Text{From: wire.Host, Text: "a\x1b\xffb"})
	_ = r.Result(somePings)
	r.Fail(&report.SideError{Side: wire.DPU, Err: ping.ErrLost})
	err := reporttest.CheckGolden("../../../docs/events.schema.json", "testdata/events.golden", out.String())
	if err != nil {
		t.Error(err)
	}
}

func TestPingOfAnotherMachine(t *testing.T) {
	var out bytes.Buffer
	r := newReporter(&out, option.OutputText, false, zerolog.Nop())
	r.Begin(report.Path{Address: "lab:7483", Peer: &report.Peer{Key: "lab", Authenticated: true}})
	if err := r.Result(ping.Summary{Count: 1}); err != nil {
		t.Fatal(err)
	}
	if want := "path  tls to lab:7483 (encrypted)\npeer  lab: authenticated\n"; !strings.Contains(out.String(), want) {
		t.Errorf("printed\n%s\nlacks %q", out.String(), want)
	}
}

func TestPingText(t *testing.T) {
	var out bytes.Buffer
	r := newReporter(&out, option.OutputText, false, zerolog.Nop())
	r.Begin(report.Path{Driver: "soft 1", Reason: "why\nnot"})
	r.Event(ping.Connected{Version: 1})
	r.Event(ping.Text{From: wire.DPU, Text: "a\x1b[2J\nb"})
	fast := somePings
	fast.Fast, fast.Count, fast.Size = true, 1, 1
	for _, s := range []ping.Summary{somePings, fast} {
		if err := r.Result(s); err != nil {
			t.Fatal(err)
		}
	}
	want := `DPU says: a\x1b[2J\nb
100 round trips of 64 bytes: min 1.5 us, median 2.0 us, p99 1000.0 us, over the control channel
path  soft 1
why   why\nnot
1 round trip of 1 byte: min 1.5 us, median 2.0 us, p99 1000.0 us, over producers and consumers
path  soft 1
why   why\nnot
`
	if out.String() != want {
		t.Errorf("printed %s, want %s", out.String(), want)
	}
}

// A side that says nothing is not reported to say something.
func TestPingWithoutText(t *testing.T) {
	for _, form := range []option.OutputForm{option.OutputText, option.OutputJSON} {
		var out bytes.Buffer
		newReporter(&out, form, false, zerolog.Nop()).Event(ping.Text{})
		if out.Len() > 0 {
			t.Errorf("%s: %s", form, out.String())
		}
	}
}

func TestPingOnAFullDisk(t *testing.T) {
	for _, form := range []option.OutputForm{option.OutputText, option.OutputJSON} {
		r := newReporter(fullDisk{}, form, false, zerolog.Nop())
		r.Event(ping.Text{Text: "x"})
		err := r.Result(somePings)
		if !errors.Is(err, syscall.ENOSPC) || exit.Code(err) != exit.Failure {
			t.Errorf("%s: %v", form, err)
		}
		if reason := syscall.ENOSPC.Error(); strings.Count(err.Error(), reason) != 1 {
			t.Errorf("%s: %v does not give the reason once", form, err)
		}
	}
}

// The exit codes and sentences of what only a ping fails with.
func TestPingFailures(t *testing.T) {
	const noPath = "host: the two sides have no data path in common: the detail: leave out --path"
	for _, test := range []struct {
		err      error
		code     int
		sentence string
	}{
		{service.ErrPayload, exit.Digest, "host: a payload came back changed: the detail: check the memory"},
		{wire.ErrNoPath, exit.Device, noPath},
	} {
		err := &report.SideError{Side: wire.Host, Err: &wire.Error{Err: test.err, Detail: "the detail"}}
		if code := exit.Code(err); code != test.code || !strings.HasPrefix(report.Sentence(err), test.sentence) {
			t.Errorf("%v: code %d, %s", test.err, code, report.Sentence(err))
		}
	}
	lost := &report.SideError{Side: wire.Host, Err: ping.ErrLost}
	const sentence = "host: the connection to the DPU was lost before the last round trip: "
	if code := exit.Code(lost); code != exit.Peer || !strings.HasPrefix(report.Sentence(lost), sentence) {
		t.Errorf("code %d, %s", code, report.Sentence(lost))
	}
	refused := &report.SideError{Side: wire.Host, Err: comch.ErrRefused}
	if code := exit.Code(refused); code != exit.Peer || strings.Contains(report.Sentence(refused), "copy") {
		t.Errorf("code %d, %s", code, report.Sentence(refused))
	}
	err := &wire.Error{State: service.Pinging, Err: wire.ErrOutOfOrder}
	if exit.Code(err) != exit.Protocol || strings.Contains(report.Sentence(err), "doca_dma_copy") {
		t.Errorf("code %d, %s", exit.Code(err), report.Sentence(err))
	}
}
