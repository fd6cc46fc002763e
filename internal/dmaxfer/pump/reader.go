package pump

import (
	"bytes"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// Chunk is a part of the file that is sent as one record.
type Chunk struct {
	Kind   native.Kind
	Offset int64 // in the file, bytes
	Length int64 // in bytes; at most the size of a slot, except for a hole
}

// Reader divides a file into chunks in the order of their offsets.
type Reader interface {
	// Next reads the next chunk into buffer, which a hole does not change. After the last chunk it returns io.EOF.
	// Several lanes may call Next concurrently unless the Reader is a StreamReader.
	Next(buffer []byte) (Chunk, error)
}

// Source is a file that can be read at any offset.
type Source interface {
	// ReadAt fills buffer from offset.
	ReadAt(buffer []byte, offset int64) error

	// NextExtent returns the run of data, or the hole, that starts at offset; io.EOF at the end of the file.
	NextExtent(offset int64) (disk.Extent, error)
}

// FileReader is a Reader of a Source. It cuts data at multiples of the buffer's size, so that every transfer of a
// file has the same chunks. Chunks that the receiver may already have become claims.
type FileReader struct {
	source Source
	resume int64 // the receiver claims to have the bytes below
	holes  Holes

	// cursor holds a token while a lane uses the fields below and asks the file system. It is a channel because tests
	// in virtual time cannot sleep under a mutex.
	cursor chan struct{}
	next   int64       // offset of the next chunk
	extent disk.Extent // contains next, or ends there
}

// Holes selects how a source's holes are sent.
type Holes int

// The ways to send holes.
const (
	KeepHoles  Holes = iota // as holes, without reading them
	CheckHoles              // as holes, but read first, and sent as data if they are not zeros
	FillHoles               // as data
)

// NewFileReader returns a reader of the whole source. The receiver claims to have the first resume bytes.
func NewFileReader(source Source, resume int64, holes Holes) *FileReader {
	return &FileReader{source: source, resume: resume, holes: holes, cursor: make(chan struct{}, 1)}
}

// Next implements Reader.
func (r *FileReader) Next(buffer []byte) (Chunk, error) {
	chunk, err := r.nextChunk(int64(len(buffer)))
	if err != nil || chunk.Kind == native.HoleRecord && r.holes == KeepHoles {
		return chunk, err
	}
	content := buffer[:chunk.Length]
	if err := r.source.ReadAt(content, chunk.Offset); err != nil {
		return Chunk{}, err
	}
	if chunk.Kind == native.HoleRecord && !allZero(content) {
		chunk.Kind = native.DataRecord
	}
	return chunk, nil
}

// allZero reports whether b has only zeros, by comparing it with itself shifted by one byte.
func allZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}

func (r *FileReader) nextChunk(size int64) (Chunk, error) {
	r.cursor <- struct{}{}
	defer func() { <-r.cursor }()
	if r.next == r.extent.Offset+r.extent.Length {
		here, err := r.source.NextExtent(r.next)
		if err != nil {
			return Chunk{}, err
		}
		r.extent = here
	}
	chunk := r.chunkAtNext(size)
	r.next += chunk.Length
	return chunk, nil
}

func (r *FileReader) chunkAtNext(size int64) Chunk {
	end := r.extent.Offset + r.extent.Length
	hole := r.extent.Hole && r.holes != FillHoles
	if hole && r.holes == KeepHoles {
		return Chunk{Kind: native.HoleRecord, Offset: r.next, Length: min(end-r.next, holeStep)}
	}
	end = min(end, (r.next/size+1)*size)
	chunk := Chunk{Kind: native.DataRecord, Offset: r.next, Length: end - r.next}
	switch {
	case hole:
		chunk.Kind = native.HoleRecord
	case end <= r.resume:
		chunk.Kind = native.ClaimRecord
	}
	return chunk
}

// Stream is a source that is read once, from its beginning to its end.
type Stream interface {
	// Next fills buffer. If the stream is slow it returns with at least one byte. At the end it returns io.EOF,
	// possibly with the last bytes.
	Next(buffer []byte) (int, error)
}

// StreamReader is a Reader of a Stream of any length, for one lane.
type StreamReader struct {
	stream Stream
	next   int64
	ended  bool
}

// NewStreamReader returns a reader of the whole stream.
func NewStreamReader(stream Stream) *StreamReader { return &StreamReader{stream: stream} }

// Next implements Reader.
func (r *StreamReader) Next(buffer []byte) (Chunk, error) {
	if r.ended {
		return Chunk{}, io.EOF
	}
	n, err := r.stream.Next(buffer)
	r.ended = err == io.EOF
	if err != nil && (!r.ended || n == 0) {
		return Chunk{}, err
	}
	chunk := Chunk{Kind: native.DataRecord, Offset: r.next, Length: int64(n)}
	r.next += chunk.Length
	return chunk, nil
}
