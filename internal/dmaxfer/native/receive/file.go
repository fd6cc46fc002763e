package receive

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// files stores the files that come in chunks, and gives them their final names. This file is the life of one of them,
// from the decision that its content is needed to its result:
//
//	need ─► prepare ─► answer ... stored, ended ─► complete ─► verify ─► rename ─► commit
//
// The planner and a job that compares digests call need; lanes call stored; jobs call verify. The owner of the transfer
// calls everything else.
type files struct {
	t       *role.Transfer
	results *results
	replies *replies
	limits  *limits
	gate    *commitGate
	flush   func(ctx context.Context) error // sends the replies

	// wholeStored is called with the only file of a transfer when all of it is stored. It is verified when the window
	// has been released, so that a failed release fails the transfer.
	wholeStored func(e *entry)

	renames int // jobs that rename a target
}

// need answers that the content of a file is needed. A file that fits into one slot needs no preparation. One with
// extended attributes waits until they can be held; how many bytes they have is not known yet.
func (f *files) need(ctx context.Context, e *entry, change native.Change) error {
	if f.t.Params.Plan.DryRun {
		f.results.wouldNeed(e, change)
		return nil
	}
	if e.hasAttributes {
		undecided, err := f.limits.acquire(ctx, e, f.limits.fileAttributes, native.MaxMetadata, &e.attributed)
		if !undecided {
			return err
		}
	}
	if e.chunked {
		if undecided, err := f.limits.acquire(ctx, e, f.limits.files, 1, &e.permits); !undecided {
			return err
		}
		if err := f.prepare(ctx, e); err != nil {
			return f.results.fail(e, err)
		}
	}
	e.become(needed)
	role.LogNeeded(f.results.log(e), e.resume)
	f.t.Stats.Begins(e.size, e.resume)
	f.replies.answer(e, native.Answer{
		Kind: native.AnswerNeed, Offset: uint64(e.resume), Discarded: e.dropped,
	})
	return nil
}

// prepare opens and preallocates the target of a file, and finds what it has already: of an earlier transfer, or of the
// file that is replaced.
func (f *files) prepare(ctx context.Context, e *entry) error {
	t, err := f.open(ctx, e)
	if err != nil {
		return err
	}
	in := pump.NewIncoming(t, f.t.Params.Plan.Digest, int(f.t.Params.Plan.Depth))
	in.Moved = func(chunk pump.Chunk, prefix int64) error { return f.stored(e, chunk, prefix) }
	in.Failed = func(err error) error { return f.results.fail(e, err) }
	e.open(t, in)
	err = t.Allocate(ctx)
	e.resume, e.dropped = t.Resumable()
	if e.resume < e.size { // a chunk that the target has only in part is sent
		e.resume -= e.resume % int64(f.t.Params.Plan.Chunk)
	}
	for _, sentence := range t.Warnings() {
		f.t.Stats.Notify(job.Warned{Text: sentence})
	}
	in.SerialWrites = !t.Concurrent()
	return err
}

// stored follows a chunk, one at a time for each file. The length of a stream shows only here.
func (f *files) stored(e *entry, chunk pump.Chunk, prefix int64) error {
	if limit := f.t.Params.Config.MaxBytes; limit > 0 && prefix > limit {
		return job.OverLimit(f.t.Params.Config.File.Path, prefix, limit)
	}
	f.t.Stats.BytesMoved(chunk.Length)
	if chunk.Kind == native.DataRecord && chunk.Offset < e.resume {
		e.refused += chunk.Length
	}
	if err := e.target.Advance(prefix); err != nil {
		return f.results.fail(e, err)
	}
	if e.stores(prefix) {
		f.t.Link.Post(func(ctx context.Context) error { return f.complete(ctx, e) })
	}
	return nil
}

// ended notes what the sender has read of a file.
func (f *files) ended(e *entry, size int64, sum digest.Sum) {
	if e.ends(size, sum) {
		f.t.Link.Post(func(ctx context.Context) error { return f.complete(ctx, e) })
	}
}

// complete follows the last byte of a file and its end.
func (f *files) complete(ctx context.Context, e *entry) error {
	f.results.log(e).Msg("entry stored")
	if !f.t.Params.Plan.Tree {
		f.wholeStored(e)
		return nil
	}
	f.t.Link.Run(ctx, func(ctx context.Context) role.Call { return f.verify(ctx, e) })
	return nil
}

// verify compares, in a job, what has been written with what has been read, and makes it durable. Unless the transfer
// has ended by then, another job gives it its final name.
func (f *files) verify(ctx context.Context, e *entry) role.Call {
	sum := e.in.Sum()
	err := f.checkSum(e, sum)
	if err == nil {
		err = e.target.Finish(ctx, sum, e.meta)
	}
	return func(ctx context.Context) error {
		if err != nil {
			return f.fail(ctx, e, err)
		}
		return f.rename(ctx, e)
	}
}

// checkSum compares the digests of what was written and of what the sender read.
func (f *files) checkSum(e *entry, sum digest.Sum) error {
	p := f.t.Params
	if sum != e.end.sum {
		return job.NewError(job.ErrDigest, nil, "copy again; if it recurs, check the memory"+p.BothSides("of"),
			"digest mismatch of %s: source has %d bytes, %s, target %d bytes, %s",
			e.path, e.end.size, e.end.sum, e.in.Prefix(), sum)
	}
	if p.Plan.Tree {
		return nil
	}
	if err := p.CheckContent(e.end.size, sum); err != nil {
		return err
	}
	f.t.Stats.Content(e.end.size, sum)
	p.Config.Progress.Enter(job.Finishing)
	return nil
}

// rename gives a file its final name, in a job, and reports it. This is not interrupted.
func (f *files) rename(ctx context.Context, e *entry) error {
	if !f.gate.begin() {
		return errHalted
	}
	e.become(committing)
	f.renames++
	f.t.Link.Run(ctx, func(context.Context) role.Call {
		err := e.target.Commit()
		if err == nil {
			f.results.commit(e)
		}
		f.gate.end()
		return func(ctx context.Context) error {
			f.renames--
			if err != nil {
				return f.fail(ctx, e, err)
			}
			return f.flush(context.WithoutCancel(ctx))
		}
	})
	return nil
}

// fail ends a file that has failed, and tells the sender at once.
func (f *files) fail(ctx context.Context, e *entry, err error) error {
	if err := f.results.fail(e, err); err != nil {
		return err
	}
	return f.flush(ctx)
}
