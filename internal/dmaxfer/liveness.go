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

// For how many idle timeouts a peer that says that it works is believed, where this side sees nothing of it. Nobody can tell a slow
// disk from a lie, so each is as long as an honest peer may need that just does not stand still.
const (
	// patienceWithPiece is for one piece that a paced lane holds back, or a slow disk takes.
	patienceWithPiece = 4

	// patienceWithName is for the calls that give the file its name, which nothing interrupts.
	patienceWithName = 4

	// slowestDisk is how many bytes a second are allocated, flushed or read back at least, by a memory card or far away.
	slowestDisk = 4 << 20
)

// patienceWith is for work on so many bytes, whatever the idle timeout is.
func (l *liveness) patienceWith(bytes int64) int {
	needed := time.Duration(max(bytes, 0)/slowestDisk) * time.Second
	return 1 + int(needed/(time.Duration(l.limit)*l.interval))
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
	stuck    int           // pulses since anything moved on either side, the peer's word being taken for it as far as it is
	unseen   int           // pulses since this side saw anything move

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
func (l *liveness) moved() { l.stuck, l.unseen = 0, 0 }

// worked notes what this side has done by itself.
func (l *liveness) worked(b negotiate.Beat) {
	if l.own != b {
		l.own = b
		l.moved()
	}
}

// peerWorked notes what the peer says it has done, and believes it for so many idle timeouts since this side saw anything move. The
// session has checked that it does not go back.
func (l *liveness) peerWorked(b negotiate.Beat, patience int) {
	if l.peer == b {
		return
	}
	l.peer = b
	if l.unseen <= patience*l.limit {
		l.stuck = 0
	}
}

// verdict is called at every pulse.
func (l *liveness) verdict() error {
	l.unsaid++
	l.stuck++
	l.unseen++
	switch {
	case l.unsaid > l.limit:
		return l.silent()
	case l.stuck > l.limit && l.unseen > l.stuck:
		return failure(ErrIdle, nil, "look at the other side, or allow more with --idle-timeout",
			"the %s says that it works, but nothing has come of it for %s", l.side.Other(), time.Duration(l.unseen-1)*l.interval)
	case l.stuck > l.limit:
		return stalled(l.idle)
	}
	return nil
}

// missed tells whether the peer has left out a heartbeat.
func (l *liveness) missed() bool { return time.Duration(l.unsaid)*l.interval >= 2*longestPulse }

func (l *liveness) silent() error {
	return failure(ErrIdle, nil, "look at the other side, or allow more with --idle-timeout",
		"the %s was silent for %s", l.side.Other(), l.idle)
}
