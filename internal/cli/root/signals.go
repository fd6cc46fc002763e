package root

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/background"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// WithSignals returns a context that the first SIGINT, SIGTERM or SIGHUP cancels with an exit.Interrupted as its
// cause. From then on SIGINT and SIGTERM have their default effect again, so that a second one kills a run that does
// not drain, and SIGHUP is ignored: a terminal that is closed may send it twice. A SIGHUP that was ignored at the
// start, as under nohup, stays ignored. A command may divert SIGHUP before. SIGUSR1 is for ProgressRequests. stop
// releases the signals and waits until it has; calling it twice is harmless.
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
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

// ProgressRequests returns the channel of the SIGUSR1s of WithSignals, each of which asks for one line of progress. One
// of several receivers gets it. It is nil, which never delivers, for another context.
func ProgressRequests(ctx context.Context) <-chan os.Signal {
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

// AnswerBefore returns a context whose requests for progress are the requests of ctx for which answer returns false,
// until stop is called.
func AnswerBefore(ctx context.Context, answer func() bool) (rest context.Context, stop func()) {
	others := make(chan os.Signal, 1)
	return context.WithValue(ctx, askedKey{}, others), background.Answer(ProgressRequests(ctx), func() {
		if !answer() {
			passRequest(others)
		}
	})
}

// PeerRequests pass requests on to copies that run at the same time. Safe for concurrent use.
type PeerRequests struct {
	mu     sync.Mutex
	copies map[chan os.Signal]bool
}

// Pass has each copy answer.
func (p *PeerRequests) Pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for each := range p.copies {
		passRequest(each)
	}
}

// PassTo returns a context whose ProgressRequests are the requests to one more copy, until end is called.
func (p *PeerRequests) PassTo(ctx context.Context) (copying context.Context, end func()) {
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

// IgnoreSIGPIPE lets a copy, whose result is a file, continue when the reader of its events or messages is gone.
// Commands whose result is their output keep the default, which ends them. The data of a stream are written to a
// descriptor of their own, where the error fails the copy.
func IgnoreSIGPIPE() { signal.Ignore(syscall.SIGPIPE) }

// hangups takes the SIGHUPs of a command that does not end by them, unless its terminal is gone: the kernel and shells
// send SIGHUP then, and the sender of a signal is not known here.
type hangups struct {
	arrived chan struct{}
	again   func() // lets a SIGHUP arrive again

	mu       sync.Mutex // guards what follows
	diverted bool
	terminal *os.File  // nil: there was none
	last     time.Time // of SIGHUP
	lost     time.Time // of the terminal; zero: not noticed
}

// A shell that loses its terminal passes SIGHUP on to its jobs, and one that exits may do so just before the terminal
// is gone. Long after the terminal was lost, as by the logout of a user whose daemon stays, SIGHUP is a request again.
const (
	hangupAfterLoss  = 5 * time.Second
	hangupBeforeLoss = time.Second
)

type hangupsKey struct{}

// DivertHangups lets SIGHUP be delivered by the channel, and not end the context of WithSignals any more, unless the
// controlling terminal is gone. It returns nil for another context.
func DivertHangups(ctx context.Context) <-chan struct{} {
	h, is := ctx.Value(hangupsKey{}).(*hangups)
	if !is {
		return nil
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		terminal = nil // there is none
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.diverted, h.terminal = true, terminal
	if terminal != nil {
		go h.watch(terminal)
		context.AfterFunc(ctx, func() { _ = terminal.Close() }) // it was only watched
	}
	return h.arrived
}

// watch waits until the terminal is gone, or its file closed.
func (h *hangups) watch(terminal *os.File) {
	raw, err := terminal.SyscallConn()
	if err == nil {
		err = raw.Read(isHungUp)
	}
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = time.Now()
	if h.lost.Sub(h.last) < hangupBeforeLoss {
		h.again()
	}
}

func isHungUp(terminal uintptr) bool {
	watched := []unix.PollFd{{Fd: int32(terminal)}}
	n, err := unix.Poll(watched, 0)
	return err == nil && n > 0 && watched[0].Revents&unix.POLLHUP != 0
}

// take reports whether SIGHUP is diverted, and if so delivers it. One that nobody has received yet is enough.
func (h *hangups) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Now()
	if !h.diverted || h.hasLostTerminal() {
		return false
	}
	select {
	case h.arrived <- struct{}{}:
	default:
	}
	return true
}

// hasLostTerminal reports whether the terminal is gone, and was not long ago. h.mu is held.
func (h *hangups) hasLostTerminal() (lost bool) {
	if h.terminal == nil || !h.lost.IsZero() {
		return time.Since(h.lost) < hangupAfterLoss
	}
	if raw, err := h.terminal.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { lost = isHungUp(fd) }) // it is closed when the run ends
	}
	return lost
}

// errTimeLimit is the cause of a context that --timeout has ended.
var errTimeLimit = exit.Errorf(exit.Limit, "raise --timeout", "stopped by --timeout")

// LimitTime returns a context that --timeout ends; 0 is no limit.
func LimitTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %s", errTimeLimit, limit))
}
