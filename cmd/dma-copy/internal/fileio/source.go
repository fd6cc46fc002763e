// Package fileio reads and writes the files of commands other than a copy: manifests, records, and files to compare.
//
// A Source is read from the disk, not from the page cache, and is checked for changes; a Replacement is written like the
// target of a copy, through package disk. It knows no format and no command.
package fileio

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Source is a regular file that is read from its beginning to its end.
type Source struct {
	Path string // for messages
	File *os.File
	Info os.FileInfo // when it was opened
}

// Open opens a regular file. It waits neither for the writer of a FIFO nor for a device.
func Open(path string) (*Source, error) {
	file, err := os.OpenFile(path, readOnly, 0)
	return examined(path, file, err)
}

const readOnly = os.O_RDONLY | unix.O_NONBLOCK

// OpenWithin opens a regular file in a directory, and none that the name leads to outside of it, also by symlinks.
func OpenWithin(root *os.Root, name string) (*Source, error) {
	path := disk.Join(root.Name(), name)
	file, err := root.OpenFile(name, readOnly, 0)
	return examined(path, file, err)
}

// examined refuses what is not a regular file, and closes it.
func examined(path string, file *os.File, err error) (*Source, error) {
	if err != nil {
		return nil, CannotRead(path, err, "check the path and its permissions")
	}
	opened := &Source{Path: path, File: file}
	if err := opened.sample(); err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// sample finds out what has been opened, and whether it can be read as a file.
func (f *Source) sample() (err error) {
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
	raw, err := f.File.SyscallConn() // File.Fd would have the reads of it block
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
	return &dmaxfer.Error{Kind: dmaxfer.ErrSource, Cause: cause, Next: next}
}

// isOfKernel reports whether a file is an interface of the kernel, such as /proc/kmsg. To read one may block, and may
// consume what is there; and its content is not what was written to it.
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

// dropCached makes the kernel drop what it holds of the file in memory, so that what is read is what the disk has. Only
// what the disk has already can be dropped, hence the flush. Where either is not possible the file is read all the same.
func dropCached(fd int) {
	_ = unix.Fdatasync(fd)
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_SEQUENTIAL)
}

// Unchanged fails if the file was written to or truncated while it was read: its digest is that of no moment.
func (f *Source) Unchanged() error {
	is, err := f.File.Stat()
	if err != nil {
		return f.Failed(err)
	}
	if is.Size() != f.Info.Size() || !is.ModTime().Equal(f.Info.ModTime()) {
		return &dmaxfer.Error{
			Kind: dmaxfer.ErrSourceChanged, Cause: quote.Bare(f.Path) + " changed while it was read",
			Next: "try again when no other process writes to it",
		}
	}
	return nil
}

func (f *Source) Failed(err error) error { return CannotRead(f.Path, err, "check the disk") }

// Close has nothing to report: the file was only read.
func (f *Source) Close() { _ = f.File.Close() }

func CannotRead(path string, err error, next string) error {
	return &dmaxfer.Error{
		Kind: dmaxfer.ErrSource, Cause: fmt.Sprintf("cannot read %s: %s", quote.Bare(path), disk.Reason(err)),
		Next: next, Err: err,
	}
}
