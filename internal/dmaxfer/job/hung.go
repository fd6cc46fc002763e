package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// ErrHung is in an error beside its cause if a call into the device or the file system had not returned when the
// transfer ended. Everything that the call may use stays open, registered and mapped, and is released if it returns
// after all. Until then the device must not be closed.
var ErrHung = exit.NewReason(exit.Peer, "check the device and the disk",
	"a call into the device or the file system did not return, so its resources stay open")

// Hung adds ErrHung to the cause of a failure, which may be nil, unless it is one.
func Hung(cause error) error {
	switch {
	case cause == nil:
		return ErrHung
	case errors.Is(cause, ErrHung):
		return cause
	}
	return fmt.Errorf("%w; %w", cause, ErrHung)
}

// Calls makes calls that may hang, each in a goroutine of its own. Do and Hung are for one goroutine.
type Calls struct {
	Slow func(grace time.Duration) error // the error of a call without progress; nil: Stalled

	running sync.WaitGroup
	calling atomic.Int64 // calls that have not returned
	still   atomic.Int64 // pulses of the last call without progress
	hung    bool
}

// Do makes a call and waits for it. A call without progress, as beat reports it, for the grace is a Slow error, and
// ends the context of the call. The call then has ReturnTime to return; after that Do returns, and Hung is true. A call
// that panics has returned a *Defect.
func (c *Calls) Do(ctx context.Context,
	grace time.Duration, beat func() native.Beat, call func(context.Context) error,
) error {
	c.running.Add(1)
	c.calling.Add(1)
	c.still.Store(0)
	slow := c.Slow
	if slow == nil {
		slow = Stalled
	}
	returned, err := within(ctx, grace, beat, &c.still, func() error { return slow(grace) },
		func(ctx context.Context) error {
			defer c.running.Done()
			defer c.calling.Add(-1)
			return call(ctx)
		})
	c.hung = c.hung || !returned
	return err
}

// Hung reports whether a call has not returned to Do. Variables that the call sets must not be used until Wait has
// returned.
func (c *Calls) Hung() bool { return c.hung }

// Calling returns how many calls have not returned, and for how long the last one has made no progress. Any goroutine
// may call it.
func (c *Calls) Calling() (calls int, still time.Duration) {
	return int(c.calling.Load()), time.Duration(c.still.Load()) * LongestPulse
}

// Wait waits until all calls have returned.
func (c *Calls) Wait() { c.running.Wait() }

// within makes a call in another goroutine. It ends the context of the call with the error of slow if beat, which may
// be nil, has not changed for the grace; still counts the pulses since it has. The call then has ReturnTime to
// return; returned is false if it has not, and err is why its context ended.
func within(ctx context.Context,
	grace time.Duration, beat func() native.Beat, still *atomic.Int64, slow func() error,
	call func(context.Context) error,
) (returned bool, err error) {
	calling, end := context.WithCancelCause(ctx)
	defer end(nil)
	ended := make(chan error, 1)
	go func() {
		ended <- func() (err error) {
			defer Recover(&err)
			return call(calling)
		}()
	}()
	pulse := time.NewTicker(LongestPulse)
	defer pulse.Stop()
	limit := PulsesIn(max(grace, ShortestIdle), LongestPulse)
	for last := (native.Beat{}); calling.Err() == nil; {
		select {
		case err := <-ended:
			return true, err
		case <-calling.Done():
		case <-pulse.C:
			still.Add(1)
			if now := beatOf(beat); now != last {
				last = now
				still.Store(0)
			}
			if still.Load() >= int64(limit) {
				end(slow())
			}
		}
	}
	select {
	case err := <-ended:
		return true, err
	case <-time.After(ReturnTime):
		return false, context.Cause(calling)
	}
}

func beatOf(beat func() native.Beat) native.Beat {
	if beat == nil {
		return native.Beat{}
	}
	return beat()
}
