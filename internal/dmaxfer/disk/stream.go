package disk

import (
	"errors"
	"io"
	"time"
)

// Stream is a source that can be read only once, and whose length is known at its end.
type Stream struct {
	file     File
	progress func()
	done     int64
}

// NewStream returns a stream that reads an open file and closes it in Close. progress is called after each read,
// because filling a buffer may take long.
func NewStream(file File, progress func()) *Stream { return &Stream{file: file, progress: progress} }

// Next fills buffer. It returns earlier with the bytes of a slow stream after 100 ms, or with io.EOF at the end. It
// waits for at least one byte; Close interrupts it.
func (s *Stream) Next(buffer []byte) (filled int, err error) {
	began := time.Now()
	for filled < len(buffer) && err == nil && (filled == 0 || time.Since(began) < streamPause) {
		var n int
		n, err = s.file.Read(buffer[filled:min(filled+streamStep, len(buffer))])
		filled += n
		s.progress()
	}
	s.done += int64(filled)
	if err != nil && !errors.Is(err, io.EOF) {
		return filled, readFailed(s.file.Name(), s.done, err)
	}
	return filled, err
}

// Close closes the stream and interrupts a Next that waits.
func (s *Stream) Close() { _ = s.file.Close() }
