package disk

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// OS is the file system of the operating system.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Open(path string) (File, error) {
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &osFile{name: path, fd: fd}, nil
}

func (osFS) OpenDir(path string) (Dir, error) { return openDir(unix.AT_FDCWD, path, path) }

// openDir opens a directory by a path relative to the descriptor at; shown is the path for errors.
func openDir(at int, path, shown string) (Dir, error) {
	fd, err := openAt(at, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: shown, Err: err}
	}
	return newOSDir(fd, shown), nil
}

func openAt(at int, path string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Openat(at, path, flags|unix.O_CLOEXEC|unix.O_NOCTTY, mode)
		return err
	})
	return fd, err
}

func newOSDir(fd int, shown string) *osDir { return &osDir{handle: os.NewFile(uintptr(fd), shown)} }

func (osFS) Stat(path string) (Info, error) {
	var stat unix.Stat_t
	if err := retry(func() error { return unix.Stat(path, &stat) }); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return infoOf(&stat), nil
}

// privateMask is assumed if the process's umask cannot be read.
const privateMask = 0o077

func (osFS) Self() Self { return Self{UID: uint32(os.Geteuid()), Umask: umask()} }

// umask reads /proc, because umask(2) cannot return the mask without changing it for all threads.
func umask() uint32 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return privateMask
	}
	for line := range strings.Lines(string(text)) {
		if digits, found := strings.CutPrefix(line, "Umask:"); found {
			if mask, err := strconv.ParseUint(strings.TrimSpace(digits), 8, 9); err == nil {
				return uint32(mask)
			}
		}
	}
	return privateMask
}

// osDir operates on names relative to its handle, so that replacing a directory of its path has no effect.
type osDir struct {
	handle *os.File

	known sync.Once // kind is set
	kind  int64     // of the file system, by statfs(2); 0: unknown

	acl   sync.Once // isACL is set
	isACL bool
}

// fd may be used while the directory is open, which Dir requires of its callers.
func (d *osDir) fd() int { return int(d.handle.Fd()) }

func (d *osDir) path(name string) string { return Join(d.handle.Name(), name) }

func (d *osDir) failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: d.path(name), Err: err}
}

func (d *osDir) OpenDir(path string) (Dir, error) {
	shown := d.handle.Name()
	if path != "." {
		shown = d.path(path)
	}
	return openDir(d.fd(), path, shown)
}

func (d *osDir) Info() (Info, error) {
	info, err := fstat(d.fd())
	return info, d.failed("stat", ".", err)
}

// ReadLink opens the symlink itself, so that owner and text belong to the same one.
func (d *osDir) ReadLink(name string) (Link, error) {
	fd, info, err := d.openLink(name)
	if err != nil {
		return Link{}, d.failed("readlink", name, err)
	}
	defer unix.Close(fd)
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", text)
	if err != nil {
		return Link{}, d.failed("readlink", name, err)
	}
	return Link{Info: info, Text: string(text[:n])}, nil
}

// openLink returns a descriptor that names a symlink itself. It fails with unix.EINVAL for any other file.
func (d *osDir) openLink(name string) (fd int, info Info, err error) {
	fd, err = openAt(d.fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, Info{}, err
	}
	info, err = fstat(fd)
	if err == nil && info.Mode&fs.ModeSymlink == 0 {
		err = unix.EINVAL
	}
	if err != nil {
		_ = unix.Close(fd) // only names the file
		return -1, Info{}, err
	}
	return fd, info, nil
}

func (d *osDir) Open(name string, readOnly bool) (File, error) {
	if readOnly {
		return d.open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	}
	return d.open(name, unix.O_RDWR|unix.O_NONBLOCK)
}

func (d *osDir) Create(name string) (File, error) {
	return d.open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
}

func (d *osDir) open(name string, flags int) (File, error) {
	fd, err := openAt(d.fd(), name, flags|unix.O_NOFOLLOW, privateMode)
	if err != nil {
		return nil, d.failed("open", name, err)
	}
	return &osFile{directory: d.handle.Name(), name: name, fd: fd}, nil
}

// hasProc reports whether a file without a name can be named by its path in /proc, which needs no privilege.
var hasProc = sync.OnceValue(func() bool { return unix.Access("/proc/self/fd", unix.F_OK) == nil })

// CreateUnnamed also checks that /proc is available, which naming the file may need. It sets the mode again only if the
// umask, or a default ACL of the directory, may have changed it.
func (d *osDir) CreateUnnamed(shown string, permissions uint32, early bool) (File, error) {
	if !hasProc() || early && !d.isKnown() {
		return nil, d.failed("create", shown, errors.ErrUnsupported)
	}
	fd, err := openAt(d.fd(), ".", unix.O_TMPFILE|unix.O_RDWR, permissions&0o777)
	if isUnnamedUnsupported(err) {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return nil, d.failed("create", shown, err)
	}
	made := &osFile{directory: d.handle.Name(), name: shown, fd: fd, unnamed: true}
	if permissions&processUmask() == 0 && !d.hasDefaultACL() {
		return made, nil
	}
	if err := made.SetMode(permissions); err != nil {
		_ = made.Close() // is not used
		return nil, err
	}
	return made, nil
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

// linksByPath is set when linkat(2) refuses a descriptor without a path: before Linux 6.10 that needs
// CAP_DAC_READ_SEARCH.
var linksByPath atomic.Bool

func (d *osDir) GiveName(file File, name string) error {
	f, is := file.(*osFile)
	if !is || !f.unnamed {
		return d.failed("link", name, errors.ErrUnsupported)
	}
	if !linksByPath.Load() {
		err := f.call("link", func(fd int) error { return unix.Linkat(fd, "", d.fd(), name, unix.AT_EMPTY_PATH) })
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	err := f.call("link", func(fd int) error {
		return unix.Linkat(unix.AT_FDCWD, descriptorPath(fd), d.fd(), name, unix.AT_SYMLINK_FOLLOW)
	})
	if err == nil {
		linksByPath.Store(true)
	}
	return err
}

func (d *osDir) Stat(name string) (Info, error) {
	var stat unix.Stat_t
	err := retry(func() error { return unix.Fstatat(d.fd(), name, &stat, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return Info{}, d.failed("stat", name, err)
	}
	return infoOf(&stat), nil
}

func (d *osDir) MayCreate() error {
	return d.failed("access", ".", unix.Faccessat(d.fd(), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS))
}

func (d *osDir) Rename(from, to string) error {
	return d.failed("rename", to, retry(func() error { return unix.Renameat(d.fd(), from, d.fd(), to) }))
}

// RenameIfAbsent uses renameat2(2), or a hard link where the file system does not support RENAME_NOREPLACE. Without
// both it looks whether the name is free before it renames.
func (d *osDir) RenameIfAbsent(from, to string) error {
	err := retry(func() error { return unix.Renameat2(d.fd(), from, d.fd(), to, unix.RENAME_NOREPLACE) })
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return d.failed("rename", to, err)
	}
	return d.renameWith(d.Link, from, to)
}

// renameWith renames an entry by a function that makes hard links, as far as the file system has them.
func (d *osDir) renameWith(link func(from, to string) error, from, to string) error {
	err := link(from, to)
	switch {
	case err == nil:
		return d.Remove(from)
	case errors.Is(err, unix.EPERM), errors.Is(err, errors.ErrUnsupported):
		return d.lookAndRename(from, to)
	default:
		return err
	}
}

func (d *osDir) lookAndRename(from, to string) error {
	switch _, err := d.Stat(to); {
	case err == nil:
		return d.failed("rename", to, unix.EEXIST)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return d.Rename(from, to)
}

func (d *osDir) Link(from, to string) error {
	return d.failed("link", to, retry(func() error { return unix.Linkat(d.fd(), from, d.fd(), to, 0) }))
}

func (d *osDir) Remove(name string) error {
	return d.failed("unlink", name, retry(func() error { return unix.Unlinkat(d.fd(), name, 0) }))
}

func (d *osDir) Sync() error { return d.handle.Sync() }

func (d *osDir) Close() error { return d.handle.Close() }
