package disk

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Root is a file system that consists of one directory and what is below it. Its paths are relative to the directory:
// "." is the directory itself. Symlinks are followed as long as they stay below it, and absolute ones never. A path
// that leads out fails with ErrOutside, even if other processes exchange entries meanwhile. A directory that another
// process moves out of it while it is open stays usable. The attributes of the directory itself stay as they are: calls
// that set them succeed and do nothing. Its methods may be called concurrently.
type Root struct {
	on       FS
	dir      Dir
	users    *users // of dir
	readOnly bool
	inner    bool // the directory is not a shared one itself, so its attributes may change
}

// users counts what uses the directory of a Root: the Root itself until Close, the directories that were opened in it,
// and the running calls. A call may hang for longer than the copy that made it.
type users struct {
	dir   Dir
	count atomic.Int64
}

// enter is called before the directory is used, and leave after it. It fails if the directory is closed.
func (u *users) enter() error {
	for {
		n := u.count.Load()
		if n == 0 {
			return fs.ErrClosed
		}
		if u.count.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// leave closes the directory after its last use.
func (u *users) leave() error {
	if u.count.Add(-1) > 0 {
		return nil
	}
	return u.dir.Close()
}

// ErrOutside is the error for a path that leads out of a Root. It is also a unix.EXDEV.
var ErrOutside error = outsideError{}

type outsideError struct{}

func (outsideError) Error() string { return "it leads out of the shared directory" }

func (outsideError) Is(target error) bool { return target == error(unix.EXDEV) }

// OpenRoot returns the Root at a path of another file system, following symlinks. Errors are an ErrSource.
func OpenRoot(on FS, path string) (*Root, error) {
	dir, err := on.OpenDir(path)
	if err == nil {
		dir, err = withoutPath(dir)
	}
	if err != nil {
		return nil, NewError(ErrSource, err, "name a directory that this user may read",
			"cannot open directory %s: %s", path, Reason(err))
	}
	r := &Root{on: on, dir: dir, users: &users{dir: dir}}
	r.users.count.Store(1)
	return r, nil
}

// RootAt returns the Root of a directory that is open already. It is valid until the directory is closed, and is not
// closed itself. A directory of a Root keeps the rights that it has there.
func RootAt(on FS, dir Dir) *Root {
	r := &Root{on: on, dir: dir, inner: true}
	if inner, is := dir.(*rootDir); is {
		r.on, r.dir, r.readOnly = inner.root.on, inner.Dir, inner.root.readOnly
		keeps, err := inner.keepsAttributes("chmod")
		r.inner = err == nil && !keeps
	}
	r.users = &users{dir: r.dir}
	r.users.count.Store(1)
	return r
}

// withoutPath returns a directory of the operating system with "." as its path, because errors about what is in it may
// be shown to a peer.
func withoutPath(dir Dir) (Dir, error) {
	system, is := dir.(*osDir)
	if !is {
		return dir, nil
	}
	defer system.Close()
	fd, err := unix.FcntlInt(uintptr(system.fd()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, system.failed("dup", ".", err)
	}
	return newOSDir(fd, "."), nil
}

// ReadOnly returns the same file system without the right to change it: calls of a Dir that would do so fail with
// unix.EROFS. It is valid until Close.
func (r *Root) ReadOnly() FS { return &Root{on: r.on, dir: r.dir, users: r.users, readOnly: true} }

// Close closes the directory as soon as no call uses it and everything that was opened by OpenDir is closed. It must be
// called once.
func (r *Root) Close() error { return r.users.leave() }

// Self implements FS.
func (r *Root) Self() Self { return r.on.Self() }

// Open implements FS.
func (r *Root) Open(path string) (File, error) {
	if err := r.users.enter(); err != nil {
		return nil, err
	}
	defer r.users.leave()
	if fd, err := openBeneath(r.dir, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY); !errors.Is(err, errWalk) {
		if err != nil {
			return nil, err
		}
		return &osFile{name: path, fd: fd}, nil
	}
	at, err := r.walk(r.dir, path)
	if err != nil {
		return nil, err
	}
	defer at.Folder.Release()
	if at.Name == "" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	}
	dir, err := at.Folder.Use()
	if err != nil {
		return nil, err
	}
	defer at.Folder.Unuse()
	return dir.Open(at.Name, true)
}

// OpenDir implements FS.
func (r *Root) OpenDir(path string) (Dir, error) {
	if err := r.users.enter(); err != nil {
		return nil, err
	}
	defer r.users.leave()
	return r.openDir(r.dir, "", path)
}

// Stat implements FS.
func (r *Root) Stat(path string) (Info, error) {
	if err := r.users.enter(); err != nil {
		return Info{}, err
	}
	defer r.users.leave()
	if fd, err := openBeneath(r.dir, path, unix.O_PATH); !errors.Is(err, errWalk) {
		if err != nil {
			return Info{}, err
		}
		defer unix.Close(fd)
		return fstat(fd)
	}
	at, err := r.walk(r.dir, path)
	if err != nil {
		return Info{}, err
	}
	at.Folder.Release()
	return at.Found, nil
}

// openDir opens a directory below base by its path, which may leave base but not the root. in is the path of base below
// the root; empty for the root.
func (r *Root) openDir(base Dir, in, path string) (Dir, error) {
	opened, at, err := r.openDirBelow(base, path)
	if errors.Is(err, ErrOutside) && in != "" && !strings.HasPrefix(path, "/") {
		opened, at, err = r.openDirBelow(r.dir, in+"/"+path)
		in = ""
	}
	if err != nil {
		return nil, err
	}
	if in != "" {
		at = in + "/" + at
	}
	return r.newDir(opened, at)
}

// openDirBelow opens a directory below base, and returns a path that leads to it from there.
func (r *Root) openDirBelow(base Dir, path string) (opened Dir, at string, err error) {
	fd, err := openBeneath(base, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		return newOSDir(fd, base.(*osDir).path(path)), path, nil
	}
	if !errors.Is(err, errWalk) {
		return nil, "", err
	}
	to, err := r.walk(base, path)
	if err != nil {
		return nil, "", err
	}
	defer to.Folder.Release()
	if to.Name != "" {
		return nil, "", &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	dir, err := to.Folder.Use()
	if err != nil {
		return nil, "", err
	}
	defer to.Folder.Unuse()
	opened, err = dir.OpenDir(".")
	return opened, to.Folder.Path(), err
}

// walk follows a path below a directory in any file system, and symlinks by the rule of trusted.
func (r *Root) walk(base Dir, path string) (Resolved, error) {
	root, self := NewFolder(borrowed{base}, Identity{}, maxOpenDirectories), r.Self()
	defer root.Release()
	at, err := Resolved{}, error(unix.ENOENT)
	if path != "" {
		at, err = Resolve(root, path, func(link, in Info) bool { return trusted(link, in, self) })
	}
	if is, found := errors.AsType[*fs.PathError](err); found {
		err = is.Err
	}
	if err != nil {
		return Resolved{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return at, nil
}

// borrowed is a directory that its user does not close.
type borrowed struct{ Dir }

func (borrowed) Close() error { return nil }

// openBeneath opens a path below a directory of the operating system, following the symlinks that stay below it. Other
// errors than errWalk are a *fs.PathError.
func openBeneath(base Dir, path string, flags uint64) (fd int, err error) {
	in, is := base.(*osDir)
	if !is {
		return -1, errWalk
	}
	fd, err = openBelow(in.fd(), path, flags, unix.RESOLVE_BENEATH)
	switch {
	case err == nil, errors.Is(err, errWalk):
		return fd, err
	case errors.Is(err, unix.EXDEV):
		err = ErrOutside
	}
	return -1, &fs.PathError{Op: "open", Path: path, Err: err}
}
