package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// osFile is a File. It uses the descriptor itself: to make an os.File takes about as long as opening and reading a
// small file. Only Read and Write, which may have to wait for the other end of a pipe, and OS need one.
type osFile struct {
	directory, name string // for messages
	fd              int
	unnamed         bool // it was created without a name

	// state is twice the number of calls that use the descriptor, plus one after Close. The last of them closes the
	// descriptor, so that a call that hangs never uses another file's.
	state atomic.Int64

	mu     sync.Mutex
	handle *os.File // owns the descriptor; nil as long as there is no os.File
}

// call runs a system call that a signal may interrupt. The descriptor stays open meanwhile.
func (f *osFile) call(op string, call func(fd int) error) error {
	err := error(os.ErrClosed)
	if f.begin() {
		err = retry(func() error { return call(f.fd) })
		f.end()
	}
	return f.failed(op, err)
}

func (f *osFile) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.Name(), Err: err}
}

// begin counts a call; it reports false after Close.
func (f *osFile) begin() bool {
	for {
		state := f.state.Load()
		if state&1 == 1 {
			return false
		}
		if f.state.CompareAndSwap(state, state+2) {
			return true
		}
	}
}

func (f *osFile) end() {
	if f.state.Add(-2) == 1 {
		_ = f.close() // the caller of Close does not wait for it
	}
}

// Close closes the descriptor now or, if a call uses it, after that call.
func (f *osFile) Close() error {
	switch before := f.state.Or(1); {
	case before == 0:
		return f.close()
	case before&1 == 1:
		return f.failed("close", os.ErrClosed)
	}
	return nil
}

// close does not repeat close(2): Linux has closed the descriptor even if a signal interrupted it.
func (f *osFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handle != nil {
		return f.handle.Close()
	}
	if err := unix.Close(f.fd); !errors.Is(err, unix.EINTR) {
		return f.failed("close", err)
	}
	return nil
}

// OS returns nil after Close.
func (f *osFile) OS() *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handle == nil && f.state.Load()&1 == 0 {
		f.handle = os.NewFile(uintptr(f.fd), f.Name())
	}
	return f.handle
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

func (f *osFile) Name() string { return Join(f.directory, f.name) }

func (f *osFile) ReadAt(p []byte, offset int64) (int, error) {
	return f.move("read", unix.Pread, p, offset)
}

func (f *osFile) WriteAt(p []byte, offset int64) (int, error) {
	return f.move("write", unix.Pwrite, p, offset)
}

// move repeats a call until all bytes are read or written, or there are none any more.
func (f *osFile) move(
	op string, call func(fd int, p []byte, offset int64) (int, error), p []byte, offset int64,
) (done int, err error) {
	for done < len(p) {
		n := 0
		err := f.call(op, func(fd int) (err error) {
			n, err = call(fd, p[done:], offset+int64(done))
			return err
		})
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.EOF
		}
		done += n
	}
	return done, nil
}

// A nil os.File fails with os.ErrInvalid.

func (f *osFile) Read(p []byte) (int, error) { return f.OS().Read(p) }

func (f *osFile) Write(p []byte) (int, error) { return f.OS().Write(p) }

func (f *osFile) Info() (info Info, err error) {
	err = f.call("fstat", func(fd int) (err error) {
		info, err = fstat(fd)
		return err
	})
	return info, err
}

func fstat(fd int) (Info, error) {
	var stat unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &stat) }); err != nil {
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

// ModeBits returns the permission bits, and the sticky bit of a directory, as the system has them.
func ModeBits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits
}

func (f *osFile) Truncate(size int64) error {
	return f.call("truncate", func(fd int) error { return unix.Ftruncate(fd, size) })
}

func (f *osFile) Allocate(offset, length int64) error { return f.fallocate(0, offset, length) }

// CopyFrom uses copy_file_range(2), and reads and writes where that cannot be used.
func (f *osFile) CopyFrom(from File, offset, length int64) (done int64, err error) {
	if source, is := from.(*osFile); is && source.begin() {
		defer source.end()
		for done < length {
			n := 0
			err := f.call("copy_file_range", func(fd int) (err error) {
				in, out := offset+done, offset+done
				n, err = unix.CopyFileRange(source.fd, &in, fd, &out, int(length-done), 0)
				return err
			})
			if err != nil || n == 0 {
				break // some file systems say neither why nor that they cannot
			}
			done += int64(n)
		}
	}
	buffer := make([]byte, min(length-done, writeStep))
	for done < length {
		n, err := from.ReadAt(buffer[:min(length-done, writeStep)], offset+done)
		if n == 0 {
			return done, unlessEOF(err)
		}
		if _, err := f.WriteAt(buffer[:n], offset+done); err != nil {
			return done, err
		}
		done += int64(n)
	}
	return done, nil
}

// unlessEOF returns nil for the end of a file.
func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// compressedFlag is FS_COMPR_FL of FS_IOC_GETFLAGS.
const compressedFlag = 0x4

// Compresses is true on all of Btrfs: its compression depends on mount options and on properties of directories.
func (f *osFile) Compresses() (compresses bool) {
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

func (f *osFile) PunchHole(offset, length int64) error {
	return f.fallocate(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

func (f *osFile) fallocate(mode uint32, offset, length int64) error {
	if length == 0 {
		return nil
	}
	return f.call("fallocate", func(fd int) error { return unix.Fallocate(fd, mode, offset, length) })
}

func (f *osFile) NextData(offset int64) (int64, error) {
	return f.seek(offset, unix.SEEK_DATA, func(int64) int64 { return offset })
}

func (f *osFile) NextHole(offset int64) (int64, error) {
	return f.seek(offset, unix.SEEK_HOLE, func(size int64) int64 { return size })
}

// seek returns the result for a file without holes if the file system does not report them.
func (f *osFile) seek(offset int64, whence int, withoutHoles func(size int64) int64) (int64, error) {
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

func (f *osFile) Sync() error { return f.call("fsync", unix.Fsync) }

func (f *osFile) SyncRange(offset, length int64) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	err := f.call("sync_file_range", func(fd int) error { return unix.SyncFileRange(fd, offset, length, all) })
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

func (f *osFile) SetMode(permissions uint32) error {
	return f.call("fchmod", func(fd int) error { return unix.Fchmod(fd, permissions&0o777) })
}

func (f *osFile) SetOwner(uid, gid uint32) error {
	return f.call("fchown", func(fd int) error { return unix.Fchown(fd, int(uid), int(gid)) })
}

func (f *osFile) Lock() error {
	err := f.call("flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Hold duplicates the descriptor: both share the lock, and each reports delayed write errors at its close.
func (f *osFile) Hold() (File, error) {
	held := &osFile{directory: f.directory, name: f.name, unnamed: f.unnamed}
	err := f.call("dup", func(fd int) (err error) {
		held.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (f *osFile) Free() (uint64, bool) {
	var stat unix.Statfs_t
	if err := f.call("fstatfs", func(fd int) error { return unix.Fstatfs(fd, &stat) }); err != nil || stat.Blocks == 0 {
		return 0, false
	}
	return stat.Bavail * uint64(stat.Bsize), true
}

func (f *osFile) DropCache(offset, length int64) {
	// If the advice fails, the cached pages are read.
	_ = f.call("fadvise", func(fd int) error { return unix.Fadvise(fd, offset, length, unix.FADV_DONTNEED) })
}
