package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// diskFile is a regular file that is read from its beginning to its end.
type diskFile struct {
	file *os.File
	was  os.FileInfo // when it was opened
}

// openToRead does not wait for a writer should the name be that of a pipe.
func openToRead(path string) (*diskFile, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, cannotRead(path, err, "check the path and its permissions")
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, &dmaxfer.Error{Kind: dmaxfer.ErrSource, Cause: path + " is not a regular file", Next: "name a file, or the manifest of a tree"}
	}
	if err != nil {
		_ = file.Close()
		return nil, cannotRead(path, err, "check the path and its permissions")
	}
	forgetCached(file)
	return &diskFile{file: file, was: info}, nil
}

// forgetCached makes the kernel drop what it holds of the file in memory, so that what is read is what the disk has. Only
// what the disk has already can be dropped, hence the flush. Where either is not possible the file is read all the same.
func forgetCached(file *os.File) {
	descriptor := int(file.Fd())
	_ = unix.Fdatasync(descriptor)
	_ = unix.Fadvise(descriptor, 0, 0, unix.FADV_DONTNEED)
	_ = unix.Fadvise(descriptor, 0, 0, unix.FADV_SEQUENTIAL)
}

// unchanged fails if somebody wrote to the file while it was read, or cut it: its digest is that of no moment.
func (f *diskFile) unchanged() error {
	is, err := f.file.Stat()
	if err != nil {
		return f.failed(err)
	}
	if is.Size() != f.was.Size() || !is.ModTime().Equal(f.was.ModTime()) {
		return &dmaxfer.Error{
			Kind: dmaxfer.ErrSourceChanged, Cause: f.file.Name() + " changed while it was read", Next: "try again when nobody writes to it",
		}
	}
	return nil
}

func (f *diskFile) failed(err error) error { return cannotRead(f.file.Name(), err, "check the disk") }

// close has nothing to report: the file was only read.
func (f *diskFile) close() { _ = f.file.Close() }

func cannotRead(path string, err error, next string) error {
	return &dmaxfer.Error{
		Kind: dmaxfer.ErrSource, Cause: fmt.Sprintf("cannot read %s: %v", path, withoutPath(err)), Next: next, Err: err,
	}
}

// digestOf returns the digest of a file as the disk has it, and its size.
func (v verifier) digestOf(ctx context.Context, a digest.Algorithm, path string) (digest.Sum, int64, error) {
	file, err := openToRead(path)
	if err != nil {
		return digest.Sum{}, 0, err
	}
	defer file.close()
	v.log.Info().Str("path", path).Msg("reading")
	sum, size, err := digest.Of(ctx, a, file.file)
	if ctx.Err() != nil {
		return digest.Sum{}, 0, context.Cause(ctx)
	}
	if err != nil {
		return digest.Sum{}, 0, file.failed(err)
	}
	return sum, size, file.unchanged()
}
