package receive

import (
	"bytes"
	"cmp"
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// packs stores the files that come in packs. This file is the life of one of them. With a durability it is staged, and
// a job flushes many of them at once before they get their final names:
//
//	store ─► storeFiles ─► storeWhole ─┬─► put ──────────────────────────────────► commit
//	                                   └─► staged ─► flushed ─► renamed ─► flushed ─► commit
//
// Lanes call store, and one job at a time commitStaged. While no more files may be staged, others are flushed and
// renamed one by one.
type packs struct {
	t         *role.Transfer
	results   *results
	replies   *replies
	gate      *commitGate
	flushTree func() error // makes durable what is staged and named
	flushed   role.Call    // follows the job that commits staged files
	staging   staging
}

// store implements pump.ReceiverConfig.StorePack: it writes whole files. An error that ends the transfer does so after
// the files committed before it are reported.
func (p *packs) store(ctx context.Context, unit *pump.Unit, content []byte) (after func(), err error) {
	if !p.gate.begin() {
		return nil, errHalted
	}
	put, staged, failed := p.storeFiles(ctx, unit, content)
	if len(put) > 0 && p.t.Params.Plan.Durability == wire.DurabilityFull {
		if err := p.flushTree(); err != nil { // of their names
			put, failed = nil, cmp.Or(failed, err)
		}
	}
	return func() {
		p.results.commit(put...)
		if failed == nil {
			p.stage(staged)
		} else {
			p.staging.discard(staged)
			p.t.Link.Post(role.FailWith(failed))
		}
		p.gate.end()
	}, nil
}

// storeFiles writes the files of a pack, until one of them ends the transfer. It returns those that have their final
// names, and those that are only staged.
func (p *packs) storeFiles(ctx context.Context,
	unit *pump.Unit, content []byte,
) (put []*entry, staged []stagedFile, failed error) {
	for i, e := range unit.Ref.([]*entry) {
		if ctx.Err() != nil {
			break // the results of the files before are still sent
		}
		if e == nil || e.isDecided() {
			continue
		}
		p.t.Params.Config.Progress.Touch()
		packed := &unit.Pack.Files[i]
		file, err := p.storeWhole(e, packed, pump.ContentOf(packed, content))
		if err == nil {
			e.become(stored)
			p.results.log(e).Msg("entry stored")
		}
		switch {
		case err != nil:
			if err := p.results.fail(e, err); err != nil {
				return put, staged, err
			}
		case file != nil:
			staged = append(staged, stagedFile{entry: e, file: file})
		default:
			put = append(put, e)
		}
	}
	return put, staged, nil
}

// storeWhole writes a file of a pack. With a durability it is only staged if it may be: so many are flushed at once.
func (p *packs) storeWhole(e *entry, f *native.PackedFile, content []byte) (*disk.Staged, error) {
	plan := &p.t.Params.Plan
	sum := digest.SumOf(plan.Digest, content, f.Check)
	if !bytes.Equal(sum.Bytes(), f.Digest[:plan.Digest.Size()]) {
		next := "copy again; if it recurs, check the memory" + p.t.Params.BothSides("of")
		return nil, job.NewError(job.ErrDigest, nil, next, "digest mismatch of %s: the target has %s", e.path, sum)
	}
	p.t.Stats.BytesMoved(int64(len(content)))
	e.directory.of.RemoveLeftovers(e.name) // of an interrupted transfer for which the file was large
	if plan.Durability == wire.DurabilityNone || !p.staging.permits.TryAcquire(1) {
		return nil, e.directory.of.Put(e.name, content, e.meta)
	}
	file, err := e.directory.of.Stage(e.name, content, e.meta)
	if err != nil {
		p.staging.permits.Release(1)
	}
	return file, err
}

// stage has files flushed and renamed in a job, together with those that are staged while it flushes others.
func (p *packs) stage(files []stagedFile) {
	if !p.staging.add(files) {
		return
	}
	p.t.Link.Post(func(ctx context.Context) error {
		p.t.Link.Run(ctx, func(ctx context.Context) role.Call {
			if err := p.commitStaged(ctx); err != nil {
				return role.FailWith(err)
			}
			return p.flushed // the tree may be closed from now on
		})
		return nil
	})
}

// commitStaged renames staged files whose content has been flushed, until there are none. With full durability they
// are reported when the names have been flushed as well, together with the content of the next ones.
func (p *packs) commitStaged(ctx context.Context) error {
	var renamed []*entry // whose names may not be durable yet
	unreported := false
	for {
		batch := p.staging.take(unreported)
		if len(batch) == 0 && !unreported {
			return nil
		}
		err := p.flushTree()
		if unreported {
			p.reportRenamed(renamed, err)
			unreported = false
		}
		if err == nil && len(batch) > 0 && !p.gate.begin() {
			err = errHalted
		}
		if err != nil {
			p.staging.discard(batch)
			return err
		}
		if len(batch) == 0 {
			continue
		}
		full := p.t.Params.Plan.Durability == wire.DurabilityFull
		renamed, err = p.renameStaged(ctx, batch)
		if unreported = err == nil && full; unreported {
			continue
		}
		flushed := error(nil)
		if full {
			flushed = p.flushTree()
		}
		p.reportRenamed(renamed, flushed)
		if err != nil {
			return err
		}
	}
}

// reportRenamed reports files that have their final names, unless flushing them has failed, and ends their commit.
func (p *packs) reportRenamed(renamed []*entry, failed error) {
	if failed == nil {
		p.results.commit(renamed...)
		p.replies.requestFlush()
	}
	p.gate.end()
}

// renameStaged gives files their final names, until one of them ends the transfer. It returns the entries of those that
// have them.
func (p *packs) renameStaged(ctx context.Context, batch []stagedFile) (renamed []*entry, err error) {
	for i, f := range batch {
		if ctx.Err() != nil {
			p.staging.discard(batch[i:])
			return renamed, context.Cause(ctx)
		}
		f.entry.become(committing)
		err := f.file.Commit()
		p.staging.permits.Release(1)
		if err == nil {
			renamed = append(renamed, f.entry)
		} else if err := p.results.fail(f.entry, err); err != nil {
			p.staging.discard(batch[i+1:])
			return renamed, err
		}
		p.t.Params.Config.Progress.Touch()
	}
	return renamed, nil
}
