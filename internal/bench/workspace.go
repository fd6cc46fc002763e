package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
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
	return w, os.Mkdir(w.targetDir(), 0o700)
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

// socket returns the name of an abstract socket, because the path of a file may be too long for a socket.
func (w *workspace) socket() string {
	_, name := disk.Split(w.folder)
	return name
}

// checkSpace returns an error if there is no space for a file of that size and its copy.
func (w *workspace) checkSpace(size int64) error {
	var system unix.Statfs_t
	if err := unix.Statfs(w.folder, &system); err != nil {
		return fmt.Errorf("free space in %s: %w", w.folder, err)
	}
	free, wanted := int64(system.Bavail)*system.Bsize, 2*size+slack
	if system.Type == unix.TMPFS_MAGIC {
		free = min(free, availableMemory()) // the size of a tmpfs may exceed the memory
	}
	if free < wanted {
		return directoryError(nil, "name another directory with --dir, or smaller files with --sizes",
			"%s has %s free, but a file of %s and its copy need %s",
			w.parent, sizeText(free), sizeText(size), sizeText(wanted))
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

// clear removes what a run has left, including partial files.
func (w *workspace) clear() error {
	left, err := os.ReadDir(w.targetDir())
	if err != nil {
		return err
	}
	for _, entry := range left {
		if err := os.RemoveAll(disk.Join(w.targetDir(), entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// warm reads the source, so that all of it is in the page cache.
func (w *workspace) warm() error {
	file, err := os.Open(w.source())
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
	var files [2]*os.File
	for i, path := range []string{w.source(), w.target()} {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close() // only read from
		files[i] = file
	}
	found, err := digest.Compare(ctx, digest.XXH3, files[0], files[1])
	if err == nil && !found.Same() {
		err = fmt.Errorf("the target differs from the source, first at offset %d", found.Differ)
	}
	return err
}

// prepareRun establishes the conditions of every run: no target, the source in the page cache, memory that the
// hypervisor has granted.
func (w *workspace) prepareRun(size int64, memoryTouched *bool) error {
	if err := w.clear(); err != nil {
		return err
	}
	if err := w.warm(); err != nil {
		return err
	}
	*memoryTouched = touchMemory(size) && *memoryTouched
	return nil
}

// checkRun verifies the target of a run, and its content if thoroughly is set.
func (w *workspace) checkRun(ctx context.Context, size int64, thoroughly bool) error {
	if err := w.checkSize(size); err != nil || !thoroughly {
		return err
	}
	return w.checkContent(ctx)
}
