package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
)

// withSignals returns a context that the first SIGINT, SIGTERM or SIGHUP cancels with an exit.Interrupted as its cause.
// From then on SIGINT and SIGTERM have their default effect again, so that a second one kills a run that does not
// drain, and SIGHUP is ignored: a terminal that is closed may send it twice. A SIGHUP that was ignored at the start, as
// under nohup, stays ignored. stop releases the signals and waits until it has; calling it twice is harmless.
func withSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	arrivals := make(chan os.Signal, 1)
	signal.Notify(arrivals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(arrivals, syscall.SIGHUP)
	}

	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case arrived := <-arrivals:
			// Before the cancellation: once the context has ended, a second signal must kill.
			signal.Ignore(syscall.SIGHUP)
			signal.Stop(arrivals)
			cancel(exit.Interrupted{Signal: arrived.(syscall.Signal)})
		case <-ctx.Done():
			signal.Stop(arrivals)
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-watched
	}
}

// ignoreSIGPIPE lets a copy, whose result is a file, continue when the reader of its events or messages is gone.
// Commands whose result is their output keep the default, which ends them. The data of a stream are written to a
// descriptor of their own, where the error fails the copy.
func ignoreSIGPIPE() { signal.Ignore(syscall.SIGPIPE) }
