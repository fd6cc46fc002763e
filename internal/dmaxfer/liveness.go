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

// liveness judges by heartbeats whether a copy is still going somewhere. It counts pulses instead of reading a clock, so that
// a process that was stopped, or a machine that slept, does not blame its peer for its own absence.
type liveness struct {
	side     negotiate.Side
	idle     time.Duration
	ticker   *time.Ticker
	interval time.Duration // of the pulse
	limit    int           // pulses in the idle timeout
	unsaid   int           // pulses since the peer was heard
	stuck    int           // pulses since anything moved on either side

	own, peer negotiate.Beat
}

func (l *liveness) start(side negotiate.Side, idle time.Duration) {
	interval := max(time.Millisecond, min(idle/pulsesPerIdle, longestPulse))
	l.side, l.idle, l.interval = side, idle, interval
	l.limit = int((max(idle, shortestIdle) + interval - 1) / interval)
	l.ticker = time.NewTicker(interval)
}

func (l *liveness) stop() { l.ticker.Stop() }

func (l *liveness) pulse() <-chan time.Time { return l.ticker.C }

// untilSilent is ctx for as long as the peer may still be silent, and so as long as a message to it may wait for room.
func (l *liveness) untilSilent(ctx context.Context) (context.Context, context.CancelFunc) {
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
	left  int
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
func (l *liveness) moved() { l.stuck = 0 }

// worked notes what this side has done by itself.
func (l *liveness) worked(b negotiate.Beat) { l.compare(&l.own, b) }

// peerWorked notes what the peer says it has done. The session has checked that it does not go back.
func (l *liveness) peerWorked(b negotiate.Beat) { l.compare(&l.peer, b) }

func (l *liveness) compare(last *negotiate.Beat, b negotiate.Beat) {
	if *last != b {
		*last = b
		l.moved()
	}
}

// verdict is called at every pulse.
func (l *liveness) verdict() error {
	l.unsaid++
	l.stuck++
	switch {
	case l.unsaid > l.limit:
		return l.silent()
	case l.stuck > l.limit:
		return stalled(l.idle)
	}
	return nil
}

func (l *liveness) silent() error {
	return failure(ErrIdle, nil, "look at the other side, or allow more with --idle-timeout",
		"the %s was silent for %s", l.side.Other(), l.idle)
}
