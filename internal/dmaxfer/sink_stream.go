package dmaxfer

import (
	"context"
	"errors"
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// streamSink passes pieces on, which come in their order.
type streamSink struct {
	out      disk.File
	progress *Progress
	next     int64
}

// streamStep is how much is written between two signs of progress: what a pipe holds.
const streamStep = 64 << 10

// zeros is what a hole is in a stream.
var zeros [streamStep]byte

var _ sink = (*streamSink)(nil)

func openStream(ctx context.Context, r *receiving) (sink, error) {
	out, err := r.options.stdout()
	if _, explained := errors.AsType[*Error](err); explained {
		return nil, err
	}
	if err != nil {
		return nil, failure(ErrTarget, err, "connect a file or a pipe to it", "cannot write to standard output: %s", disk.Reason(err))
	}
	context.AfterFunc(ctx, func() { _ = out.Close() }) // a lane may wait for room
	return &streamSink{out: out, progress: r.progress}, nil
}

// errStream is asked of a stream what only a file can do.
var errStream = errors.New("internal error: a stream cannot be written at an offset")

// WriteAt implements pump.Target.
func (s *streamSink) WriteAt(piece []byte, offset int64) error {
	if offset != s.next {
		return errStream
	}
	for step := range slices.Chunk(piece, streamStep) {
		if err := s.write(step); err != nil {
			return err
		}
	}
	return nil
}

func (s *streamSink) write(step []byte) error {
	n, err := s.out.Write(step)
	s.next += int64(n)
	if err != nil {
		return failure(ErrTarget, err, "check the process that reads the output",
			"writing to %s failed: %s", s.out.Name(), disk.Reason(err))
	}
	s.progress.stirred()
	return nil
}

// ReadAt implements pump.Target.
func (s *streamSink) ReadAt([]byte, int64) error { return errStream }

// Punch implements pump.Target: a stream has no holes.
func (s *streamSink) Punch(offset, length int64) error {
	if offset != s.next {
		return errStream
	}
	for end := offset + length; s.next < end; {
		if err := s.write(zeros[:min(streamStep, end-s.next)]); err != nil {
			return err
		}
	}
	return nil
}

// finish closes the stream while that can still be a failure of the copy: behind it there may be a file, of which some file systems
// say as late as this that it is lost.
func (s *streamSink) finish(context.Context, digest.Sum, []byte) error {
	if err := s.out.Close(); err != nil {
		return failure(ErrTarget, err, "check the process that reads the output",
			"closing %s failed: %s", s.out.Name(), disk.Reason(err))
	}
	return nil
}

func (s *streamSink) resumable() int64                 { return 0 }
func (s *streamSink) warnings() []string               { return nil }
func (s *streamSink) allocate(context.Context) error   { return nil }
func (s *streamSink) concurrent() bool                 { return false }
func (s *streamSink) advance(int64) error              { return nil }
func (s *streamSink) commit() error                    { return nil }
func (s *streamSink) durability() negotiate.Durability { return negotiate.DurabilityNone }

// A stream that is not finished is closed when the copy's context ends.
func (s *streamSink) close() error          { return nil }
func (s *streamSink) keep() (int64, string) { return 0, "" }
func (s *streamSink) discard() error        { return nil }
func (s *streamSink) abandon(bool) int64    { return 0 }
