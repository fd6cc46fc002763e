package receive

import (
	"context"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// fileTarget is a file that gets its final name when it is complete.
type fileTarget struct {
	partial  *disk.Partial
	plan     *native.Plan
	known    bool // the size was announced
	progress *job.Progress
	length   int64 // bytes that are verified
}

var _ target = (*fileTarget)(nil)

func openFileTarget(t *role.Params, e *entry) (*fileTarget, error) {
	plan, c, known := &t.Plan, t.Config, e.size != job.Unknown
	wanted := disk.Wanted{
		Size: max(e.size, 0), Known: known,
		Modified: e.meta.Modified, Identity: e.identity,
		Digest:    byte(plan.Digest),
		Overwrite: plan.Overwrite, Backup: c.Backup, Resume: !c.NoResume, Sparse: plan.Sparse,
		Fill:        t.Layout().Lanes > 1,
		WriteBehind: plan.Durability != wire.DurabilityNone,
		Preserve:    disk.Preserve{Mode: known, Times: known, Owner: known && plan.Owner, Xattrs: plan.XAttr},
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
	return &fileTarget{partial: partial, plan: plan, known: known, progress: c.Progress}, nil
}

// ReadAt implements pump.Target.
func (f *fileTarget) ReadAt(chunk []byte, offset int64) error { return f.partial.ReadAt(chunk, offset) }

// WriteAt implements pump.Target.
func (f *fileTarget) WriteAt(chunk []byte, offset int64) error {
	return f.partial.WriteAt(chunk, offset)
}

// Punch implements pump.Target.
func (f *fileTarget) Punch(offset, length int64) error { return f.partial.Punch(offset, length) }

func (f *fileTarget) resumable() (int64, wire.Discarded) {
	return f.partial.Resumable(), f.partial.DiscardedBecause()
}

func (f *fileTarget) warnings() []string { return job.TargetWarnings(f.partial) }

func (f *fileTarget) allocate(ctx context.Context) error {
	if !f.known {
		return nil
	}
	return f.partial.Allocate(ctx, f.progress.Worked)
}

func (f *fileTarget) concurrent() bool { return f.partial.Concurrent() }

func (f *fileTarget) advance(prefix int64) error {
	f.length = prefix
	return f.partial.Advance(prefix)
}

func (f *fileTarget) finish(ctx context.Context, sum digest.Sum, meta disk.Metadata) error {
	if f.plan.Readback {
		if err := f.readBack(ctx, sum); err != nil {
			return err
		}
	}
	return f.partial.Prepare(ctx, meta, f.plan.Durability, f.progress.Worked)
}

// readBack compares what the disk has, as far as the system can be made to read it, with what was to be written.
func (f *fileTarget) readBack(ctx context.Context, sum digest.Sum) error {
	if err := f.partial.Flush(ctx, f.progress.Worked); err != nil {
		return err
	}
	f.partial.DropCache(0, f.length)
	read, _, err := digest.Of(ctx, sum.Algorithm(), &readingBack{target: f})
	if err != nil {
		return err
	}
	if read != sum {
		return job.NewError(job.ErrDigest, nil, "check the disk and the memory of this side",
			"digest mismatch of %s: written %s, read back %s", f.partial.File().Name(), sum, read)
	}
	return nil
}

func (f *fileTarget) commit() error { return f.partial.Commit(f.plan.Durability) }

func (f *fileTarget) keep() (kept int64, lost string) {
	kept = f.partial.Keep()
	return kept, f.partial.Lost()
}

func (f *fileTarget) discard() error {
	f.partial.Discard()
	return nil
}

func (f *fileTarget) abandon(keep bool) int64 { return f.partial.Abandon(keep) }

// readingBack is the io.Reader of what a target has got, and reports its progress.
type readingBack struct {
	target *fileTarget
	offset int64
}

// Read implements io.Reader.
func (r *readingBack) Read(p []byte) (int, error) {
	n := min(int64(len(p)), r.target.length-r.offset)
	if n == 0 {
		return 0, io.EOF
	}
	if err := r.target.partial.ReadAt(p[:n], r.offset); err != nil {
		return 0, err
	}
	r.offset += n
	r.target.progress.Worked(r.target.length + r.offset) // after what was flushed
	return int(n), nil
}
