package digest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
)

// Of reads from until its end and returns the digest and the number of bytes read. If ctx ends, Of returns its cause.
func Of(ctx context.Context, a Algorithm, from io.Reader) (Sum, int64, error) {
	s := newStream(a, from)
	defer s.release()
	for {
		chunk, err := s.next(ctx)
		if err != nil {
			return Sum{}, s.read.Prefix(), err
		}
		if len(chunk) == 0 {
			return s.read.Sum(), s.read.Prefix(), nil
		}
	}
}

// Comparison is the result of Compare.
type Comparison struct {
	Sums   [2]Sum
	Sizes  [2]int64
	Differ int64 // offset of the first byte that differs or that only one stream has; -1 if there is none
}

// Same reports whether both streams have the same bytes. It compares bytes, not digests.
func (c Comparison) Same() bool { return c.Differ < 0 }

// Compare reads both streams to their ends and compares their bytes and digests. It fails with the error of a reader
// or with the cause of ctx.
func Compare(ctx context.Context, a Algorithm, first, second io.Reader) (Comparison, error) {
	streams := [2]*stream{newStream(a, first), newStream(a, second)}
	defer streams[0].release()
	defer streams[1].release()
	result := Comparison{Differ: -1}
	for {
		var chunks [2][]byte
		for i, s := range streams {
			chunk, err := s.next(ctx)
			if err != nil {
				return Comparison{}, err
			}
			chunks[i] = chunk
		}
		if len(chunks[0])+len(chunks[1]) == 0 {
			break
		}
		if result.Same() {
			result.Differ = firstDifference(result.Sizes[0], chunks)
		}
		for i, s := range streams {
			result.Sizes[i] = s.read.Prefix()
		}
	}
	result.Sums = [2]Sum{streams[0].read.Sum(), streams[1].read.Sum()}
	return result, nil
}

// firstDifference returns the file offset of the first difference between two chunks that start at offset, or -1.
func firstDifference(offset int64, chunks [2][]byte) int64 {
	if bytes.Equal(chunks[0], chunks[1]) {
		return -1
	}
	common := min(len(chunks[0]), len(chunks[1]))
	for i := range common {
		if chunks[0][i] != chunks[1][i] {
			return offset + int64(i)
		}
	}
	return offset + int64(common)
}

// stream computes the digest of what it reads.
type stream struct {
	from   io.Reader
	read   *Ledger
	buffer *[readSize]byte
}

// buffers are reused: a new one takes longer to clear than a small file to read.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

func newStream(a Algorithm, from io.Reader) *stream {
	return &stream{from: from, read: NewLedger(a, 0), buffer: buffers.Get().(*[readSize]byte)}
}

// release makes the buffer and the hash available to other streams. The stream, and chunks of it, must not be used any
// more.
func (s *stream) release() {
	buffers.Put(s.buffer)
	if s.read.hash != nil {
		s.read.hash.release()
	}
}

// next returns the next chunk of readSize bytes, a shorter one at the end of the stream, and then empty ones.
func (s *stream) next(ctx context.Context) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	n, err := fill(s.from, s.buffer[:])
	if err != nil || n == 0 {
		return nil, err
	}
	return s.buffer[:n], s.read.Write(s.read.Prefix(), s.buffer[:n])
}

// fill reads until buffer is full or the stream ends. Unlike io.ReadFull it passes on a reader's io.ErrUnexpectedEOF.
func fill(from io.Reader, buffer []byte) (filled int, err error) {
	for filled < len(buffer) && err == nil {
		var n int
		n, err = from.Read(buffer[filled:])
		filled += n
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return filled, err
}
