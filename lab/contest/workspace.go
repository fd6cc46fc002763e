package contest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/lab/bench"
)

const (
	blockSize = 1 << 20  // unit in which files are written and read here
	slack     = 64 << 20 // what a copy needs in addition to its files
)

// workspace is a directory with the source and the target of every run.
type workspace struct {
	parent string // as the user named it, for messages
	folder string // created in parent
	buffer []byte
}

// newWorkspace creates a directory in parent.
func newWorkspace(parent string) (*workspace, error) {
	folder, err := os.MkdirTemp(parent, "dma-copy-bench-")
	if err != nil {
		return nil, directoryError(err, "name another directory with --dir", "cannot use %s", parent)
	}
	w := &workspace{parent: parent, folder: folder, buffer: make([]byte, blockSize)}
	return w, w.reset()
}

// reset removes the source and all targets.
func (w *workspace) reset() error {
	return errors.Join(removeContent(w.folder), os.Mkdir(w.targetDir(), 0o700))
}

// directoryError returns the error for a directory in which nothing can be copied.
func directoryError(err error, next, format string, args ...any) error {
	cause := fmt.Sprintf(format, args...)
	if failed, is := errors.AsType[*os.PathError](err); is {
		cause += ": " + failed.Err.Error()
	}
	return &job.Error{Kind: job.ErrTarget, Cause: cause, Err: err, Next: next}
}

func (w *workspace) close() error { return os.RemoveAll(w.folder) }

func (w *workspace) source() string    { return disk.Join(w.folder, "source") }
func (w *workspace) targetDir() string { return disk.Join(w.folder, "received") }
func (w *workspace) target() string    { return disk.Join(w.targetDir(), "target") }

// keptTarget returns the name of one of the targets that stay when a run is prepared.
func (w *workspace) keptTarget(number int) string {
	return disk.Join(w.folder, fmt.Sprintf("kept-%d", number))
}

// socket returns the name of an abstract socket, because the path of a file may be too long for a socket.
func (w *workspace) socket() string {
	_, name := disk.Split(w.folder)
	return name
}

// space is what a source and its copies take of a file system.
type space struct {
	what   string // for the message
	bytes  int64
	inodes int64
	next   string // what else the user can do than name another directory
}

// checkSpace returns an error if there is no such space.
func (w *workspace) checkSpace(needed space) error {
	var system unix.Statfs_t
	if err := unix.Statfs(w.folder, &system); err != nil {
		return fmt.Errorf("free space in %s: %w", w.folder, err)
	}
	free, wanted := int64(system.Bavail)*system.Bsize, needed.bytes+slack
	if system.Type == unix.TMPFS_MAGIC {
		free = min(free, bench.AvailableMemory()) // the size of a tmpfs may exceed the memory
	}
	next := "name another directory with --dir, or " + needed.next
	if free < wanted {
		return directoryError(nil, next, "%s has %s free, but %s need %s",
			w.parent, bench.SizeText(free), needed.what, bench.SizeText(wanted))
	}
	// Some file systems have no fixed number of inodes.
	if inodes := int64(system.Ffree); system.Files > 0 && inodes < needed.inodes {
		return directoryError(nil, next, "%s has %d free inodes, but %s need %d",
			w.parent, inodes, needed.what, needed.inodes)
	}
	return nil
}

// makeSource writes pseudo-random data, which no file system can compress, and flushes it, so that no run has to.
func (w *workspace) makeSource(ctx context.Context, size int64) error {
	file, err := os.Create(w.source())
	if err != nil {
		return err
	}
	defer file.Close() // has no effect after the Close below
	noise := rand.NewChaCha8([32]byte{1})
	for left := size; left > 0; left -= blockSize {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		block := w.buffer[:min(left, blockSize)]
		_, _ = noise.Read(block) // never fails
		if _, err := file.Write(block); err != nil {
			return err
		}
	}
	return errors.Join(file.Sync(), file.Close())
}

// flush writes everything of the file system to its disk, so that no run has to.
func (w *workspace) flush() error {
	directory, err := os.Open(w.folder)
	if err != nil {
		return err
	}
	defer directory.Close() // only read from
	return unix.Syncfs(int(directory.Fd()))
}

// clear removes what a run has left, including partial files. Kept targets stay.
func (w *workspace) clear() error { return removeContent(w.targetDir()) }

func removeContent(directory string) error {
	left, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, entry := range left {
		if err := os.RemoveAll(disk.Join(directory, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// warm reads the source, a file or a tree, so that all of it is in the page cache.
func (w *workspace) warm() error {
	return filepath.WalkDir(w.source(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return w.warmFile(path)
	})
}

func (w *workspace) warmFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // only read from
	_, err = io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{file}, w.buffer)
	return err
}

// onlyReader and onlyWriter make io.CopyBuffer use its buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// checkSize compares the size of the target.
func (w *workspace) checkSize(size int64) error {
	info, err := os.Stat(w.target())
	if err != nil {
		return err
	}
	if info.Size() != size {
		return fmt.Errorf("the target has %d bytes, not %d", info.Size(), size)
	}
	return nil
}

// checkContent compares the target with the source, byte by byte.
func (w *workspace) checkContent(ctx context.Context) error {
	at, err := filetree.CompareFiles(ctx, w.source(), w.target())
	if err == nil && at >= 0 {
		err = fmt.Errorf("the target differs from the source, first at offset %d", at)
	}
	return err
}
