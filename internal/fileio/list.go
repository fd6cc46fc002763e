package fileio

import (
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
