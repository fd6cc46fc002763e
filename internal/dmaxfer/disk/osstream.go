package disk

import (
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Stdin returns this process's standard input. Closing it does not close the descriptor itself.
func Stdin() (File, error) { return stream(os.Stdin, unix.O_RDONLY) }

// Stdout returns this process's standard output. Closing it does not close the descriptor itself, so the reader of a
// pipe sees its end when the process ends.
func Stdout() (File, error) { return stream(os.Stdout, unix.O_WRONLY) }

// stream reopens a pipe or terminal in non-blocking mode, so that Close can interrupt a call that waits, without
// changing the descriptor that other processes share. A file keeps its offset. A descriptor that cannot be reopened is
// duplicated.
func stream(handle *os.File, access int) (File, error) {
	info, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 {
		again := "/proc/self/fd/" + strconv.Itoa(int(handle.Fd()))
		if fd, err := unix.Open(again, access|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0); err == nil {
			return &osFile{name: handle.Name(), fd: fd}, nil
		}
	}
	fd, err := unix.FcntlInt(handle.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "dup", Path: handle.Name(), Err: err}
	}
	return &osFile{name: handle.Name(), fd: fd}, nil
}
