package receive

import (
	"context"
	"errors"
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// streamTarget writes chunks to a stream, to which they come in order.
type streamTarget struct {
	out      disk.File
	progress *job.Progress
	next     int64
}

// zeros is what a hole becomes in a stream.
var zeros [role.StreamStep]byte

var _ target = (*streamTarget)(nil)

func openStreamTarget(ctx context.Context, t *role.Params) (target, error) {
	out, err := t.Config.File.OpenOutput()
	if _, explained := errors.AsType[*job.Error](err); explained {
		return nil, err
	}
	if err != nil {
		return nil, job.NewError(job.ErrTarget, err, "connect a file or a pipe to it",
			"cannot write to standard output: %s", disk.Reason(err))
	}
	context.AfterFunc(ctx, func() { _ = out.Close() }) // a lane may wait for the reader
	return &streamTarget{out: out, progress: t.Config.Progress}, nil
}

// errStream means that a stream was asked for what only a file can do.
var errStream = errors.New("internal error: a stream cannot be written at an offset")

// WriteAt implements pump.Target.
func (s *streamTarget) WriteAt(chunk []byte, offset int64) error {
	if offset != s.next {
		return errStream
	}
	for step := range slices.Chunk(chunk, role.StreamStep) {
		if err := s.write(step); err != nil {
			return err
		}
	}
	return nil
}

func (s *streamTarget) write(step []byte) error {
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
func (s *streamTarget) ReadAt([]byte, int64) error { return errStream }

// Punch implements pump.Target: a stream has no holes.
func (s *streamTarget) Punch(offset, length int64) error {
	if offset != s.next {
		return errStream
	}
	for end := offset + length; s.next < end; {
		if err := s.write(zeros[:min(role.StreamStep, end-s.next)]); err != nil {
			return err
		}
	}
	return nil
}

// finish closes the stream while that can still be a failure of the transfer: behind it there may be a file, and some
// file systems report only then that they have lost it.
func (s *streamTarget) finish(context.Context, digest.Sum, disk.Metadata) error {
	if err := s.out.Close(); err != nil {
		return job.NewError(job.ErrTarget, err, "check the process that reads the output",
			"closing %s failed: %s", s.out.Name(), disk.Reason(err))
	}
	return nil
}

func (s *streamTarget) resumable() (int64, wire.Discarded) { return 0, 0 }
func (s *streamTarget) warnings() []string                 { return nil }
func (s *streamTarget) allocate(context.Context) error     { return nil }
func (s *streamTarget) concurrent() bool                   { return false }
func (s *streamTarget) advance(int64) error                { return nil }
func (s *streamTarget) commit() error                      { return nil }

// The following have nothing to close: a stream that is not finished is closed when the transfer's context ends.

func (s *streamTarget) keep() (int64, string) { return 0, "" }
func (s *streamTarget) discard() error        { return nil }
func (s *streamTarget) abandon(bool) int64    { return 0 }
