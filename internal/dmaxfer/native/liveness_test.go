package native

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// pulsesUntilTheEnd counts the pulses until a transfer is given up whose last progress was a while before the peer's
// last heartbeat. A peer that goes on sends one in each pulse.
func pulsesUntilTheEnd(t *testing.T, without int, goesOn bool) (pulses int, err error) {
	t.Helper()
	var l liveness
	l.start(wire.Host, 3*time.Second)
	defer l.stop()
	for range without {
		l.received()
		if err := l.check(0); err != nil {
			t.Fatal(err)
		}
	}
	for l.received(); err == nil && pulses <= 2*l.limit; pulses++ {
		if goesOn {
			l.received()
		}
		err = l.check(0)
	}
	if pulses > l.limit+1 {
		t.Errorf("it took %d pulses, limit %d", pulses, l.limit)
	}
	return pulses, err
}

// A peer that was stopped is reported as silent, however long before that the last progress was. One that sends
// heartbeats is given up for the lack of progress.
func TestStoppedPeerIsReportedAsSilent(t *testing.T) {
	for _, without := range []int{0, 1, 7, 29} {
		_, err := pulsesUntilTheEnd(t, without, false)
		if !errors.Is(err, job.ErrPeerIdle) || !strings.Contains(err.Error(), "no message from the DPU for 3s") {
			t.Errorf("silent %d pulses after the last progress: %v", without, err)
		}
		pulses, err := pulsesUntilTheEnd(t, without, true)
		if !errors.Is(err, job.ErrIdle) || strings.Contains(err.Error(), "no message") {
			t.Errorf("with heartbeats, %d pulses after the last progress: %v", without, err)
		}
		if l := job.PulsesIn(3*time.Second, job.PulseOf(3*time.Second)); pulses != l+1-without {
			t.Errorf("given up after %d pulses, %d pulses after the last progress", pulses, without)
		}
	}
}

// The log says once that a peer has fallen silent, and again after it has been heard.
func TestSilenceIsNotedOnce(t *testing.T) {
	var l liveness
	l.start(wire.Host, 30*time.Second)
	defer l.stop()
	for range 2 {
		l.received()
		l.progressed()
		noted := 0
		for range l.limit {
			if err := l.check(time.Hour); err != nil {
				t.Fatal(err)
			}
			if l.fellSilent() {
				noted++
			}
		}
		if noted != 1 {
			t.Errorf("noted %d times", noted)
		}
	}
}

// What a slow network has carried of a chunk is progress, but not a byte now and then.
func TestIncompleteChunksAreProgress(t *testing.T) {
	for bytes, enough := range map[int64]bool{carriedStep: true, 1: false} {
		_, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
		config := role.Config{Options: role.Options{Side: wire.DPU}, Conn: dpu, File: &job.LocalFile{}}
		tr := newTransfer(config, started(t))
		tr.watch.start(wire.DPU, 3*time.Second)
		defer tr.watch.stop()
		var carried int64
		tr.carried = func() int64 { return carried }
		var err error
		for n := 0; n < 3*tr.watch.limit && err == nil; n++ {
			carried += bytes
			tr.watch.received()
			err = tr.beat(t.Context())
		}
		if enough && err != nil || !enough && !errors.Is(err, job.ErrIdle) {
			t.Errorf("%d bytes in each pulse: %v", bytes, err)
		}
	}
}

// A chunk that takes longer than the idle timeouts does not end a transfer while its bytes are carried.
func TestSlowChunk(t *testing.T) {
	for _, carries := range []bool{true, false} {
		t.Run(fmt.Sprint("carries ", carries), func(t *testing.T) {
			from := disktest.NewMemory("/")
			from.Put("/src", "content")
			m := newMeeting(t, from, newTarget())
			shared := &sharedMemory{closed: &m.closed}
			m.memory = func(wire.Side) window.Memory { return slowMemory{shared, carries} }
			m.run()
			if carries {
				must(t, errors.Join(m.sender.err, m.receiver.err))
			} else if !errors.Is(m.receiver.err, job.ErrIdle) && !errors.Is(m.sender.err, job.ErrIdle) {
				t.Errorf("sender: %v; receiver: %v", m.sender.err, m.receiver.err)
			}
		})
	}
}

// slowMemory has windows over which a chunk takes five minutes.
type slowMemory struct {
	*sharedMemory
	carries bool // it tells how much of a chunk was carried
}

// Expose implements Memory.
func (s slowMemory) Expose(ctx context.Context, l window.Layout) (*window.Window, error) {
	w, err := s.sharedMemory.Expose(ctx, l)
	return s.slowed(w), err
}

// Open implements Memory.
func (s slowMemory) Open(ctx context.Context, l window.Layout, of protocol.Window) (*window.Window, error) {
	w, err := s.sharedMemory.Open(ctx, l, of)
	return s.slowed(w), err
}

func (s slowMemory) slowed(w *window.Window) *window.Window {
	for i, engine := range w.Engines {
		w.Engines[i] = &slowEngine{Engine: engine}
	}
	if opened := time.Now(); s.carries {
		w.Carried = func() int64 { return int64(time.Since(opened)/time.Second) * carriedStep }
	}
	return w
}

// slowEngine completes what was submitted five minutes later.
type slowEngine struct {
	pump.Engine
	due time.Time
}

// Submit implements pump.Engine.
func (e *slowEngine) Submit(moves []pump.Move) (int, error) {
	e.due = time.Now().Add(5 * time.Minute)
	return e.Engine.Submit(moves)
}

// Poll implements pump.Engine.
func (e *slowEngine) Poll(into []pump.Moved) int {
	if time.Now().Before(e.due) {
		return 0
	}
	return e.Engine.Poll(into)
}

// Reap implements pump.Engine.
func (e *slowEngine) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	select {
	case <-time.After(time.Until(e.due)):
		return e.Engine.Reap(ctx, into)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
