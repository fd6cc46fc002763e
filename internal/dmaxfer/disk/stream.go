package disk

import (
	"errors"
	"io"
	"time"
)

// Stream is a source that can only be read once and forward, and whose length shows at its end.
type Stream struct {
	file     File
	progress func()
	done     int64
}

// streamStep is how much of a stream is read between two signs of progress: what a pipe holds.
const streamStep = 64 << 10

// NewStream reads from an open file, which it closes in the end. progress hears of every step, since a buffer may take long to fill.
func NewStream(file File, progress func()) *Stream { return &Stream{file: file, progress: progress} }

// streamPause is how long a stream may be slow before what has come of it goes on alone.
const streamPause = 100 * time.Millisecond

// Next fills buffer, or less of it with what has come of a slow stream, or with io.EOF at the end. It waits for whoever writes the
// stream; Close from elsewhere ends the wait.
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

// Close ends a Next that waits.
func (s *Stream) Close() { _ = s.file.Close() }
