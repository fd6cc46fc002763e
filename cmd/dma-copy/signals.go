package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/background"
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
	asked := make(chan os.Signal, 1) // one while one is answered is answered, too; more are not
	signal.Notify(asked, syscall.SIGUSR1)
	ctx = context.WithValue(ctx, askedKey{}, asked)

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
	asked, _ := ctx.Value(askedKey{}).(chan os.Signal)
	return asked
}

// passRequest asks the receiver of a channel for progress, unless it has been asked and has not answered yet.
func passRequest(to chan<- os.Signal) {
	select {
	case to <- syscall.SIGUSR1:
	default:
	}
}

// answerBefore returns a context whose requests for progress are those of ctx for which answer returns false, until
// stop is called.
func answerBefore(ctx context.Context, answer func() bool) (rest context.Context, stop func()) {
	others := make(chan os.Signal, 1)
	return context.WithValue(ctx, askedKey{}, others), background.Answer(progressRequests(ctx), func() {
		if !answer() {
			passRequest(others)
		}
	})
}

// peerRequests pass requests on to copies that run at the same time. Safe for concurrent use.
type peerRequests struct {
	mu     sync.Mutex
	copies map[chan os.Signal]bool
}

// pass has each copy answer.
func (p *peerRequests) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for each := range p.copies {
		passRequest(each)
	}
}

// passTo returns a context whose progressRequests are those of one more copy, until end is called.
func (p *peerRequests) passTo(ctx context.Context) (copying context.Context, end func()) {
	added := make(chan os.Signal, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.copies == nil {
		p.copies = make(map[chan os.Signal]bool)
	}
	p.copies[added] = true
	return context.WithValue(ctx, askedKey{}, added), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.copies, added)
	}
}

// ignoreSIGPIPE lets a copy, whose result is a file, continue when the reader of its events or messages is gone.
// Commands whose result is their output keep the default, which ends them. The data of a stream are written to a
// descriptor of their own, where the error fails the copy.
func ignoreSIGPIPE() { signal.Ignore(syscall.SIGPIPE) }
