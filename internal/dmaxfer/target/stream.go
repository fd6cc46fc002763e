package target

import (
	"context"
	"errors"
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// stream writes chunks to an output, to which they come in order.
type stream struct {
	out      disk.File
	progress *job.Progress
	next     int64
}

// Step is how many bytes are written to a stream between two reports of progress: what a pipe holds.
const Step = 64 << 10

// zeros is what a hole becomes in a stream.
var zeros [Step]byte

var _ Target = (*stream)(nil)

// OpenStream returns the target for the output that open opens. It is closed when ctx ends.
func OpenStream(ctx context.Context, open func() (disk.File, error), progress *job.Progress) (Target, error) {
	out, err := open()
	if _, explained := errors.AsType[*job.Error](err); explained {
		return nil, err
	}
	if err != nil {
		return nil, job.NewError(job.ErrTarget, err, "connect a file or a pipe to it",
			"cannot write to standard output: %s", disk.Reason(err))
	}
	context.AfterFunc(ctx, func() { _ = out.Close() }) // a lane may wait for the reader
	return &stream{out: out, progress: progress}, nil
}

// errStream means that a stream was asked for what only a file can do.
var errStream = errors.New("internal error: a stream cannot be written at an offset")

// WriteAt implements pump.Target.
func (s *stream) WriteAt(chunk []byte, offset int64) error {
	if offset != s.next {
		return errStream
	}
	for step := range slices.Chunk(chunk, Step) {
		if err := s.write(step); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) write(step []byte) error {
	n, err := s.out.Write(step)
	s.next += int64(n)
	if err != nil {
		return job.NewError(job.ErrTarget, err, "check the process that reads the output",
			"writing to %s failed: %s", s.out.Name(), disk.Reason(err))
	}
	s.progress.Touch()
	return nil
}

// ReadAt implements pump.Target.
func (s *stream) ReadAt([]byte, int64) error { return errStream }

// Punch implements pump.Target: a stream has no holes.
func (s *stream) Punch(offset, length int64) error {
	if offset != s.next {
		return errStream
	}
	for end := offset + length; s.next < end; {
		if err := s.write(zeros[:min(Step, end-s.next)]); err != nil {
			return err
		}
	}
	return nil
}

// Finish closes the stream while that can still be a failure of the transfer: behind it there may be a file, and some
// file systems report only then that they have lost it.
func (s *stream) Finish(context.Context, digest.Sum, disk.Metadata) error {
	if err := s.out.Close(); err != nil {
		return job.NewError(job.ErrTarget, err, "check the process that reads the output",
			"closing %s failed: %s", s.out.Name(), disk.Reason(err))
	}
	return nil
}

func (s *stream) Resumable() (int64, wire.Discarded) { return 0, 0 }
func (s *stream) Warnings() []string                 { return nil }
func (s *stream) Allocate(context.Context) error     { return nil }
func (s *stream) Concurrent() bool                   { return false }
func (s *stream) Advance(int64) error                { return nil }
func (s *stream) Commit() error                      { return nil }

// The following have nothing to close: a stream that is not finished is closed when the transfer's context ends.

func (s *stream) Keep() (int64, string) { return 0, "" }
func (s *stream) Discard() error        { return nil }
func (s *stream) Abandon(bool) int64    { return 0 }
