package disk

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// openDirectory are the flags by which a directory is opened below another one: never through a symlink.
const openDirectory = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW

// noOpenat2 is set when the kernel, or a filter of system calls, does not know openat2(2).
var noOpenat2 atomic.Bool

// errWalk is the error of openBelow if the path has to be followed component by component.
var errWalk = errors.New("openat2 cannot be used")

// openBelow opens a path below a directory with openat2(2). It fails with errWalk if the system has no such call, or if
// that could not exclude that another process has moved a directory of the path.
func openBelow(at int, path string, flags, resolve uint64) (fd int, err error) {
	if noOpenat2.Load() || len(path) >= unix.PathMax {
		return -1, errWalk
	}
	how := &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve | unix.RESOLVE_NO_MAGICLINKS}
	err = retry(func() (err error) {
		fd, err = unix.Openat2(at, path, how)
		return err
	})
	switch {
	case errors.Is(err, unix.ENOSYS):
		noOpenat2.Store(true)
		return -1, errWalk
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EAGAIN):
		return -1, errWalk // EPERM: a filter refuses the call, or the file cannot be opened
	}
	return fd, err
}

func (d *osDir) OpenBeneath(path string) (Dir, error) {
	fd, err := openBelow(d.fd(), path, openDirectory, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, errWalk) {
		fd, err = openEach(d.fd(), path)
	}
	if err != nil {
		return nil, d.failed("open", path, err)
	}
	return newOSDir(fd, d.path(path)), nil
}

// openEach opens the directories of a path one after the other. As with openat2, search permission is enough for all
// directories but the last.
func openEach(at int, path string) (fd int, err error) {
	opened := -1
	names := strings.Split(path, "/")
	for i, name := range names {
		flags := openDirectory
		if i < len(names)-1 {
			flags |= unix.O_PATH
		}
		fd, err = -1, unix.EXDEV
		if name != "" && name != "." && name != ".." {
			fd, err = openAt(at, name, flags, 0)
		}
		if opened >= 0 {
			_ = unix.Close(opened) // was only read
		}
		if err != nil {
			return -1, err
		}
		at, opened = fd, fd
	}
	return opened, nil
}

func (d *osDir) MakeDir(name string, permissions uint32) error {
	return d.failed("mkdir", name, retry(func() error { return unix.Mkdirat(d.fd(), name, permissions) }))
}

func (d *osDir) RemoveDir(name string) error {
	return d.failed("rmdir", name, retry(func() error { return unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR) }))
}

func (d *osDir) Symlink(text, name string) error {
	return d.failed("symlink", name, retry(func() error { return unix.Symlinkat(text, d.fd(), name) }))
}

func (d *osDir) LinkTo(name string, in Dir, as string) error {
	other, is := in.(*osDir)
	if !is {
		return d.failed("link", as, unix.EXDEV)
	}
	return d.failed("link", as, retry(func() error { return unix.Linkat(d.fd(), name, other.fd(), as, 0) }))
}

func (d *osDir) SetLinkModified(name string, at Timestamp) error {
	times := timesOf(at)
	return d.failed("utimes", name, retry(func() error {
		return unix.UtimesNanoAt(d.fd(), name, times[:], unix.AT_SYMLINK_NOFOLLOW)
	}))
}

// SetLinkOwner opens the symlink itself: another process may rename a file to its name, whose owner must not change.
func (d *osDir) SetLinkOwner(name string, uid, gid uint32) error {
	fd, _, err := d.openLink(name)
	if err != nil {
		return d.failed("chown", name, err)
	}
	defer unix.Close(fd)
	return d.failed("chown", name, retry(func() error {
		return unix.Fchownat(fd, "", int(uid), int(gid), unix.AT_EMPTY_PATH)
	}))
}

// SetMode reads the mode first, because fchmod(2) would clear the set-group-ID bit, which a directory inherits.
func (d *osDir) SetMode(mode uint32) error {
	var stat unix.Stat_t
	if err := retry(func() error { return unix.Fstat(d.fd(), &stat) }); err != nil {
		return d.failed("chmod", ".", err)
	}
	wanted := mode&0o1777 | stat.Mode&unix.S_ISGID
	if stat.Mode&0o7777 == wanted {
		return nil
	}
	return d.failed("chmod", ".", retry(func() error { return unix.Fchmod(d.fd(), wanted) }))
}

func (d *osDir) SetOwner(uid, gid uint32) error {
	return d.failed("chown", ".", retry(func() error { return unix.Fchown(d.fd(), int(uid), int(gid)) }))
}

func (d *osDir) SetModified(at Timestamp) error {
	return d.failed("utimes", ".", retry(func() error { return setModified(d.fd(), at) }))
}

func (d *osDir) Xattrs() ([]Xattr, error) {
	return (&osFile{name: d.handle.Name(), fd: d.fd()}).Xattrs()
}

func (d *osDir) SetXattr(attribute Xattr) error {
	return d.failed("setxattr", ".", retry(func() error {
		return unix.Fsetxattr(d.fd(), attribute.Name, attribute.Value, 0)
	}))
}

func (d *osDir) RemoveXattr(name string) error {
	return d.failed("removexattr", ".", retry(func() error { return unix.Fremovexattr(d.fd(), name) }))
}

func (d *osDir) CanSyncFS() bool { return d.isKnown() && syncfsReports() }

// SyncFS also calls fsync(2). syncfs(2) succeeds without doing anything on a file system that is read-only, which ext4
// becomes after an error. Before Linux 5.17 it ignores errors of the file system other than failed writes, and without
// a journal ext4 writes metadata after it has flushed the cache of the disk.
func (d *osDir) SyncFS() error {
	err := retry(func() error { return unix.Syncfs(d.fd()) })
	if err != nil {
		return d.failed("syncfs", ".", err)
	}
	return d.failed("fsync", ".", retry(func() error { return unix.Fsync(d.fd()) }))
}

// syncfsReports reports whether the kernel returns write errors from syncfs(2), which it does since version 5.8, and
// no filter of system calls refuses it.
var syncfsReports = sync.OnceValue(func() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil || !atLeast(unix.ByteSliceToString(name.Release[:]), 5, 8) {
		return false
	}
	return errors.Is(unix.Syncfs(-1), unix.EBADF)
})

// atLeast reports whether a kernel release, such as "5.15.0-91-generic", is of this version or a later one.
func atLeast(release string, major, minor int) bool {
	var gotMajor, gotMinor int
	if _, err := fmt.Sscanf(release, "%d.%d", &gotMajor, &gotMinor); err != nil {
		return false
	}
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}

// fileSystem returns the kind of the directory's file system, as statfs(2) does; 0 if that is unknown.
func (d *osDir) fileSystem() int64 {
	d.known.Do(func() {
		var stat unix.Statfs_t
		if retry(func() error { return unix.Fstatfs(d.fd(), &stat) }) == nil {
			d.kind = int64(stat.Type)
		}
	})
	return d.kind
}

// isKnown reports whether the directory is on a file system that reports failed writes at the latest by fsync(2) and
// syncfs(2), and not only when the file is closed.
func (d *osDir) isKnown() bool {
	switch d.fileSystem() {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
}

// Kinds of file systems that package unix does not name.
const (
	bcachefsMagic = 0xca451a4e
	ntfs3Magic    = 0x7366746e
	zfsMagic      = 0x2fc12fc1
)

func (d *osDir) IsLocal() bool {
	switch d.fileSystem() {
	case unix.OVERLAYFS_SUPER_MAGIC, unix.RAMFS_MAGIC, bcachefsMagic, ntfs3Magic, zfsMagic:
		return true
	}
	return d.isKnown()
}
