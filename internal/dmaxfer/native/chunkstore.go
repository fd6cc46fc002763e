package native

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
)

// chunkStore stores the files of a receiver that come in chunks, and gives them their final names:
//
//	chunks ─► target ─► both sides have all of it ─► flushed ─► renamed
//
// Lanes and the planner call expect and stored, jobs prepare, and the owner of the transfer everything else.
type chunkStore struct {
	*outcomes
	gate    *commitGate
	working context.Context // of the transfer; set before the first entry is announced

	// wholeStored is called with the only file of a transfer when all of it is stored. It is finished when the window
	// has been released, so that a failure of that is one of the transfer.
	wholeStored func(e *arriving)

	renames int // jobs that rename a target
}

// expect prepares an entry for content in chunks.
func (s *chunkStore) expect(e *arriving, t target) {
	in := pump.NewIncoming(t, s.terms.plan.Digest, int(s.terms.plan.Depth))
	in.Moved = func(chunk pump.Chunk, prefix int64) error { return s.stored(e, chunk, prefix) }
	in.Failed = func(err error) error { return s.fail(e, err) }
	e.open(t, in)
}

// stored is called by the lanes, one at a time for each file. The length of a stream shows only here.
func (s *chunkStore) stored(e *arriving, chunk pump.Chunk, prefix int64) error {
	if limit := s.terms.config.MaxBytes; limit > 0 && prefix > limit {
		return job.OverLimit(s.terms.config.File.Path, prefix, limit)
	}
	s.account.chunkMoved(e.resume, chunk)
	if err := e.target.advance(prefix); err != nil {
		return s.fail(e, err)
	}
	if e.stores(prefix) {
		s.link.post(func() error { return s.complete(e) })
	}
	return nil
}

// end notes what the sender has read of a file.
func (s *chunkStore) end(e *arriving, size int64, sum digest.Sum) {
	if e.ends(size, sum) {
		s.link.post(func() error { return s.complete(e) })
	}
}

// complete follows the last byte of a file.
func (s *chunkStore) complete(e *arriving) error {
	s.debug(e).Msg("entry stored")
	if s.terms.plan.Tree {
		return s.finish(e)
	}
	s.wholeStored(e)
	return nil
}

// finish prepares a file in a job.
func (s *chunkStore) finish(e *arriving) error {
	s.link.run(func() func() error { return s.prepare(e) })
	return nil
}

// prepare compares, in a job, what has been written with what has been read, and makes it durable. Unless the transfer
// has ended by then, another job gives it its final name.
func (s *chunkStore) prepare(e *arriving) (next func() error) {
	sum := e.in.Sum()
	err := s.verify(e, sum)
	if err == nil {
		err = e.target.finish(s.working, sum, e.meta)
	}
	return func() error {
		if err != nil {
			return s.failNow(e, err)
		}
		return s.rename(e)
	}
}

// verify compares the digest of what has been written with that of what has been read.
func (s *chunkStore) verify(e *arriving, sum digest.Sum) error {
	if sum != e.endSum {
		return job.NewError(job.ErrDigest, nil, "copy again; if it recurs, check the memory"+s.terms.bothSides("of"),
			"digest mismatch of %s: source has %d bytes, %s, target %d bytes, %s",
			e.path, e.endSize, e.endSum, e.in.Prefix(), sum)
	}
	if s.terms.plan.Tree {
		return nil
	}
	if err := s.terms.checkContent(e.endSize, sum); err != nil {
		return err
	}
	s.account.content(e.endSize, sum)
	s.terms.config.Progress.Enter(job.Finishing)
	return nil
}

// rename gives a file its final name. This is not interrupted.
func (s *chunkStore) rename(e *arriving) error {
	if !s.gate.begin() {
		return errHalted
	}
	s.renames++
	s.link.run(func() func() error {
		err := e.target.commit()
		if err == nil {
			s.commit(e)
		}
		s.gate.end()
		return func() error {
			s.renames--
			if err != nil {
				return s.failNow(e, err)
			}
			return s.replies.flush(context.WithoutCancel(s.working))
		}
	})
	return nil
}

// failNow is fail for the owner of the transfer, which sends the failure.
func (s *chunkStore) failNow(e *arriving, err error) error {
	if err := s.fail(e, err); err != nil {
		return err
	}
	return s.replies.flush(s.working)
}
