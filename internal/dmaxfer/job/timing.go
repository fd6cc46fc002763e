package job

import (
	"context"
	"sync"
	"time"
)

// How long to wait. Waits are counted in pulses instead of read from a clock, so that a process that was stopped, or a
// machine that was suspended, does not blame its peer for its own absence.
const (
	// pulsesPerIdle is how many pulses an idle timeout has at least.
	pulsesPerIdle = 8

	// LongestPulse is how long a side that has nothing to send may be silent. The peer relies on it, since it does not
	// know this side's idle timeout.
	LongestPulse = 100 * time.Millisecond

	// ShortestIdle tolerates some late heartbeats of the peer, regardless of the idle timeout.
	ShortestIdle = 3 * LongestPulse

	// PartingTime is how long a side that gives up waits for the peer to read why. With the longest pulse it is within
	// the second that a side may take beyond its idle timeout.
	PartingTime = 500 * time.Millisecond

	// LossNotice is how long a failed transfer waits to learn whether the loss of the peer is the cause: the device
	// notices that before the control channel does.
	LossNotice = 500 * time.Millisecond

	// RenameGrace is how long after an interruption the calls that rename the target may take.
	RenameGrace = 10 * time.Second

	// PeerRenameTime is how long a sender waits for the calls of the receiver that rename the target.
	PeerRenameTime = 30 * time.Second

	// LongestRename is for the same calls on the receiver, which knows best and so gives up later.
	LongestRename = 2 * PeerRenameTime

	// ReturnTime is how long a call may take to return after the transfer has ended.
	ReturnTime = 2 * time.Second

	// ReleaseTime is how long the release of resources may take: a device may take ten seconds to release memory.
	ReleaseTime = 12 * time.Second
)

// Overtime returns a context that ends, with the cause of ctx, that much later than ctx.
func Overtime(ctx context.Context, by time.Duration) context.Context {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		time.AfterFunc(by, func() { end(context.Cause(ctx)) })
	})
	return late
}

// PulseOf returns the interval in which a wait of that length is counted.
func PulseOf(wait time.Duration) time.Duration {
	return max(time.Millisecond, min(wait/pulsesPerIdle, LongestPulse))
}

// PulsesIn returns how many pulses of that interval a wait has.
func PulsesIn(wait, interval time.Duration) int { return int((wait + interval - 1) / interval) }

// Countdown calls a function after a number of pulses. It is safe for concurrent use.
type Countdown struct {
	mu    sync.Mutex
	timer *time.Timer
}

// NewCountdown starts a Countdown that calls over after that many pulses, unless ctx ends or Stop is called before.
func NewCountdown(ctx context.Context, pulses int, interval time.Duration, over func()) *Countdown {
	c := &Countdown{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(interval, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if pulses--; pulses <= 0 {
			over()
		} else if ctx.Err() == nil {
			c.timer.Reset(interval)
		}
	})
	return c
}

// Stop ends the countdown.
func (c *Countdown) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
}
