package disk

import (
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// rawFile is a File that was opened for reading in a directory. What a sender does with a small file uses the
// descriptor. The other methods make an os.File of it, which takes about as long as opening and reading a small file.
type rawFile struct {
	directory, name string // for messages
	fd              int

	// state is twice the number of calls that use the descriptor, plus one after Close. The last of them
	// closes the descriptor, so that a call that hangs never uses that of another file.
	state atomic.Int64

	mu   sync.Mutex
	full File // owns the descriptor; nil as long as there is no os.File
}

// noDescriptor is one that no process has.
const noDescriptor = math.MaxInt32

// whole returns the file with all methods. After Close they fail.
func (f *rawFile) whole() File {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full != nil {
		return f.full
	}
	fd := f.fd
	if f.isClosed() {
		fd = noDescriptor
	}
	made, _ := asFile(os.NewFile(uintptr(fd), f.Name()), nil) // fails for a nil file only
	if fd == f.fd {
		f.full = made
	}
	return made
}

func (f *rawFile) isClosed() bool { return f.state.Load()&1 == 1 }

func (f *rawFile) Name() string { return Join(f.directory, f.name) }

// call runs a system call that a signal may interrupt. The descriptor stays open meanwhile.
func (f *rawFile) call(op string, call func(fd int) error) error {
	err := error(os.ErrClosed)
	if f.begin() {
		err = retry(func() error { return call(f.fd) })
		f.end()
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: err}
	}
	return nil
}

// begin counts a call; it reports false after Close.
func (f *rawFile) begin() bool {
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

func (f *rawFile) end() {
	if f.state.Add(-2) == 1 {
		_ = f.close() // was only read
	}
}

// Close closes the descriptor now or, if a call uses it, after that call.
func (f *rawFile) Close() error {
	switch before := f.state.Or(1); {
	case before == 0:
		return f.close()
	case before&1 == 1:
		return &fs.PathError{Op: "close", Path: f.Name(), Err: os.ErrClosed}
	}
	return nil
}

func (f *rawFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full != nil {
		return f.full.Close()
	}
	return unix.Close(f.fd)
}

func (f *rawFile) ReadAt(p []byte, offset int64) (int, error) {
	done := 0
	for done < len(p) {
		n := 0
		err := f.call("read", func(fd int) (err error) {
			n, err = unix.Pread(fd, p[done:], offset+int64(done))
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

func (f *rawFile) Info() (Info, error) {
	var stat unix.Stat_t
	if err := f.call("fstat", func(fd int) error { return unix.Fstat(fd, &stat) }); err != nil {
		return Info{}, err
	}
	return infoOf(&stat), nil
}

func (f *rawFile) NextData(offset int64) (int64, error) { return nextData(f, offset) }

func (f *rawFile) NextHole(offset int64) (int64, error) { return nextHole(f, offset) }

func (f *rawFile) OS() *os.File { return f.whole().OS() }

func (f *rawFile) WriteAt(p []byte, offset int64) (int, error) { return f.whole().WriteAt(p, offset) }

func (f *rawFile) Read(p []byte) (int, error) { return f.whole().Read(p) }

func (f *rawFile) Write(p []byte) (int, error) { return f.whole().Write(p) }

func (f *rawFile) Truncate(size int64) error { return f.whole().Truncate(size) }

func (f *rawFile) Allocate(offset, length int64) error { return f.whole().Allocate(offset, length) }

func (f *rawFile) Compresses() bool { return f.whole().Compresses() }

func (f *rawFile) Filler(size int64) (Filler, error) { return f.whole().Filler(size) }

func (f *rawFile) PunchHole(offset, length int64) error { return f.whole().PunchHole(offset, length) }

func (f *rawFile) Sync() error { return f.whole().Sync() }

func (f *rawFile) SyncRange(offset, length int64) error { return f.whole().SyncRange(offset, length) }

func (f *rawFile) SetMode(permissions uint32) error { return f.whole().SetMode(permissions) }

func (f *rawFile) SetOwner(uid, gid uint32) error { return f.whole().SetOwner(uid, gid) }

func (f *rawFile) SetModified(at Timestamp) error { return f.whole().SetModified(at) }

func (f *rawFile) Xattrs() ([]Xattr, error) { return f.whole().Xattrs() }

func (f *rawFile) SetXattr(attribute Xattr) error { return f.whole().SetXattr(attribute) }

func (f *rawFile) Lock() error { return f.whole().Lock() }

func (f *rawFile) GiveName(name string) error { return f.whole().GiveName(name) }

func (f *rawFile) Hold() (File, error) { return f.whole().Hold() }

func (f *rawFile) Free() (uint64, bool) { return f.whole().Free() }

func (f *rawFile) DropCache(offset, length int64) { f.whole().DropCache(offset, length) }
