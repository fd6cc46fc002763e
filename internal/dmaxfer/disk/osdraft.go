package disk

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// osDraft is a Draft. It uses the descriptor directly: package os would register each file with the poller.
type osDraft struct {
	fd      int // -1: closed
	dir     *osDir
	name    string
	unnamed bool
}

// CreateDraft sets the mode again only if the umask, or a default ACL of the directory, may have changed it.
func (d *osDir) CreateDraft(name string, permissions uint32) (Draft, error) {
	path, flags := name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC
	if name == "" {
		if !d.isKnown() || !hasProc() {
			return nil, d.failed("create", ".", errors.ErrUnsupported)
		}
		path, flags = ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC
	}
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.fd(), path, flags, permissions&0o777)
		return err
	})
	if name == "" && isUnnamedUnsupported(err) {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return nil, d.failed("create", path, err)
	}
	made := &osDraft{fd: fd, dir: d, name: name, unnamed: name == ""}
	if permissions&processUmask() != 0 || d.hasDefaultACL() {
		err = made.SetMode(permissions)
	}
	if err == nil {
		return made, nil
	}
	if name != "" {
		_ = d.Remove(name) // the first error is reported
	}
	_ = made.Close() // is not used
	return nil, err
}

// processUmask returns the umask that the process has at the first call, because reading it takes longer than creating
// a file. Nothing in this process changes it.
var processUmask = sync.OnceValue(umask)

// hasDefaultACL reports whether new files get their permissions from the directory instead of the umask.
func (d *osDir) hasDefaultACL() bool {
	d.acl.Do(func() {
		_, err := unix.Fgetxattr(d.fd(), "system.posix_acl_default", nil)
		d.isACL = !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EOPNOTSUPP)
	})
	return d.isACL
}

// isUnnamedUnsupported reports whether O_TMPFILE failed because kernel or file system do not know it.
func isUnnamedUnsupported(err error) bool {
	return errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) ||
		errors.Is(err, unix.EOPNOTSUPP)
}

// call runs a system call that a signal may interrupt.
func (f *osDraft) call(op string, call func() error) error {
	err := error(unix.EBADF)
	if f.fd >= 0 {
		err = retry(call)
	}
	return f.dir.failed(op, f.name, err)
}

func (f *osDraft) Write(p []byte) (done int, err error) {
	for done < len(p) {
		n := 0
		err := f.call("write", func() (err error) {
			n, err = unix.Write(f.fd, p[done:])
			return err
		})
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, f.dir.failed("write", f.name, io.ErrUnexpectedEOF)
		}
		done += n
	}
	return done, nil
}

func (f *osDraft) SetMode(permissions uint32) error {
	return f.call("fchmod", func() error { return unix.Fchmod(f.fd, permissions&0o777) })
}

func (f *osDraft) SetOwner(uid, gid uint32) error {
	return f.call("fchown", func() error { return unix.Fchown(f.fd, int(uid), int(gid)) })
}

func (f *osDraft) SetModified(at Timestamp) error {
	return f.call("futimens", func() error { return setModified(f.fd, at) })
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

func (f *osDraft) SetXattr(attribute Xattr) error {
	return f.call("fsetxattr", func() error { return unix.Fsetxattr(f.fd, attribute.Name, attribute.Value, 0) })
}

func (f *osDraft) Sync() error { return f.call("fsync", func() error { return unix.Fsync(f.fd) }) }

// linksByPath is set when linkat(2) refuses a descriptor without a path: before Linux 6.10 that needs
// CAP_DAC_READ_SEARCH.
var linksByPath atomic.Bool

func (f *osDraft) NameIn(in Dir, name string) error {
	dir, is := in.(*osDir)
	if !is || !f.unnamed {
		return &fs.PathError{Op: "link", Path: name, Err: errors.ErrUnsupported}
	}
	if !linksByPath.Load() {
		err := f.call("link", func() error { return unix.Linkat(f.fd, "", dir.fd(), name, unix.AT_EMPTY_PATH) })
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	err := f.call("link", func() error {
		return unix.Linkat(unix.AT_FDCWD, descriptorPath(f.fd), dir.fd(), name, unix.AT_SYMLINK_FOLLOW)
	})
	if err == nil {
		linksByPath.Store(true)
	}
	return err
}

// Close does not repeat close(2): Linux has closed the descriptor even if a signal interrupted it.
func (f *osDraft) Close() error {
	if f.fd < 0 {
		return f.dir.failed("close", f.name, unix.EBADF)
	}
	err := unix.Close(f.fd)
	f.fd = -1
	if errors.Is(err, unix.EINTR) {
		err = nil
	}
	return f.dir.failed("close", f.name, err)
}
