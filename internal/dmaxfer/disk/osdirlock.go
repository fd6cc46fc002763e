package disk

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// lockPosition is where a directory is locked: each mode is a byte, far from those that another program could lock.
const lockPosition = 1 << 40

// Lock locks the byte of the mode for reading, which needs no right to write, and then looks whether one that excludes
// it is locked. When two handles do so at once, at least one finds the lock of the other one. The locks belong to
// an open file (F_OFD_SETLK), and are independent of flock(2), by which other programs lock directories.
func (d *osDir) Lock(own, above LockMode) (io.Closer, error) {
	locks := &osLocks{}
	err := locks.add(d.fd(), ".", own)
	for err == nil && above != NoLock && !locks.complete() {
		err = locks.add(locks.directories[len(locks.directories)-1], "..", above)
	}
	if err != nil {
		return nil, errors.Join(d.failed("lock", ".", err), locks.Close())
	}
	return locks, nil
}

// osLocks are the open directories that one Lock has locked.
type osLocks struct {
	directories []int // descriptors
	top         Identity
	atRoot      bool // there is none above the last one, or this user may not look for it
}

func (l *osLocks) complete() bool { return l.atRoot || len(l.directories) > maxLocked }

// add locks the directory at a path from an open one.
func (l *osLocks) add(at int, path string, mode LockMode) error {
	fd, err := openToLock(at, path)
	if errors.Is(err, fs.ErrPermission) {
		l.atRoot = true
		return nil
	}
	if err != nil {
		return err
	}
	is, err := fstat(fd)
	if l.atRoot = err == nil && is.SameFile(l.top); err != nil || l.atRoot { // the root is above itself
		_ = unix.Close(fd) // was only read
		return err
	}
	l.directories, l.top = append(l.directories, fd), is.Identity
	return lockOpen(fd, mode)
}

// openToLock opens a directory. One that this user may not read is opened only to find the one above it.
func openToLock(at int, path string) (fd int, err error) {
	fd, err = openAt(at, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrPermission) {
		fd, err = openAt(at, path, unix.O_PATH|unix.O_DIRECTORY, 0)
	}
	return fd, err
}

// lockOpen returns ErrLocked if another handle of the directory excludes the mode. A directory that cannot be locked,
// for example because its file system has no such locks, is not.
func lockOpen(fd int, mode LockMode) error {
	if mode == NoLock || control(fd, unix.F_OFD_SETLK, lockOf(unix.F_RDLCK, mode, mode)) != nil {
		return nil
	}
	first, last := mode.ExcludedBy()
	excluding := lockOf(unix.F_WRLCK, first, last)
	if err := control(fd, unix.F_OFD_GETLK, excluding); err == nil && excluding.Type != unix.F_UNLCK {
		return ErrLocked
	}
	return nil
}

func lockOf(kind int16, first, last LockMode) *unix.Flock_t {
	return &unix.Flock_t{Type: kind, Start: lockPosition + int64(first), Len: int64(last-first) + 1}
}

func control(fd, command int, lock *unix.Flock_t) error {
	return retry(func() error { return unix.FcntlFlock(uintptr(fd), command, lock) })
}

func (l *osLocks) Close() error {
	var err error
	for _, fd := range l.directories {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}
