package dmaxfer

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// source is the file that is sent: opened once, and compared at the end with what it was at the beginning.
type source struct {
	file *os.File
	size int64
	was  identity
}

// identity is what changes when a file's content does: its place on disk, its length, and the two times that a write
// moves. The second of them, ctime, cannot be set back by the writer.
type identity struct {
	device, inode uint64
	size          int64
	modified      unix.Timespec
	changed       unix.Timespec
}

// openSource does not wait for a writer should the name have become a pipe in the meantime.
func openSource(path string) (*source, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, failure(ErrSource, err, "make it readable for this user, or name another file",
			"cannot read %s: %s", path, reason(err))
	}
	opened, err := lookAt(file)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return opened, nil
}

func lookAt(file *os.File) (*source, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, cannotLook(file.Name(), err)
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(file.Name(), info)
	}
	was, err := identify(file)
	if err != nil {
		return nil, cannotLook(file.Name(), err)
	}
	return &source{file: file, size: was.size, was: was}, nil
}

func cannotLook(path string, err error) error {
	return failure(ErrSource, err, "check the path and its permissions", "cannot look at %s: %s", path, reason(err))
}

func identify(file *os.File) (identity, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return identity{}, fmt.Errorf("fstat: %w", err)
	}
	return identity{
		device: uint64(stat.Dev), inode: stat.Ino, size: stat.Size,
		modified: stat.Mtim, changed: stat.Ctim,
	}, nil
}

// readAt fills buffer from offset. A file that ends before that has been truncated.
func (s *source) readAt(buffer []byte, offset int64) error {
	n, err := s.file.ReadAt(buffer, offset)
	switch {
	case n == len(buffer):
		return nil
	case err == io.EOF:
		return s.changed()
	default:
		return failure(ErrSource, err, "check the disk", "reading %s failed at byte %d: %s",
			s.file.Name(), offset+int64(n), reason(err))
	}
}

// verify returns ErrSourceChanged if the file is not what it was when it was opened. It cannot see a write through a
// mapping that the kernel has not yet stamped.
func (s *source) verify() error {
	is, err := identify(s.file)
	if err != nil {
		return cannotLook(s.file.Name(), err)
	}
	if is != s.was {
		return s.changed()
	}
	return nil
}

func (s *source) changed() error {
	return failure(ErrSourceChanged, nil, "copy it again when nobody writes to it",
		"%s changed while it was copied", s.file.Name())
}

// close has nothing to report: the file was only read.
func (s *source) close() { _ = s.file.Close() }
