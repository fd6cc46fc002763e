package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"iter"
)

// Source is the file to send. It is opened once, and compared at the end with its state at the beginning. ReadAt may
// be called concurrently.
type Source struct {
	file   File
	atOpen Info
}

// OpenSource opens a regular file, following symlinks. Errors are an ErrSource.
func OpenSource(on FS, path string) (*Source, error) {
	file, err := on.Open(path)
	if err != nil {
		return nil, NewError(ErrSource, err, "make it readable for this user, or name another file",
			"cannot read %s: %s", path, Reason(err))
	}
	was, err := file.Info()
	if err == nil && was.Mode.IsRegular() {
		return NewSource(file, was), nil
	}
	_ = file.Close() // was not read
	if err != nil {
		return nil, CannotStat(path, err)
	}
	return nil, NotRegular(path, was.Mode)
}

// NewSource returns the source for an open regular file with the given Info. Close closes the file.
func NewSource(file File, atOpen Info) *Source { return &Source{file: file, atOpen: atOpen} }

// CannotStat returns the ErrSource for a path that cannot be examined.
func CannotStat(path string, err error) error {
	return NewError(ErrSource, err, "check the path and its permissions", "cannot stat %s: %s", path, Reason(err))
}

// NotRegular returns the ErrSource for a path that is not a regular file.
func NotRegular(path string, mode fs.FileMode) error {
	what := "not a regular file"
	if mode.IsDir() {
		what = "a directory"
	}
	return NewError(ErrSource, nil, "name a regular file", "%s is %s", path, what)
}

// Info returns the file's Info when it was opened.
func (s *Source) Info() Info { return s.atOpen }

// File returns the open file, for callers that map it or read its attributes.
func (s *Source) File() File { return s.file }

// Fingerprint returns a digest of the identity, by which a receiver recognises the source when a transfer is resumed.
// It does not depend on the content, nor on the change time: what was received is compared with the source again.
func (i Identity) Fingerprint() [16]byte {
	text := make([]byte, 0, 40)
	for _, n := range [...]uint64{
		i.Device, i.Inode, uint64(i.Size), uint64(i.Modified.Sec), uint64(i.Modified.Nsec),
	} {
		text = binary.BigEndian.AppendUint64(text, n)
	}
	sum := sha256.Sum256(text)
	return [16]byte(sum[:16])
}

// ReadAt fills buffer from offset. It returns ErrSourceChanged if the file was truncated, and ErrSource if it always
// ended before.
func (s *Source) ReadAt(buffer []byte, offset int64) error {
	n, err := s.file.ReadAt(buffer, offset)
	switch {
	case n == len(buffer):
		return nil
	case errors.Is(err, io.EOF):
		return s.endedAt(offset + int64(n))
	default:
		return readFailed(s.file.Name(), offset+int64(n), err)
	}
}

// endedAt returns the error for a file that ends before its size: it was truncated, or its size does not match its
// content.
func (s *Source) endedAt(end int64) error {
	is, err := s.file.Info()
	if err != nil {
		return CannotStat(s.file.Name(), err)
	}
	if is.Size != s.atOpen.Size {
		return s.changed()
	}
	return NewError(ErrSource, nil, "copy it to a regular file first, and send that",
		"%s ends at byte %d, although its size is %d", s.file.Name(), end, is.Size)
}

// ReadWhole fills buffer with the content of a small file, whose size buffer has, and returns what Verify returns: the
// content is read again if only the change time has moved.
func (s *Source) ReadWhole(buffer []byte) error {
	if err := s.ReadAt(buffer, 0); err != nil {
		return err
	}
	return s.Verify(func() (bool, error) {
		again := make([]byte, len(buffer))
		err := s.ReadAt(again, 0)
		return bytes.Equal(again, buffer), err
	})
}

func readFailed(path string, at int64, err error) error {
	return NewError(ErrSource, err, "check the disk", "reading %s failed at byte %d: %s", path, at, Reason(err))
}

// Unsized returns the source as a file to be read forward if its size does not match its content: many kernel files
// (/proc, /sys) have a size of 0 bytes or one page. For all other sources it returns nil. The File shares the source's
// handle; it starts with the bytes that Unsized has read, because some files return each byte only once.
func (s *Source) Unsized() (File, error) {
	switch {
	case s.atOpen.Size == 0:
		return s.readAhead(make([]byte, unsizedStep))
	case s.atOpen.Allocated == 0:
		return s.readLast(make([]byte, 1))
	}
	return nil, nil
}

func (s *Source) readAhead(buffer []byte) (File, error) {
	n, err := s.file.Read(buffer)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, readFailed(s.file.Name(), 0, err)
	}
	if n == 0 {
		return nil, nil
	}
	return &unsized{File: s.file, ahead: buffer[:n]}, nil
}

// readLast reads the last byte of a file that has a size but no blocks. A sparse file has a hole there, a kernel file
// ends before.
func (s *Source) readLast(buffer []byte) (File, error) {
	_, err := s.file.ReadAt(buffer, s.atOpen.Size-1)
	switch {
	case errors.Is(err, io.EOF):
		return s.file, nil
	case err != nil:
		return nil, readFailed(s.file.Name(), s.atOpen.Size-1, err)
	}
	return nil, nil
}

// unsized is a file whose first bytes have been read already.
type unsized struct {
	File
	ahead []byte
}

func (u *unsized) Read(p []byte) (int, error) {
	if len(u.ahead) == 0 {
		return u.File.Read(p)
	}
	n := copy(p, u.ahead)
	u.ahead = u.ahead[n:]
	return n, nil
}

// Extent is a run of bytes that are all data or all a hole.
type Extent struct {
	Offset, Length int64
	Hole           bool
}

// NextExtent returns the longest run of data, or of holes, that starts at offset, or io.EOF at the size that the file
// had when it was opened. It ignores holes that appear or vanish meanwhile; Verify detects their cause.
func (s *Source) NextExtent(offset int64) (Extent, error) {
	if offset >= s.atOpen.Size {
		return Extent{}, io.EOF
	}
	data, err := s.file.NextData(offset)
	if errors.Is(err, io.EOF) {
		return s.holeToTheEnd(offset)
	}
	if err != nil {
		return Extent{}, readFailed(s.file.Name(), offset, err)
	}
	if data > offset {
		return Extent{Offset: offset, Length: min(data, s.atOpen.Size) - offset, Hole: true}, nil
	}
	hole, err := s.file.NextHole(offset)
	if errors.Is(err, io.EOF) {
		return Extent{}, s.changed()
	}
	if err != nil {
		return Extent{}, readFailed(s.file.Name(), offset, err)
	}
	return Extent{Offset: offset, Length: min(hole, s.atOpen.Size) - offset}, nil
}

// holeToTheEnd returns the last hole, unless the file was truncated and so has no data there.
func (s *Source) holeToTheEnd(offset int64) (Extent, error) {
	is, err := s.file.Info()
	if err != nil {
		return Extent{}, CannotStat(s.file.Name(), err)
	}
	if is.Size < s.atOpen.Size {
		return Extent{}, s.changed()
	}
	return Extent{Offset: offset, Length: s.atOpen.Size - offset, Hole: true}, nil
}

// Extents returns all extents in order. If there is an error, it comes with the last pair.
func (s *Source) Extents() iter.Seq2[Extent, error] {
	return func(yield func(Extent, error) bool) {
		for offset := int64(0); ; {
			extent, err := s.NextExtent(offset)
			if errors.Is(err, io.EOF) || !yield(extent, err) || err != nil {
				return
			}
			offset += extent.Length
		}
	}
}

// HolesExceed reports whether more than limit bytes of the source are holes. It scans the file only if the number of
// blocks allows it.
func (s *Source) HolesExceed(limit int64) (bool, error) {
	if s.atOpen.Size-s.atOpen.Allocated <= limit {
		return false, nil
	}
	total := int64(0)
	for extent, err := range s.Extents() {
		if err != nil {
			return false, err
		}
		if extent.Hole {
			total += extent.Length
		}
		if total > limit {
			return true, nil
		}
	}
	return false, nil
}

// Verify returns ErrSourceChanged if the file has changed, or was removed, since it was opened. If nothing but its
// change time has, as by chmod(1) or by a new name, same decides: it reads the file again, and reports whether that is
// the same content. Without same the file has changed then. Verify cannot detect a write through a mapping that the
// kernel has not recorded yet.
func (s *Source) Verify(same func() (bool, error)) error {
	is, err := s.file.Info()
	if err != nil {
		return CannotStat(s.file.Name(), err)
	}
	if is.Identity == s.atOpen.Identity {
		return nil
	}
	if same == nil || is.Links == 0 || !is.SameButForChange(s.atOpen.Identity) {
		return s.changed()
	}
	isSame, err := same()
	if err != nil {
		return err
	}
	if is, err = s.file.Info(); err != nil {
		return CannotStat(s.file.Name(), err)
	}
	if !isSame || !is.SameButForChange(s.atOpen.Identity) {
		return s.changed()
	}
	return nil
}

func (s *Source) changed() error {
	return NewError(ErrSourceChanged, nil, "copy again when no other process writes to it",
		"%s changed during the copy", s.file.Name())
}

// Close reports no errors, because the file was only read.
func (s *Source) Close() { _ = s.file.Close() }
