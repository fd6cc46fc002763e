package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how a copy ends although a call into the device or the file system does not return: a goroutine other
// than the owner makes the call, and the owner stops waiting for it.

// ErrHung is in an error of Run, beside its cause, if a call into the device or the file system had not returned by
// then. What the call may use stays open, registered and mapped, and is given back if it returns after all. Until then
// the Device must not be closed.
var ErrHung = errors.New("a call into the device or the file system did not return, so its resources stay open")

const (
	// returnTime is how long a call may take to return after the copy has ended.
	returnTime = 2 * time.Second

	// releaseTime is how long it may take to give back what a copy held: a device may take ten seconds to let go of
	// memory.
	releaseTime = 12 * time.Second
)

// hung adds ErrHung to the cause of a failure, if there is one.
func hung(cause error) error {
	if cause == nil {
		return ErrHung
	}
	return fmt.Errorf("%w; %w", cause, ErrHung)
}

// within does work in another goroutine. Like liveness it counts pulses: it ends the work's context with the error of
// slow if beat, which may be nil, has not changed for the patience. The work then has returnTime to return; returned is
// false if it has not, and err is why the context ended.
func within(
	ctx context.Context, patience time.Duration, beat func() negotiate.Beat, slow func() error,
	work func(context.Context) error,
) (returned bool, err error) {
	working, end := context.WithCancelCause(ctx)
	defer end(nil)
	ended := make(chan error, 1)
	go func() { ended <- work(working) }()
	pulse := time.NewTicker(longestPulse)
	defer pulse.Stop()
	limit := pulsesIn(patience)
	for last, still := (negotiate.Beat{}), 0; working.Err() == nil; {
		select {
		case err := <-ended:
			return true, err
		case <-working.Done():
		case <-pulse.C:
			if now := beatOf(beat); now != last {
				last, still = now, 0
			}
			if still++; still > limit {
				end(slow())
			}
		}
	}
	select {
	case err := <-ended:
		return true, err
	case <-time.After(returnTime):
		return false, context.Cause(working)
	}
}

func pulsesIn(d time.Duration) int {
	return int((max(d, shortestIdle) + longestPulse - 1) / longestPulse)
}

func beatOf(beat func() negotiate.Beat) negotiate.Beat {
	if beat == nil {
		return negotiate.Beat{}
	}
	return beat()
}
