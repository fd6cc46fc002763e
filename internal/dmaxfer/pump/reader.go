package pump

import (
	"bytes"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Chunk is a part of the file that travels as one record.
type Chunk struct {
	Kind   negotiate.Kind
	Offset int64 // in the file
	Length int64 // bytes; of a hole any, otherwise at most the size of a slot
}

// Reader cuts the file into chunks, in the order of their offsets.
type Reader interface {
	// Next reads the next chunk into buffer, which a hole leaves alone; io.EOF after the last. Several lanes may call it at
	// once, unless the reader is a stream.
	Next(buffer []byte) (Chunk, error)
}

// longestHole keeps a lane from being away for long where a digest has to be fed a hole's zeros, or a target has no holes.
const holeStep = 64 << 20

// Source is a file that can be read anywhere.
type Source interface {
	// ReadAt fills buffer from offset.
	ReadAt(buffer []byte, offset int64) error

	// NextExtent is the run of data, or the hole, that begins at offset; io.EOF at the end of the file.
	NextExtent(offset int64) (disk.Extent, error)
}

// FileReader reads a Source. Data is cut where offsets are multiples of the buffer's size, so that a file is cut in the same
// way each time; what the receiver may have already becomes claims.
type FileReader struct {
	source Source
	resume int64 // the receiver says that it has what is below
	holes  Holes

	// cutting holds a token while a lane uses the two below and asks the file system, which virtual time does not wait
	// for under a mutex.
	cursor chan struct{}
	next   int64
	extent disk.Extent // that next lies in, or at the end of
}

// Holes is what becomes of a source's holes.
type Holes int

// The ways.
const (
	KeepHoles  Holes = iota // they are sent as holes, unread
	CheckHoles              // the same, but they are read, and sent as data if they are not what the file system says
	FillHoles               // they are sent like data
)

// NewFileReader returns a reader of the whole source.
func NewFileReader(source Source, resume int64, holes Holes) *FileReader {
	return &FileReader{source: source, resume: resume, holes: holes, cursor: make(chan struct{}, 1)}
}

// Next implements Reader.
func (r *FileReader) Next(buffer []byte) (Chunk, error) {
	chunk, err := r.nextChunk(int64(len(buffer)))
	if err != nil || chunk.Kind == negotiate.HoleRecord && r.holes == KeepHoles {
		return chunk, err
	}
	content := buffer[:chunk.Length]
	if err := r.source.ReadAt(content, chunk.Offset); err != nil {
		return Chunk{}, err
	}
	if chunk.Kind == negotiate.HoleRecord && !allZero(content) {
		chunk.Kind = negotiate.DataRecord
	}
	return chunk, nil
}

// allZero compares the bytes with themselves, one further.
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
		return Chunk{Kind: negotiate.HoleRecord, Offset: r.next, Length: min(end-r.next, holeStep)}
	}
	end = min(end, (r.next/size+1)*size)
	chunk := Chunk{Kind: negotiate.DataRecord, Offset: r.next, Length: end - r.next}
	switch {
	case hole:
		chunk.Kind = negotiate.HoleRecord
	case end <= r.resume:
		chunk.Kind = negotiate.ClaimRecord
	}
	return chunk
}

// Stream is a source that is read once, from its beginning to its end.
type Stream interface {
	// Next fills buffer, or less of it, at least a byte, if the stream is slow; io.EOF, possibly with the last bytes, at the end.
	Next(buffer []byte) (int, error)
}

// StreamReader reads a Stream of any length. It belongs to one lane.
type StreamReader struct {
	stream Stream
	next   int64
	ended  bool
}

// NewStreamReader returns a reader of all that the stream has.
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
	chunk := Chunk{Kind: negotiate.DataRecord, Offset: r.next, Length: int64(n)}
	r.next += chunk.Length
	return chunk, nil
}
