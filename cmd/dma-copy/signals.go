package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// interruptedError is the cause of a context that a signal cancelled.
type interruptedError struct {
	Signal os.Signal // SIGINT or SIGTERM
}

// Error names the signal.
func (e interruptedError) Error() string {
	if number, ok := e.Signal.(syscall.Signal); ok {
		return fmt.Sprintf("stopped by %s", unix.SignalName(number))
	}
	return fmt.Sprintf("stopped by signal %v", e.Signal)
}

// withSignals returns a context that the first SIGINT or SIGTERM cancels with an interruptedError as its cause. From
// then on the signals have their default effect again, so that a second one kills a run that does not drain.
// stop ends the watch, restores the default effect and returns when nothing of the watch is left; calling it twice is
// harmless.
func withSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	arrivals := make(chan os.Signal, 1)
	signal.Notify(arrivals, syscall.SIGINT, syscall.SIGTERM)

	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case arrived := <-arrivals:
			// Before the cancellation: whoever sees the context end may count on the second signal.
			signal.Stop(arrivals)
			cancel(interruptedError{Signal: arrived})
		case <-ctx.Done():
			signal.Stop(arrivals)
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-watched
	}
}
