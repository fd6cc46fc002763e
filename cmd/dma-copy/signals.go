package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
)

// withSignals returns a context that the first SIGINT, SIGTERM or SIGHUP cancels with an exit.Interrupted as its
// cause. From then on SIGINT and SIGTERM have their default effect again, so that a second one kills a run that does
// not drain, and SIGHUP is ignored: a terminal that is closed may send it twice. A SIGHUP that was ignored at the
// start, as under nohup, stays ignored. A command may divert SIGHUP before. SIGUSR1 is for progressRequests. stop
// releases the signals and waits until it has; calling it twice is harmless.
func withSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	arrivals := make(chan os.Signal, 1)
	signal.Notify(arrivals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(arrivals, syscall.SIGHUP)
	}
	hangups := &hangups{arrived: make(chan struct{}, 1), again: func() {
		select {
		case arrivals <- syscall.SIGHUP:
		default: // one is there, or another signal, which ends the run
		}
	}}
	ctx = context.WithValue(ctx, hangupsKey{}, hangups)
	asked := make(chan os.Signal, 1) // a request while one is answered is answered, too; more are not
	signal.Notify(asked, syscall.SIGUSR1)
	ctx = context.WithValue(ctx, askedKey{}, (<-chan os.Signal)(asked))

	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case arrived := <-arrivals:
				if arrived == syscall.SIGHUP && hangups.take() {
					continue
				}
				// Before the cancellation: once the context has ended, a second signal must kill.
				signal.Ignore(syscall.SIGHUP)
				signal.Stop(arrivals)
				cancel(exit.Interrupted{Signal: arrived.(syscall.Signal)})
			case <-ctx.Done():
				signal.Stop(arrivals)
			}
			return
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-watched
		signal.Stop(asked)
	}
}

type askedKey struct{}

// progressRequests returns the channel of the SIGUSR1s of withSignals, each of which asks for one line of progress. Of
// several receivers one gets it. It is nil, which never delivers, for another context.
func progressRequests(ctx context.Context) <-chan os.Signal {
	asked, _ := ctx.Value(askedKey{}).(<-chan os.Signal)
	return asked
}

// withoutProgressRequests returns a context for parts of a command whose progress the command itself reports.
func withoutProgressRequests(ctx context.Context) context.Context {
	return context.WithValue(ctx, askedKey{}, (<-chan os.Signal)(nil))
}

// ignoreSIGPIPE lets a copy, whose result is a file, continue when the reader of its events or messages is gone.
// Commands whose result is their output keep the default, which ends them. The data of a stream are written to a
// descriptor of their own, where the error fails the copy.
func ignoreSIGPIPE() { signal.Ignore(syscall.SIGPIPE) }
