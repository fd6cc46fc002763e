package native

import (
	"bytes"
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how a receiver stores what the lanes have, and gives it its final name.

// expectChunks prepares an entry for content in chunks.
func (r *receiver) expectChunks(e *arriving, t target) {
	in := pump.NewIncoming(t, r.terms.plan.Digest, int(r.terms.plan.Depth))
	in.SerialWrites = !t.concurrent()
	in.Moved = func(chunk pump.Chunk, prefix int64) error { return r.stored(e, chunk, prefix) }
	in.Failed = func(err error) error { return r.fail(e, err) }
	e.target, e.in = t, in
}

// stored is called by the lanes, one at a time for each file. The length of a stream shows only here.
func (r *receiver) stored(e *arriving, chunk pump.Chunk, prefix int64) error {
	if limit := r.terms.config.MaxBytes; limit > 0 && prefix > limit {
		return job.OverLimit(r.terms.config.File.Path, prefix, limit)
	}
	r.account.chunkMoved(e.resume, chunk)
	if err := e.target.advance(prefix); err != nil {
		return r.fail(e, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prefix, e.meta.Size = prefix, prefix
	r.checkStored(e)
	return nil
}

// checkStored finishes a file once both sides are through with it. The caller has locked e.mu.
func (r *receiver) checkStored(e *arriving) {
	if e.ended && !e.complete && e.prefix == e.endSize {
		e.complete = true
		r.link.post(func() error { return r.complete(e) })
	}
}

// complete follows the last byte of a file. The only one of a transfer is finished when the window has been released,
// so that a failure of that is one of the transfer.
func (r *receiver) complete(e *arriving) error {
	if r.terms.plan.Tree {
		return r.finishFile(e)
	}
	r.whole = e
	r.endLanes()
	return nil
}

// finishFile compares what has been written with what has been read, and makes it durable in a job. Unless the
// transfer has ended by then, another job gives it its final name.
func (r *receiver) finishFile(e *arriving) error {
	ctx := r.working
	sum := e.in.Sum()
	if sum != e.endSum {
		const next = "copy again; if it recurs, check the memory of both sides"
		return r.failOwner(e, job.NewError(job.ErrDigest, nil, next,
			"digest mismatch of %s: source has %d bytes, %s, target %d bytes, %s",
			e.path, e.endSize, e.endSum, e.in.Prefix(), sum))
	}
	if !r.terms.plan.Tree {
		if err := r.terms.checkContent(e.endSize, sum); err != nil {
			return err
		}
		r.account.content(e.endSize, sum)
		r.terms.config.Progress.Enter(job.Finishing)
	}
	r.link.run(func() func() error {
		err := e.target.finish(ctx, sum, e.meta)
		return func() error {
			if err != nil {
				return r.failOwner(e, err)
			}
			return r.commitFile(ctx, e)
		}
	})
	return nil
}

// commitFile gives a file its final name. This is not interrupted.
func (r *receiver) commitFile(ctx context.Context, e *arriving) error {
	if !r.beginCommit() {
		return errHalted
	}
	r.renames++
	r.link.run(func() func() error {
		err := e.target.commit()
		if err == nil {
			r.commit(e)
		}
		r.endCommit()
		return func() error {
			r.renames--
			if err != nil {
				return r.failOwner(e, err)
			}
			return r.flush(context.WithoutCancel(ctx))
		}
	})
	return nil
}

// stagedFile is a file of a pack that gets its final name once its content has been flushed.
type stagedFile struct {
	entry   *arriving
	file    *disk.Staged
	permits int64 // of receiver.stageable, for the whole pack: with the last file of it
}

// otherFiles is how many files a receiver has open at most, besides those that are staged.
const otherFiles = 128

// stageLimit returns how many files may be staged at once. Each has a descriptor.
func stageLimit() int64 {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Cur >= otherFiles+negotiate.MaxOpen {
		return negotiate.MaxOpen
	}
	return max(1, int64(files.Cur)-otherFiles)
}

// storePack implements pump.ReceiverConfig.StorePack: it writes whole files. What ends the transfer does so after what
// was committed before it is reported.
func (r *receiver) storePack(ctx context.Context, pack *negotiate.Pack, content []byte) (after func(), err error) {
	permits, err := r.permitStaging(ctx, len(pack.Files))
	if err != nil {
		return nil, err
	}
	if !r.beginCommit() {
		r.stageable.Release(permits)
		return nil, errHalted
	}
	stored, staged, failed := r.storeFiles(ctx, pack, content)
	if len(staged) == 0 {
		r.stageable.Release(permits)
	} else {
		staged[len(staged)-1].permits = permits
	}
	return func() {
		r.commit(stored...)
		if failed == nil {
			r.stage(staged)
		} else {
			r.discard(staged)
			r.link.post(failWith(failed))
		}
		r.endCommit()
	}, nil
}

// storeFiles writes the files of a pack, until one of them ends the transfer. It returns those that have their final
// names, and those that are only staged.
func (r *receiver) storeFiles(
	ctx context.Context, pack *negotiate.Pack, content []byte,
) (stored []*arriving, staged []stagedFile, failed error) {
	for i := range pack.Files {
		if ctx.Err() != nil {
			break // the results of those before are still sent
		}
		e := r.entry(pack.Files[i].Entry)
		switch {
		case e == nil:
			continue // it has been decided
		case e.in != nil:
			return stored, staged, misuse(negotiate.TypePack, e.number)
		}
		r.terms.config.Progress.Touch()
		file, err := r.storeWhole(e, &pack.Files[i], pump.ContentOf(&pack.Files[i], content))
		switch {
		case err != nil:
			if err := r.fail(e, err); err != nil {
				return stored, staged, err
			}
		case file != nil:
			staged = append(staged, stagedFile{entry: e, file: file})
		default:
			stored = append(stored, e)
		}
	}
	return stored, staged, nil
}

// permitStaging waits until the files of a pack may be staged, as far as they will be.
func (r *receiver) permitStaging(ctx context.Context, files int) (permits int64, err error) {
	if r.terms.plan.Durability == negotiate.DurabilityNone {
		return 0, nil
	}
	permits = min(int64(files), r.stageLimit)
	if r.stageable.Acquire(ctx, permits) != nil {
		return 0, context.Cause(ctx)
	}
	return permits, nil
}

// storeWhole writes a file of a pack. With a durability it is only staged, so that many are flushed at once.
func (r *receiver) storeWhole(e *arriving, f *negotiate.PackedFile, content []byte) (*disk.Staged, error) {
	size := r.terms.plan.Digest.Size()
	sum := digest.SumOf(r.terms.plan.Digest, content, f.Check)
	if !bytes.Equal(sum.Bytes(), f.Digest[:size]) {
		return nil, job.NewError(job.ErrDigest, nil, "copy again; if it recurs, check the memory of both sides",
			"digest mismatch of %s: %s on this side", e.path, sum)
	}
	r.account.bytesMoved(int64(len(content)))
	if r.terms.config.Backup && !e.directory.of.Fresh() {
		return nil, r.putWithBackup(e, sum, content)
	}
	if r.terms.plan.Durability != negotiate.DurabilityNone {
		return e.directory.of.Stage(e.name, content, e.meta)
	}
	return nil, e.directory.of.Put(e.name, content, e.meta)
}

// putWithBackup writes a small file like a large one, because only those keep what they replace.
func (r *receiver) putWithBackup(e *arriving, sum digest.Sum, content []byte) error {
	t, err := openFileTarget(r.terms, e, false)
	if err != nil {
		return err
	}
	if len(content) > 0 {
		err = t.WriteAt(content, 0)
	}
	if err == nil {
		err = t.finish(r.working, sum, e.meta)
	}
	if err == nil {
		err = t.commit()
	}
	if err != nil {
		_ = t.discard() // the first error is the one that counts
	}
	return err
}

// stage has files flushed and renamed in a job, together with those that are staged while it flushes others.
func (r *receiver) stage(files []stagedFile) {
	if len(files) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.staged = append(r.staged, files...)
	if r.flushing {
		return
	}
	r.flushing = true
	r.link.run(func() func() error {
		if err := r.commitStaged(); err != nil {
			return failWith(err)
		}
		return nothing
	})
}

// commitStaged renames staged files whose content has been flushed, until there are none. With full durability they
// are reported when the names have been flushed as well, together with the content of the next ones.
func (r *receiver) commitStaged() error {
	var renamed []*arriving // whose names may not be durable yet
	committing := false
	for {
		batch := r.takeStaged(committing)
		if len(batch) == 0 && !committing {
			return nil
		}
		err := r.flushTree()
		if committing {
			r.reportRenamed(renamed, err)
			committing = false
		}
		if err == nil && len(batch) > 0 && !r.beginCommit() {
			err = errHalted
		}
		if err != nil {
			r.discard(batch)
			return err
		}
		if len(batch) == 0 {
			continue
		}
		full := r.terms.plan.Durability == negotiate.DurabilityFull
		renamed, err = r.renameStaged(batch)
		if committing = err == nil && full; committing {
			continue
		}
		flushed := error(nil)
		if full {
			flushed = r.flushTree()
		}
		r.reportRenamed(renamed, flushed)
		if err != nil {
			return err
		}
	}
}

// reportRenamed reports files that have their final names, unless flushing them has failed, and ends their commit.
func (r *receiver) reportRenamed(renamed []*arriving, failed error) {
	if failed == nil {
		r.commit(renamed...)
		r.hurry()
	}
	r.endCommit()
}

// takeStaged returns what is staged. If that is nothing, and no more remains to be done, the next file that is staged
// starts another job.
func (r *receiver) takeStaged(more bool) []stagedFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := r.staged
	r.staged = nil
	r.flushing = more || len(batch) > 0
	return batch
}

// renameStaged gives files their final names, until one of them ends the transfer. It returns the entries of those that
// have them.
func (r *receiver) renameStaged(batch []stagedFile) (renamed []*arriving, err error) {
	for i, s := range batch {
		if r.working.Err() != nil {
			r.discard(batch[i:])
			return renamed, context.Cause(r.working)
		}
		err := s.file.Commit()
		r.stageable.Release(s.permits)
		if err == nil {
			renamed = append(renamed, s.entry)
		} else if err := r.fail(s.entry, err); err != nil {
			r.discard(batch[i+1:])
			return renamed, err
		}
		r.terms.config.Progress.Touch()
	}
	return renamed, nil
}

// flushTree makes what is staged and named durable.
func (r *receiver) flushTree() error { return r.whileFlushing(r.planner.tree.Sync) }

// whileFlushing makes a call that flushes. It does not report how far it is, and may have to write what other processes
// have written, too. For some time it counts as progress.
func (r *receiver) whileFlushing(flush func() error) error {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(flushTick)
		defer tick.Stop()
		for range slowFlush / flushTick {
			select {
			case <-tick.C:
				r.terms.config.Progress.Touch()
			case <-stop:
				return
			}
		}
	}()
	return flush()
}

func (r *receiver) discard(batch []stagedFile) {
	for _, s := range batch {
		s.file.Discard()
		r.stageable.Release(s.permits)
	}
}
