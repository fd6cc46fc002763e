package job

import "io"

// ReaderAt reads all of p from an offset, in bytes, or fails.
type ReaderAt interface {
	ReadAt(p []byte, offset int64) error
}

// reader implements io.Reader.
type reader struct {
	from         ReaderAt
	offset, size int64
	progress     func(done int64)
}

// NewReader returns a reader of the first size bytes of a file. It calls progress after each call of the file, with the
// number of bytes read so far. It is for one goroutine.
func NewReader(from ReaderAt, size int64, progress func(done int64)) io.Reader {
	return &reader{from: from, size: size, progress: progress}
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
	r.progress(r.offset)
	return int(n), nil
}

// touchingReader implements io.Reader.
type touchingReader struct {
	from     io.Reader
	progress *Progress
}

// Reader returns a reader that reads from another one and counts each call as progress.
func (p *Progress) Reader(from io.Reader) io.Reader { return touchingReader{from, p} }

// Read implements io.Reader.
func (t touchingReader) Read(p []byte) (int, error) {
	t.progress.Touch()
	return t.from.Read(p)
}
