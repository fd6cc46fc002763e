//go:build cgo

package dmaxfer

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The device works, and the control channel does not: every message of either side is lost, cut short, or the last.
// Whatever the sides then say, they must not say that a file is there which is not, and leave nothing behind.

var messageFaults = map[string]func(n int) comchtest.Fault{
	"drop":  comchtest.Drop,
	"empty": func(n int) comchtest.Fault { return comchtest.Truncate(n, 0) },
	"short": func(n int) comchtest.Fault { return comchtest.Truncate(n, 5) },
	"cut":   comchtest.Cut,
}

func TestEveryMessageFails(t *testing.T) {
	setup := newSetup(t, "")
	setup.host.Log, setup.dpu.Log = lenientLogs(t)
	for fault, make := range messageFaults {
		for _, faulty := range []wire.Side{wire.Host, wire.DPU} {
			for name := range setup.directions() {
				t.Run(fmt.Sprint(fault, " of the ", faulty, " ", name), func(t *testing.T) {
					t.Parallel() // they wait for idle timeouts
					own := *setup
					own.host.File, own.dpu.File = filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "file")
					way := own.directions()[name]
					own.sweepMessages(t, make, faulty, way[0], way[1])
				})
			}
		}
	}
}

// sweepMessages disturbs each message of a conversation in turn. Only then are the sides impatient: an undisturbed
// conversation succeeds on a busy machine, too.
func (s *setup) sweepMessages(
	t *testing.T, make func(int) comchtest.Fault, faulty wire.Side, sender, receiver *Options,
) {
	t.Helper()
	want := content(3*testChunk + 1)
	jobtest.WriteFile(t, sender.File, want)
	var messages atomic.Int64
	counting := func(i int, message []byte) ([][]byte, bool) {
		messages.Add(1)
		return comchtest.Faultless(i, message)
	}
	both := s.converse(t, map[wire.Side]comchtest.Fault{faulty: counting})
	mustBeTrue(t, both, false, sender, receiver, want)
	impatient := *s
	impatient.host.IdleTimeout, impatient.dpu.IdleTimeout = time.Second, time.Second
	for n := range int(messages.Load()) {
		_ = os.Remove(receiver.File)
		both := impatient.converse(t, map[wire.Side]comchtest.Fault{faulty: make(n)})
		mustBeTrue(t, both, true, sender, receiver, want)
	}
	must(t, os.Remove(sender.File))
	_ = os.Remove(receiver.File) // is there or not
}

// converse is Run over a channel in memory.
func (s *setup) converse(t *testing.T, faults map[wire.Side]comchtest.Fault) outcome {
	t.Helper()
	for _, side := range []wire.Side{wire.Host, wire.DPU} {
		if faults[side] == nil {
			faults[side] = comchtest.Faultless
		}
	}
	host, dpu := comchtest.NewPair(4080, faults[wire.Host], faults[wire.DPU])
	results := make(chan outcome, 2)
	s.host.ReferenceOnly, s.dpu.ReferenceOnly = true, true
	go func() { results <- talk(t, s.host, host) }()
	go func() { results <- talk(t, s.dpu, dpu) }()
	both := <-results
	for side, err := range (<-results).errs {
		both.errs[side] = err
	}
	return both
}

// talk is one side's part of Run from the connection on.
func talk(t *testing.T, o Options, end comch.Conn) outcome {
	defer end.Close()
	file, err := o.find(t.Context())
	if err == nil {
		defer file.Close()
		o.paths = simPaths(true)
		_, err = peer{o, file, end, window.NewMemory(o.Device, o.Side, end)}.transfer(t.Context())
	}
	return outcome{errs: map[wire.Side]error{o.Side: err}}
}

func mustBeTrue(t *testing.T, both outcome, disturbed bool, sender, receiver *Options, want string) {
	t.Helper()
	if !disturbed {
		must(t, both.errs[sender.Side])
		must(t, both.errs[receiver.Side])
	}
	jobtest.MustHold(t, filepath.Dir(sender.File), "file")
	jobtest.MustContain(t, sender.File, want)
	if _, err := os.Stat(receiver.File); err == nil {
		jobtest.MustHold(t, filepath.Dir(receiver.File), "file")
		jobtest.MustContain(t, receiver.File, want)
		mayHaveTheFile(t, both, receiver.Side)
		return
	}
	jobtest.MustHold(t, filepath.Dir(receiver.File))
	if both.errs[sender.Side] == nil || both.errs[receiver.Side] == nil {
		t.Errorf("a side reports success, and there is no file: %v", both.errs)
	}
}

// Only a DPU has its file before it knows what becomes of its last message.
func mayHaveTheFile(t *testing.T, both outcome, receiver wire.Side) {
	t.Helper()
	if err := both.errs[receiver]; err != nil && receiver == wire.Host {
		t.Errorf("the host has the file, and yet it failed: %v", err)
	}
}
