package dmaxfer

import (
	"context"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

const (
	// pulsesPerIdle is how often within the idle timeout a side says that it is alive, and looks whether the other is.
	pulsesPerIdle = 8

	// longestPulse is how long a living side that has nothing to say may be silent. A peer counts on it, since it does not know this
	// side's idle timeout.
	longestPulse = 100 * time.Millisecond

	// shortestIdle lets some of the peer's pulses be late, whatever the idle timeout is.
	shortestIdle = 3 * longestPulse
)

// How long a peer that says that it works is believed, where this side sees nothing of it and even if that is longer than the idle timeout.
// Nobody can tell a slow disk from a lie, so each is as long as an honest peer may need.
const (
	// slowPiece is for one piece that a paced lane holds back, or a disk takes. It is within the second that a side may take beyond its
	// idle timeout.
	slowPiece = time.Second

	// slowNaming is for the calls that give the file its name, which nothing interrupts.
	slowNaming = 30 * time.Second

	// longestNaming is for the same calls on this side, which knows best and so gives up later.
	longestNaming = 2 * slowNaming

	// slowestDisk is how many bytes a second are allocated, flushed or read back at least, by a memory card or far away.
	slowestDisk = 4 << 20
)

// slowWork is for work on so many bytes.
func slowWork(bytes int64) time.Duration {
	return slowPiece + time.Duration(max(bytes, 0)/slowestDisk)*time.Second
}

// liveness judges by heartbeats whether a copy is still going somewhere. It counts pulses instead of reading a clock, so that
// a process that was stopped, or a machine that slept, does not blame its peer for its own absence.
type liveness struct {
	side     negotiate.Side
	idle     time.Duration
	ticker   *time.Ticker
	interval time.Duration // of the pulse
	limit    int           // pulses in the idle timeout
	unsaid   int           // pulses since the peer was heard
	stuck    int           // pulses since anything moved on either side, the peer's word being taken for it
	unseen   int           // pulses since this side saw anything move

	own, peer negotiate.Beat
}

func (l *liveness) start(side negotiate.Side, idle time.Duration) {
	interval := pulseOf(idle)
	l.side, l.idle, l.interval = side, idle, interval
	l.limit = int((max(idle, shortestIdle) + interval - 1) / interval)
	l.ticker = time.NewTicker(interval)
}

// pulseOf is the interval in which a wait of that length is counted.
func pulseOf(wait time.Duration) time.Duration {
	return max(time.Millisecond, min(wait/pulsesPerIdle, longestPulse))
}

func (l *liveness) stop() { l.ticker.Stop() }

func (l *liveness) pulse() <-chan time.Time { return l.ticker.C }

// untilSilent is ctx for as long as the peer may still be silent, and so as long as a message to it may wait for room. It counts from when
// somebody waits for its end, which most messages need not. The caller calls end.
func (l *liveness) untilSilent(ctx context.Context) *silence { return &silence{Context: ctx, of: l} }

// silence is the context of one message. It is used by one goroutine at a time.
type silence struct {
	context.Context // the caller's, until somebody waits
	of              *liveness
	stop            func() // nil until then
}

// Done implements context.Context.
func (s *silence) Done() <-chan struct{} {
	if s.stop == nil {
		s.Context, s.stop = s.of.countdown(s.Context)
	}
	return s.Context.Done()
}

func (s *silence) end() {
	if s.stop != nil {
		s.stop()
	}
}

func (l *liveness) countdown(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	c := &countdown{ctx: ctx, left: l.limit - l.unsaid + 1, interval: l.interval, over: func() { end(l.silent()) }}
	c.start()
	return ctx, func() {
		c.stop()
		end(nil)
	}
}

// countdown counts pulses like its liveness does: to a process that was stopped the time of that is one.
type countdown struct {
	ctx      context.Context
	interval time.Duration
	over     func()

	mu    sync.Mutex
	timer *time.Timer
	left  int // pulses
}

// newCountdown calls over after that time, unless ctx ends or stop is called before.
func newCountdown(ctx context.Context, wait time.Duration, over func()) *countdown {
	interval := pulseOf(wait)
	c := &countdown{ctx: ctx, interval: interval, left: int((wait + interval - 1) / interval), over: over}
	c.start()
	return c
}

func (c *countdown) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(c.interval, c.count)
}

func (c *countdown) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
}

func (c *countdown) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left <= 0 {
		c.over()
	} else if c.ctx.Err() == nil {
		c.timer.Reset(c.interval)
	}
}

// heard notes any message of the peer.
func (l *liveness) heard() { l.unsaid = 0 }

// moved notes that the copy came a step further.
func (l *liveness) moved() { l.stuck, l.unseen = 0, 0 }

// worked notes what this side has done by itself.
func (l *liveness) worked(b negotiate.Beat) {
	if l.own != b {
		l.own = b
		l.moved()
	}
}

// peerWorked notes what the peer says it has done. The session has checked that it does not go back.
func (l *liveness) peerWorked(b negotiate.Beat) {
	if l.peer != b {
		l.peer = b
		l.stuck = 0
	}
}

// verdict is called at every pulse. patience is how long the peer's word is believed for what it has to do now.
func (l *liveness) verdict(patience time.Duration) error {
	l.unsaid++
	l.stuck++
	l.unseen++
	switch {
	case l.unsaid > l.limit:
		return l.silent()
	case l.stuck > l.limit:
		return stalled(l.idle)
	case l.unseen > l.limit && l.since(l.unseen-1) > patience:
		return failure(ErrIdle, nil, "check the other side, or raise --idle-timeout",
			"timeout: the %s sent heartbeats but made no progress for %s", l.side.Other(), l.since(l.unseen-1))
	}
	return nil
}

// naming is called at every pulse while the file gets its name, and returns for how long that has been.
func (l *liveness) naming() time.Duration {
	l.unseen++
	return l.since(l.unseen)
}

// missed tells whether the peer has left out a heartbeat.
func (l *liveness) missed() bool { return l.since(l.unsaid) >= 2*longestPulse }

// since is how long so many pulses take.
func (l *liveness) since(pulses int) time.Duration { return time.Duration(pulses) * l.interval }

func (l *liveness) silent() error {
	return failure(ErrIdle, nil, "check the other side, or raise --idle-timeout",
		"timeout: no message from the %s for %s", l.side.Other(), l.idle)
}
