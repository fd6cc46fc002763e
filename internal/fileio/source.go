// Package fileio reads and writes the files of commands other than a copy: manifests, records, and files to compare.
//
// A Source is read from the disk, not from the page cache, and is checked for changes; a Replacement is written like
// the target of a copy, through package disk. It knows no format and no command.
package fileio

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Source is a regular file that is read once from its beginning to its end.
type Source struct {
	Path string // for messages
	File *os.File
	Info os.FileInfo // when it was opened
}

// Open opens a regular file. It does not block on a FIFO or a device.
func Open(path string) (*Source, error) {
	file, err := os.OpenFile(path, readOnly, 0)
	return examined(path, file, err)
}

const readOnly = os.O_RDONLY | unix.O_NONBLOCK

// OpenWithin opens a regular file below a directory. It does not follow a name out of the directory, neither by .. nor
// by symlinks.
func OpenWithin(root *os.Root, name string) (*Source, error) {
	path := disk.Join(root.Name(), name)
	file, err := root.OpenFile(name, readOnly, 0)
	return examined(path, file, err)
}

// examined returns the source if it is a regular file, and closes it otherwise.
func examined(path string, file *os.File, err error) (*Source, error) {
	if err != nil {
		return nil, CannotRead(path, err, "check the path and its permissions")
	}
	opened := &Source{Path: path, File: file}
	if err := opened.examine(); err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// examine returns an error unless the file can be read as a file on a disk.
func (f *Source) examine() (err error) {
	f.Info, err = f.File.Stat()
	if err != nil {
		return f.Failed(err)
	}
	switch {
	case f.Info.IsDir():
		return notAFile(quote.Bare(f.Path)+" is not a regular file", "name a file, or the manifest of a tree")
	case !f.Info.Mode().IsRegular():
		return notAFile(quote.Bare(f.Path)+" is not a regular file", "name a regular file")
	}
	raw, err := f.File.SyscallConn() // File.Fd would make reads block
	if err != nil {
		return f.Failed(err)
	}
	ofKernel := false
	if err := raw.Control(func(fd uintptr) {
		if ofKernel = isOfKernel(int(fd)); !ofKernel {
			dropCached(int(fd))
		}
	}); err != nil {
		return f.Failed(err)
	}
	if ofKernel {
		return notAFile(quote.Bare(f.Path)+" is not a file on a disk", "name a regular file")
	}
	return nil
}

func notAFile(cause, next string) error {
	return &job.Error{Kind: job.ErrSource, Cause: cause, Next: next}
}

// isOfKernel reports whether a file is an interface of the kernel, such as /proc/kmsg: reading it may block or consume
// its content.
func isOfKernel(fd int) bool {
	var on unix.Statfs_t
	if err := unix.Fstatfs(fd, &on); err != nil {
		return false
	}
	switch int64(on.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
		return true
	}
	return false
}

// dropCached drops the file from the page cache, so that the disk is read. Only clean pages can be dropped, hence the
// flush. Errors are ignored: the file can be read nevertheless.
func dropCached(fd int) {
	_ = unix.Fdatasync(fd)
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_SEQUENTIAL)
}

// Unchanged returns an error if the file was written to or truncated since it was opened: then its digest is of no
// state that it ever had.
func (f *Source) Unchanged() error {
	is, err := f.File.Stat()
	if err != nil {
		return f.Failed(err)
	}
	if is.Size() != f.Info.Size() || !is.ModTime().Equal(f.Info.ModTime()) {
		return &job.Error{
			Kind: job.ErrSourceChanged, Cause: quote.Bare(f.Path) + " changed while it was read",
			Next: "try again when no other process writes to it",
		}
	}
	return nil
}

// Failed returns the error of a source that cannot be read.
func (f *Source) Failed(err error) error { return CannotRead(f.Path, err, "check the disk") }

// Close closes the file, which was only read.
func (f *Source) Close() { _ = f.File.Close() }

// CannotRead returns the error of a path that cannot be read, with the next step.
func CannotRead(path string, err error, next string) error {
	return &job.Error{
		Kind: job.ErrSource, Cause: fmt.Sprintf("cannot read %s: %s", quote.Bare(path), disk.Reason(err)),
		Next: next, Err: err,
	}
}
