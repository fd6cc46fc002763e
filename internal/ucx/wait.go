package ucx

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// parker lets the goroutine of a Worker sleep in Go's netpoller, which costs no thread, on a duplicate of the worker's
// event descriptor: os.File closes what it owns, and UCX keeps its own.
type parker struct {
	file *os.File
	conn syscall.RawConn
}

// A worker cannot be armed while messages of it wait for the peer to make room in shared memory: no transport reports
// that. Then it is polled busyPolls times at once, and afterwards once in busyPause, which leaves the CPU to the peer.
const (
	busyPolls = 16
	busyPause = 20 * time.Microsecond
)

func newParker(descriptor int) (*parker, error) {
	fd, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicating the event descriptor: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("fcntl: %w", err)
	}
	p := &parker{file: os.NewFile(uintptr(fd), "ucx worker")}
	if p.conn, err = p.file.SyscallConn(); err != nil {
		_ = p.file.Close()
		return nil, err
	}
	return p, nil
}

// park waits until there is an event, which it adds to the events that the worker has taken, or until ctx ends.
// Progress and arming are part of the netpoller's call: a transport may report only what happens after the netpoller
// has begun to look, so the worker must be found without events after that. And it must be found without events after
// it was armed: arming a completion queue by ibv_req_notify_cq(3) does not report what came just before.
func (w *Worker) park(ctx context.Context) error {
	stop := context.AfterFunc(ctx, w.interrupt)
	defer stop()
	var failure error
	busy := 0
	err := w.parker.conn.Read(func(uintptr) bool {
		for ctx.Err() == nil {
			if w.take() > 0 {
				return true
			}
			status := w.context.abi.workerArm(w.handle)
			if status == StatusOK {
				busy = 0
				if w.take() > 0 || !w.context.abi.workerUnfinished(w.handle) {
					return len(w.taken) > 0
				}
				continue // there is more to do, which the descriptor may not report
			}
			if status != statusBusy {
				failure = failed(w.context.abi, "ucp_worker_arm", status)
				return true
			}
			if busy++; busy > busyPolls {
				pause(busyPause)
			}
		}
		return true
	})
	if failure != nil {
		return failure
	}
	return err
}

// pause sleeps for d. Go's timers are not used because they may take a millisecond.
func pause(d time.Duration) {
	left := unix.NsecToTimespec(d.Nanoseconds())
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}

// interrupt ends the present park, which finds out the reason. It is safe for concurrent use.
func (w *Worker) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		_ = w.context.abi.workerSignal(w.handle)
	}
}
