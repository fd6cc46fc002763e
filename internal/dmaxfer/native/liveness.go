package native

import (
	"context"
	"errors"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// liveness judges by heartbeats whether a transfer still makes progress. It counts pulses instead of reading a clock;
// see package job.
type liveness struct {
	side     wire.Side
	idle     time.Duration
	ticker   *time.Ticker
	interval time.Duration // of the pulse
	limit    int           // pulses in the idle timeout
	silent   int           // pulses since a message of the peer
	stalled  int           // pulses since progress on either side, by the peer's word if it has to be
	unproven int           // pulses since progress that this side has seen itself

	sending   time.Time // since when a message waits for room in the queue of the peer; zero: none does
	held      int       // pulses that passed unseen while the last message waited, until the peer was given up
	own, peer protocol.Beat
	moved     int64 // steps of carriedStep
}

// carriedStep is how many bytes of incomplete chunks are progress: a peer that sends a byte now and then makes none.
const carriedStep = 64 << 10

func (l *liveness) start(side wire.Side, idle time.Duration) {
	interval := job.PulseOf(idle)
	l.side, l.idle, l.interval = side, idle, interval
	l.limit = job.PulsesIn(max(idle, job.ShortestIdle), interval)
	l.ticker = time.NewTicker(interval)
}

func (l *liveness) stop() { l.ticker.Stop() }

func (l *liveness) pulse() <-chan time.Time { return l.ticker.C }

// untilSilent returns ctx for as long as the peer may still be silent, which is how long a message to it may wait for a
// full queue. It starts to count when its Done is called, which most messages need not; from then on lent is free. The
// caller calls end.
func (l *liveness) untilSilent(ctx context.Context, lent semaphore) *sendContext {
	return &sendContext{Context: ctx, of: l, lent: lent}
}

// sendContext is the context of one message. It is used by one goroutine at a time.
type sendContext struct {
	context.Context // the caller's, until Done is called
	of              *liveness
	lent            semaphore
	stop            func() // nil until then
}

// Done implements context.Context.
func (s *sendContext) Done() <-chan struct{} {
	if s.stop == nil {
		s.Context, s.stop = s.of.countdown(s.Context)
		s.of.sending = time.Now()
		s.lent.release()
	}
	return s.Context.Done()
}

func (s *sendContext) end() {
	if s.stop != nil {
		s.lent.acquire()
		s.of.sending = time.Time{}
		if errors.Is(context.Cause(s.Context), job.ErrPeerIdle) {
			s.of.held = s.of.limit - s.of.silent + 1
		}
		s.stop()
	}
}

func (l *liveness) countdown(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	c := job.NewCountdown(ctx, l.limit-l.silent+1, l.interval, func() { end(l.silence()) })
	return ctx, func() {
		c.Stop()
		end(nil)
	}
}

// received notes any message of the peer.
func (l *liveness) received() { l.silent = 0 }

// progressed notes progress of the transfer.
func (l *liveness) progressed() { l.stalled, l.unproven = 0, 0 }

// worked notes this side's own progress.
func (l *liveness) worked(b protocol.Beat) {
	if l.own != b {
		l.own = b
		l.progressed()
	}
}

// carried notes how many bytes this side has sent or received, and reports whether they are progress.
func (l *liveness) carried(bytes int64) bool {
	steps := bytes / carriedStep
	progress := steps != l.moved
	l.moved = steps
	return progress
}

// peerWorked notes the progress that the peer reports. The session has checked that it does not go back.
func (l *liveness) peerWorked(b protocol.Beat) {
	if l.peer != b {
		l.peer = b
		l.stalled = 0
	}
}

// check is called at every pulse, and returns an error once the transfer is to end. grace is how long heartbeats of
// the peer alone keep it alive, with what the peer has to do now.
func (l *liveness) check(grace time.Duration) error {
	l.silent++
	l.stalled++
	l.unproven++
	switch {
	case l.silent > l.limit:
		return l.silence()
	case l.missedBeat(): // its silence will tell, so that a peer that was stopped is not said to send heartbeats
		return nil
	case l.stalled > l.limit:
		return job.Stalled(l.idle)
	case l.unproven > l.limit && l.since(l.unproven-1) > grace:
		return job.NewError(job.ErrIdle, job.ErrPeerIdle, "check the other side, or raise --idle-timeout",
			"timeout: the %s sent heartbeats but made no progress for %s", l.side.Other(), l.since(l.unproven-1))
	}
	return nil
}

// renaming is called at every pulse during the final rename, and returns how long that has taken.
func (l *liveness) renaming() time.Duration {
	l.unproven++
	return l.since(l.unproven)
}

// missedBeat reports whether the peer has left out a heartbeat.
func (l *liveness) missedBeat() bool { return l.since(l.silent) >= 2*job.LongestPulse }

// notedSilence is after how long the log says that nothing arrives from the peer: ten heartbeats.
const notedSilence = 10 * job.LongestPulse

// fellSilent reports whether the peer has been silent for notedSilence since this pulse.
func (l *liveness) fellSilent() bool {
	return l.since(l.silent) >= notedSilence && l.since(l.silent-1) < notedSilence
}

// since returns how long that many pulses take.
func (l *liveness) since(pulses int) time.Duration { return time.Duration(pulses) * l.interval }

func (l *liveness) silence() error {
	return job.NewError(job.ErrIdle, job.ErrPeerIdle, "check the other side, or raise --idle-timeout",
		"timeout: no message from the %s for %s", l.side.Other(), l.idle)
}
