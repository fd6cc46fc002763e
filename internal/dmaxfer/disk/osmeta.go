package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func (f *osFile) SetModified(at Timestamp) error {
	return f.call("futimens", func(fd int) error { return setModified(fd, at) })
}

// setModified uses the descriptor: utimensat(2) without a path is futimens(3).
func setModified(fd int, at Timestamp) error {
	times := timesOf(at)
	_, _, number := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	if number != 0 {
		return number
	}
	return nil
}

// timesOf returns the times for a file to have this modification time. With the time of access left out, many file
// systems of version 2 of libfuse set none, and report no error.
func timesOf(at Timestamp) [2]unix.Timespec {
	return [2]unix.Timespec{{Nsec: unix.UTIME_NOW}, {Sec: at.Sec, Nsec: int64(at.Nsec)}}
}

// Xattrs omits attributes that this user may not read or that were removed meanwhile.
func (f *osFile) Xattrs() ([]Xattr, error) {
	list, err := f.grow("flistxattr", unix.Flistxattr)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var attributes []Xattr
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		value, err := f.grow("fgetxattr", func(fd int, buffer []byte) (int, error) {
			return unix.Fgetxattr(fd, string(name), buffer)
		})
		switch {
		case err == nil:
			attributes = append(attributes, Xattr{Name: string(name), Value: value})
		case errors.Is(err, unix.ENODATA), errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported):
		default:
			return nil, err
		}
	}
	slices.SortFunc(attributes, func(a, b Xattr) int { return strings.Compare(a.Name, b.Name) })
	return attributes, nil
}

// grow repeats a call with larger buffers until the result fits; its size may change between two calls.
func (f *osFile) grow(op string, call func(int, []byte) (int, error)) ([]byte, error) {
	buffer := make([]byte, 1024)
	for {
		n := 0
		err := f.call(op, func(fd int) (err error) {
			n, err = call(fd, buffer)
			return err
		})
		if !errors.Is(err, unix.ERANGE) || len(buffer) > maxXattrSize {
			return buffer[:max(n, 0)], err
		}
		buffer = make([]byte, 4*len(buffer))
	}
}

// maxXattrSize is the kernel's limit on a list of names and on a value, in bytes.
const maxXattrSize = 64 << 10

func (f *osFile) SetXattr(attribute Xattr) error {
	return f.call("fsetxattr", func(fd int) error { return unix.Fsetxattr(fd, attribute.Name, attribute.Value, 0) })
}

func (f *osFile) RemoveXattr(name string) error {
	return f.call("fremovexattr", func(fd int) error { return unix.Fremovexattr(fd, name) })
}
