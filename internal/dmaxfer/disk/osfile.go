package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// osFile is a File. Package os repeats interrupted and short reads and writes.
type osFile struct {
	handle    *os.File
	raw       syscall.RawConn
	unnamedIn *osDir // directory of a file that was created without a name; otherwise nil
}

func asFile(handle *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	raw, err := handle.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, handle.Close())
	}
	return osFile{handle: handle, raw: raw}, nil
}

// call runs a system call that a signal may interrupt. The descriptor stays open meanwhile. Unlike os.File.Fd it
// keeps the file in the poller, so that Close can interrupt a Read.
func (f osFile) call(op string, call func(fd int) error) error {
	var failed error
	if err := f.raw.Control(func(fd uintptr) { failed = retry(func() error { return call(int(fd)) }) }); err != nil {
		failed = os.ErrClosed
	}
	if failed != nil {
		return &fs.PathError{Op: op, Path: f.handle.Name(), Err: failed}
	}
	return nil
}

// descriptorPath returns the /proc path of a descriptor.
func descriptorPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (f osFile) Name() string { return f.handle.Name() }

func (f osFile) OS() *os.File { return f.handle }

func (f osFile) ReadAt(p []byte, offset int64) (int, error) { return f.handle.ReadAt(p, offset) }

func (f osFile) WriteAt(p []byte, offset int64) (int, error) { return f.handle.WriteAt(p, offset) }

func (f osFile) Read(p []byte) (int, error) { return f.handle.Read(p) }

func (f osFile) Write(p []byte) (int, error) { return f.handle.Write(p) }

func (f osFile) Info() (Info, error) {
	var stat unix.Stat_t
	if err := f.call("fstat", func(fd int) error { return unix.Fstat(fd, &stat) }); err != nil {
		return Info{}, err
	}
	return infoOf(&stat), nil
}

func infoOf(stat *unix.Stat_t) Info {
	return Info{
		Identity: Identity{
			Device: uint64(stat.Dev), Inode: stat.Ino, Size: stat.Size,
			Modified: timestampOf(stat.Mtim), Changed: timestampOf(stat.Ctim),
		},
		Mode: modeOf(stat.Mode), Links: uint64(stat.Nlink), UID: stat.Uid, GID: stat.Gid, Allocated: stat.Blocks * 512,
	}
}

func timestampOf(t unix.Timespec) Timestamp {
	return Timestamp{Sec: int64(t.Sec), Nsec: uint32(t.Nsec)}
}

func modeOf(mode uint32) fs.FileMode {
	permissions := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return permissions
	case unix.S_IFDIR:
		if mode&unix.S_ISVTX != 0 {
			permissions |= fs.ModeSticky
		}
		return permissions | fs.ModeDir
	case unix.S_IFLNK:
		return permissions | fs.ModeSymlink
	case unix.S_IFIFO:
		return permissions | fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return permissions | fs.ModeSocket
	case unix.S_IFCHR:
		return permissions | fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		return permissions | fs.ModeDevice
	default:
		return permissions | fs.ModeIrregular
	}
}

func (f osFile) Truncate(size int64) error { return f.handle.Truncate(size) }

func (f osFile) Allocate(offset, length int64) error { return f.fallocate(0, offset, length) }

// compressedFlag is FS_COMPR_FL of FS_IOC_GETFLAGS.
const compressedFlag = 0x4

// Compresses is true on all of Btrfs: its compression depends on mount options and on properties of directories.
func (f osFile) Compresses() (compresses bool) {
	_ = f.call("fstatfs", func(fd int) error { // without an answer blocks are reserved
		var stat unix.Statfs_t
		if err := unix.Fstatfs(fd, &stat); err != nil {
			return err
		}
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		compresses = stat.Type == unix.BTRFS_SUPER_MAGIC || err == nil && flags&compressedFlag != 0
		return nil
	})
	return compresses
}

func (f osFile) PunchHole(offset, length int64) error {
	return f.fallocate(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

func (f osFile) fallocate(mode uint32, offset, length int64) error {
	if length == 0 {
		return nil
	}
	return f.call("fallocate", func(fd int) error { return unix.Fallocate(fd, mode, offset, length) })
}

func (f osFile) NextData(offset int64) (int64, error) { return nextData(f, offset) }

func (f osFile) NextHole(offset int64) (int64, error) { return nextHole(f, offset) }

// descriptor is a file by its descriptor.
type descriptor interface {
	call(op string, call func(fd int) error) error
	Info() (Info, error)
}

func nextData(f descriptor, offset int64) (int64, error) {
	return seek(f, offset, unix.SEEK_DATA, func(int64) int64 { return offset })
}

func nextHole(f descriptor, offset int64) (int64, error) {
	return seek(f, offset, unix.SEEK_HOLE, func(size int64) int64 { return size })
}

// seek returns the result for a file without holes if the file system does not report them.
func seek(f descriptor, offset int64, whence int, withoutHoles func(size int64) int64) (int64, error) {
	found := int64(0)
	err := f.call("lseek", func(fd int) (err error) {
		found, err = unix.Seek(fd, offset, whence)
		return err
	})
	switch {
	case errors.Is(err, unix.ENXIO):
		return 0, io.EOF
	case errors.Is(err, unix.EINVAL), errors.Is(err, errors.ErrUnsupported):
		info, err := f.Info()
		if err == nil && offset >= info.Size {
			err = io.EOF
		}
		return withoutHoles(info.Size), err
	default:
		return found, err
	}
}

func (f osFile) Sync() error { return f.handle.Sync() }

func (f osFile) SyncRange(offset, length int64) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	err := f.call("sync_file_range", func(fd int) error { return unix.SyncFileRange(fd, offset, length, all) })
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

func (f osFile) SetMode(permissions uint32) error {
	return f.call("fchmod", func(fd int) error { return unix.Fchmod(fd, permissions&0o777) })
}

func (f osFile) SetOwner(uid, gid uint32) error {
	return f.call("fchown", func(fd int) error { return unix.Fchown(fd, int(uid), int(gid)) })
}

func (f osFile) Lock() error {
	err := f.call("flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

func (f osFile) GiveName(name string) error {
	if f.unnamedIn == nil {
		return &fs.PathError{Op: "link", Path: name, Err: errors.ErrUnsupported}
	}
	return f.call("link", func(fd int) error {
		return unix.Linkat(unix.AT_FDCWD, descriptorPath(fd), f.unnamedIn.fd(), name, unix.AT_SYMLINK_FOLLOW)
	})
}

// Hold duplicates the descriptor: both share the lock, and each reports delayed write errors at its close.
func (f osFile) Hold() (File, error) {
	copied := 0
	err := f.call("dup", func(fd int) (err error) {
		copied, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	held, err := asFile(os.NewFile(uintptr(copied), f.handle.Name()), nil)
	if err != nil {
		return nil, err
	}
	again := held.(osFile)
	again.unnamedIn = f.unnamedIn
	return again, nil
}

func (f osFile) Free() (uint64, bool) {
	var stat unix.Statfs_t
	if err := f.call("fstatfs", func(fd int) error { return unix.Fstatfs(fd, &stat) }); err != nil || stat.Blocks == 0 {
		return 0, false
	}
	return stat.Bavail * uint64(stat.Bsize), true
}

func (f osFile) DropCache(offset, length int64) {
	// What stays cached is read from there.
	_ = f.call("fadvise", func(fd int) error { return unix.Fadvise(fd, offset, length, unix.FADV_DONTNEED) })
}

func (f osFile) Close() error { return f.handle.Close() }
