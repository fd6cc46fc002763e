package job

import "io"

// reader implements io.Reader for what can be read at an offset.
type reader struct {
	from interface {
		ReadAt(p []byte, offset int64) error
	}
	offset, size int64
	read         func(bytes int64)
}

// NewReader returns a reader of the first bytes of a file, which is read by calls that fill their buffer. It calls
// progress after each of them, with the number of bytes read so far.
func NewReader(from interface {
	ReadAt(p []byte, offset int64) error
}, size int64, progress func(read int64)) io.Reader {
	return &reader{from: from, size: size, read: progress}
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	n := min(int64(len(p)), r.size-r.offset)
	if n == 0 {
		return 0, io.EOF
	}
	if err := r.from.ReadAt(p[:n], r.offset); err != nil {
		return 0, err
	}
	r.offset += n
	r.read(r.offset)
	return int(n), nil
}
