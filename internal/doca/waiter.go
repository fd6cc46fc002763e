package doca

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waiter lets a goroutine sleep until the notification handle of a progress engine is readable, or wake is called. It
// sleeps in Go's netpoller, which costs no thread.
//
// The handle belongs to DOCA and may be shared with it, so it is not registered with the netpoller, which would change
// its flags, but watched through an epoll descriptor of our own, together with an eventfd for wake.
type waiter struct {
	poll   *os.File // epoll over the handle and the eventfd
	conn   syscall.RawConn
	wakeup int
}

func newWaiter(handle int) (*waiter, error) {
	wakeup, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		_ = unix.Close(wakeup)
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	err = unix.SetNonblock(epoll, true) // before NewFile, which then uses the netpoller
	w := &waiter{poll: os.NewFile(uintptr(epoll), "progress engine"), wakeup: wakeup}
	for _, fd := range []int{handle, wakeup} {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		err = cmp.Or(err, unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &event))
	}
	if err == nil {
		w.conn, err = w.poll.SyscallConn()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("epoll_ctl: %w", err), w.close())
	}
	return w, nil
}

// wait returns when the handle is readable, wake was called since the last wait, or the deadline has passed (zero:
// none).
func (w *waiter) wait(deadline time.Time) error {
	if err := w.poll.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("progress engine: %w", err)
	}
	err := w.conn.Read(func(fd uintptr) bool { return readable(int(fd)) })
	w.drain()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// waitWith is wait until ctx ends. After it has returned ctx does not use the waiter, so that it may be closed.
func (w *waiter) waitWith(ctx context.Context) error {
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		w.wake()
		close(woken)
	})
	err := w.wait(time.Time{})
	if !stop() {
		<-woken
	}
	return err
}

func readable(epoll int) bool {
	var events [1]unix.EpollEvent
	n, err := unix.EpollWait(epoll, events[:], 0)
	return n > 0 || (err != nil && err != unix.EINTR)
}

func (w *waiter) drain() {
	var count [8]byte
	_, _ = unix.Read(w.wakeup, count[:])
}

// wake ends the present wait, or the next one. It is safe for concurrent use, but not with close.
func (w *waiter) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(w.wakeup, one[:])
}

func (w *waiter) close() error {
	return errors.Join(w.poll.Close(), unix.Close(w.wakeup))
}
