package receive

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/target"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// open opens what the plan wants written.
func (f *files) open(ctx context.Context, e *entry) (target.Target, error) {
	c, plan, known := f.t.Params.Config, &f.t.Params.Plan, e.size != job.Unknown
	switch {
	case c.File.Discards:
		return target.Discarding{}, nil
	case c.File.Stream:
		return target.OpenStream(ctx, c.File.OpenOutput, c.Progress)
	}
	wanted := disk.Wanted{
		Size: max(e.size, 0), Known: known,
		Modified: e.meta.Modified, Identity: e.identity,
		Digest:    byte(plan.Digest),
		Overwrite: plan.Overwrite, Backup: c.Backup, Resume: !c.NoResume, Sparse: plan.Sparse,
		Basis:       !c.HideContent, // a peer would learn which of its chunks are there
		Fill:        f.t.Params.Layout().Lanes > 1,
		WriteBehind: plan.Durability != wire.DurabilityNone,
		Preserve: disk.Preserve{
			Mode: known, Times: known, Owner: known && plan.Owner, Xattrs: plan.XAttr, Privileged: plan.Privileged,
		},
	}
	var partial *disk.Partial
	var err error
	if e.directory != nil {
		partial, err = e.directory.of.Partial(e.name, wanted)
	} else {
		partial, err = disk.OpenPartial(c.File.FS, c.File.Name, wanted)
	}
	if err != nil {
		return nil, err
	}
	return target.OfFile(partial, plan, known, c.Progress), nil
}

// endTarget ends a target that is not committed.
func endTarget(p *role.Params, of target.Target, failed error) error {
	if worthless(failed) || p.Config.NoResume {
		return of.Discard()
	}
	_, _ = of.Keep()
	return nil
}

// worthless reports whether a failure means that what was received is of no use. If a chunk could not be transferred
// without corruption, the others still are.
func worthless(failed error) bool {
	if errors.Is(failed, pump.ErrCorrupted) {
		return false
	}
	if errors.Is(failed, job.ErrSourceChanged) || errors.Is(failed, job.ErrDigest) {
		return true
	}
	aborted, is := errors.AsType[*native.PeerAborted](failed)
	if !is {
		return false
	}
	switch aborted.Code {
	case wire.AbortSourceChanged, wire.AbortDigest, wire.AbortRefused:
		return true
	}
	return false
}
