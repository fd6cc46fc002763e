package fileio

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoWriter is the error for a FIFO into which nothing is written.
var ErrNoWriter = errors.New("nothing is written to the FIFO")

// OpenList opens a file that is read once from its beginning to its end, which may be a FIFO. It waits until something
// has been written to a FIFO, or its writer has closed it, and fails with ErrNoWriter if that takes longer than
// grace.
func OpenList(path string, grace time.Duration) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // otherwise this call waits for a writer
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		err = awaitWriter(file, grace)
	}
	if err != nil {
		_ = file.Close() // was only read
		return nil, err
	}
	return file, nil
}

func awaitWriter(fifo *os.File, grace time.Duration) error {
	raw, err := fifo.SyscallConn() // File.Fd would make reads block
	if err != nil {
		return err
	}
	deadline, ready := time.Now().Add(grace), 0
	var failed error
	err = raw.Control(func(fd uintptr) {
		asked := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for failed = unix.EINTR; failed == unix.EINTR; {
			left := max(0, time.Until(deadline))
			ready, failed = unix.Poll(asked, int(left.Milliseconds()))
		}
	})
	switch {
	case err != nil || failed != nil:
		return errors.Join(err, failed)
	case ready == 0:
		return ErrNoWriter
	}
	return nil
}

// stopTime is how long a command that reads may take to stop once it is interrupted.
const stopTime = time.Second

// Interruptible runs a job that may block in a system call that cannot be interrupted, such as a read from a file
// system that does not answer. If the job takes longer than stopTime after the end of ctx, its goroutine is left
// behind and the cause of that end is returned.
func Interruptible(ctx context.Context, job func() error) error {
	done := make(chan error, 1)
	go func() { done <- job() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stopTime):
		return context.Cause(ctx)
	}
}
