package main

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// hangups takes the SIGHUPs of a command that does not end by them, unless they are those of its terminal: the kernel
// and shells send SIGHUP when the controlling terminal is gone, and the sender of a signal is not known here.
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

// divertHangups lets SIGHUP be delivered by the channel, and not end the context of withSignals any more, unless the
// controlling terminal is gone. It returns nil for another context.
func divertHangups(ctx context.Context) <-chan struct{} {
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
