//go:build cgo

package dmaxfer

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// interruptedSize is what a transfer copies that is interrupted, and interruptedAfter when: bytes. interruptedRate is
// how fast it is, in bytes per second: so slow that a busy machine does not copy all of it before the interruption.
const (
	interruptedSize  = 200 * testChunk
	interruptedAfter = 5 * testChunk
	interruptedRate  = 25 * testChunk
)

// during carries out a slow transfer, and calls strike when some of it has been copied.
func (l *linkedPair) during(ctx context.Context, sender wire.Side, strike func()) outcome {
	from, to := l.files(sender)
	to.Progress, to.Bandwidth = &job.Progress{}, interruptedRate
	from.Progress, from.Bandwidth = &job.Progress{}, 0
	struck := make(chan struct{})
	go func() {
		defer close(struck)
		for to.Progress.Sample().Moved < interruptedAfter {
			time.Sleep(time.Millisecond)
		}
		strike()
	}()
	both := l.copy(ctx, sender)
	<-struck
	to.Progress, to.Bandwidth, from.Progress = nil, 0, nil
	return both
}

// mustResume expects the next transfer to begin with what the failed one has left.
func (l *linkedPair) mustResume(t *testing.T, sender wire.Side, want string) {
	t.Helper()
	_, to := l.files(sender)
	if _, err := os.Stat(to.File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target of a transfer that failed: %v", err)
	}
	for side, is := range l.mustCopy(t, sender).summaries {
		if is.Resumed < testChunk || is.Resumed >= interruptedSize {
			t.Errorf("the %s: %d bytes were resumed", side, is.Resumed)
		}
	}
	jobtest.MustContain(t, to.File, want)
}

// A transfer that the user of either side stops goes on where it was, over the same connection.
func TestLinkedStopped(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, _ := l.files(sender)
		want := content(interruptedSize)
		jobtest.WriteFile(t, from.File, want)
		ctx, stop := context.WithCancelCause(t.Context())
		for side, err := range l.during(ctx, sender, func() { stop(errInterrupted) }).errs {
			aborted, is := errors.AsType[*native.PeerAborted](err)
			if !errors.Is(err, errInterrupted) && !(is && aborted.Code == wire.AbortInterrupted) {
				t.Errorf("the %s: %v", side, err)
			}
		}
		l.mustResume(t, sender, want)
	})
}

// A transfer whose connection is cut ends on both sides at once, releases everything, and goes on over the next
// connection.
func TestLinkedCut(t *testing.T) {
	eachTransport(t, func(t *testing.T, over transport) {
		for _, sender := range []wire.Side{wire.Host, wire.DPU} {
			t.Run("from the "+sender.String(), func(t *testing.T) { cutsAndResumes(t, over, sender) })
		}
	})
}

func cutsAndResumes(t *testing.T, over transport, sender wire.Side) {
	setup := newSetup(t, "")
	setup.host.Path, setup.dpu.Path = over.choice, over.choice
	setup.host.Log, setup.dpu.Log = lenientLogs(t) // a device may warn of the loss
	l, disconnect := setup.connect(t, over)
	from, _ := l.files(sender)
	want := content(interruptedSize)
	jobtest.WriteFile(t, from.File, want)
	both := l.during(t.Context(), sender, func() { _ = l.ends[wire.Host].raw.Close() })
	for side, err := range both.errs {
		lost := errors.Is(err, comch.ErrPeerLost) || errors.Is(err, wire.ErrPeerLost)
		if !lost && !errors.Is(err, comch.ErrClosed) {
			t.Errorf("the %s: %v", side, err)
		}
	}
	disconnect()
	next, disconnect := setup.connect(t, over)
	defer disconnect()
	next.mustResume(t, sender, want)
}

// The memory of the sender may not be within reach of the receiver. Then both go on with another path, and begin the
// next transfer with it.
func TestLinkedLeavesRMA(t *testing.T) {
	over := overUCX(wire.PathMessages, job.AnyPath, "tcp")
	over.outOfReach(wire.PathMessages)
	bothWays(t, over, func(t *testing.T, l *linkedPair, sender wire.Side) {
		l.host.Log, l.dpu.Log = lenientLogs(t)
		from, to := l.files(sender)
		jobtest.WriteFile(t, from.File, content(3*testChunk))
		for range 2 {
			for side, is := range l.mustCopy(t, sender).summaries {
				if is.DataPath != wire.PathMessages || side == sender && is.Transport == "" {
					t.Errorf("the %s has copied by %s over %q", side, is.DataPath, is.Transport)
				}
			}
			jobtest.MustContain(t, to.File, content(3*testChunk))
			must(t, os.Remove(to.File))
		}
	})
}

// Where no other path is permitted, both sides end with the same code, and with what can be done about it.
func TestLinkedOnlyRMAOutOfReach(t *testing.T) {
	over := overUCX(wire.PathMessages, job.AnyPath, "tcp")
	over.outOfReach()
	bothWays(t, over, func(t *testing.T, l *linkedPair, sender wire.Side) {
		l.host.Log, l.dpu.Log = lenientLogs(t)
		from, _ := l.files(sender)
		jobtest.WriteFile(t, from.File, content(3*testChunk))
		errs := l.copy(t.Context(), sender).errs
		receiver := sender.Other()
		var told *job.Error
		if err := errs[receiver]; !errors.Is(err, job.ErrCapability) || !errors.Is(err, window.ErrUnreachable) ||
			!errors.As(err, &told) || !strings.Contains(told.Next, "--path tls") {
			t.Errorf("the receiver: %v", err)
		}
		aborted, is := errors.AsType[*native.PeerAborted](errs[sender])
		if !is || aborted.Code != wire.AbortDevice {
			t.Errorf("the sender: %v", errs[sender])
		}
	})
}

// outOfReach lets both sides use rma, with memory that the other side cannot read, and otherwise some paths of before.
func (over *transport) outOfReach(others ...wire.Path) {
	connect := over.connect
	over.connect = func(t testing.TB, s *setup) connected {
		c := connect(t, s)
		for side, m := range c.memory {
			c.memory[side] = outOfReach{m, job.PathsOf(others...)}
		}
		return c
	}
}

// outOfReach is a memory that cannot be read from the other side.
type outOfReach struct {
	window.Memory
	others job.Paths // besides rma
}

func (o outOfReach) Paths(choice job.PathChoice) (job.Paths, error) {
	p, err := o.Memory.Paths(choice)
	return p.Intersect(o.others) | job.PathsOf(wire.PathRMA), err
}

func (o outOfReach) Expose(ctx context.Context, l window.Layout) (*window.Window, error) {
	if l.Path != wire.PathRMA {
		return o.Memory.Expose(ctx, l)
	}
	w := window.NewHostWindow(l, make([]byte, l.Length()))
	w.Descriptor = native.AppendWorkers(nil, native.Workers{Addresses: [][]byte{{1}}, Key: []byte{1}})
	return w, nil
}

func (o outOfReach) Open(ctx context.Context, l window.Layout, of native.Window) (*window.Window, error) {
	if l.Path == wire.PathRMA {
		return nil, window.ErrUnreachable
	}
	return o.Memory.Open(ctx, l, of)
}
