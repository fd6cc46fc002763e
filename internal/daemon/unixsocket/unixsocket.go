// Package unixsocket makes the sockets of a daemon in the file system. It must not know what they are for.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// maxPath is the most bytes of a path that the kernel takes for a socket: sun_path has 108, with a NUL at the end.
const maxPath = 107

// ErrTooLong says that a path is too long for a socket.
var ErrTooLong = fmt.Errorf("the path of a socket has at most %d bytes", maxPath)

// CheckPath returns an ErrTooLong if no socket can have the path.
func CheckPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("it has %d bytes: %w", len(path), ErrTooLong)
	}
	return nil
}

// Listen makes a socket with these permission bits, less the umask. A socket on which nobody listens is replaced; for
// any other file, and for a socket on which a process listens, it fails. Two processes must not do that at once for one
// path: the lock of the runtime directory prevents it for equal daemons. Closing the listener removes the socket.
func Listen(path string, mode uint32) (*net.UnixListener, error) {
	err := CheckPath(path)
	if err == nil {
		err = removeStale(path)
	}
	if err == nil {
		var listener *net.UnixListener
		if listener, err = listen(path, mode); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("cannot make the socket %s: %w", quote.Bare(path), systemError(err))
}

// removeStale removes a socket on which nobody listens. It fails if somebody does, and for any other file.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("a file that is not a socket has this name")
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close() // nothing was sent
		return errors.New("another process listens there")
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// listen sets the mode before the socket has a name, so that nobody connects in between whom the mode keeps out.
func listen(path string, mode uint32) (*net.UnixListener, error) {
	config := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) error {
		var err error
		controlErr := socket.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), mode) })
		return errors.Join(controlErr, err)
	}}
	listener, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return listener.(*net.UnixListener), nil
}

// systemError is the error of the system call alone, because the message has the path already.
func systemError(err error) error {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return errno
	}
	return err
}
