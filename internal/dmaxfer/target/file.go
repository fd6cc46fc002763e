package target

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// file is a file that gets its final name when it is complete.
type file struct {
	partial  *disk.Partial
	plan     *native.Plan
	known    bool // the size was announced
	progress *job.Progress
	length   int64 // bytes that are verified
}

var _ Target = (*file)(nil)

// OfFile returns the target that a partial file is. known says that its size was announced.
func OfFile(partial *disk.Partial, plan *native.Plan, known bool, progress *job.Progress) Target {
	return &file{partial: partial, plan: plan, known: known, progress: progress}
}

// ReadAt implements pump.Target.
func (f *file) ReadAt(chunk []byte, offset int64) error { return f.partial.ReadAt(chunk, offset) }

// WriteAt implements pump.Target.
func (f *file) WriteAt(chunk []byte, offset int64) error {
	return f.partial.WriteAt(chunk, offset)
}

// Punch implements pump.Target.
func (f *file) Punch(offset, length int64) error { return f.partial.Punch(offset, length) }

func (f *file) Resumable() (int64, wire.Discarded) {
	return f.partial.Resumable(), f.partial.DiscardedBecause()
}

func (f *file) Warnings() []string { return job.TargetWarnings(f.partial) }

func (f *file) Allocate(ctx context.Context) error {
	if !f.known {
		return nil
	}
	return f.partial.Allocate(ctx, f.worked)
}

// worked reports progress. In a tree, what other files have moved counts as well, and may be more than what is done.
func (f *file) worked(done int64) {
	f.progress.Worked(done)
	if f.plan.Tree {
		f.progress.Touch()
	}
}

func (f *file) Concurrent() bool { return f.partial.Concurrent() }

func (f *file) Advance(prefix int64) error {
	f.length = prefix
	return f.partial.Advance(prefix)
}

func (f *file) Finish(ctx context.Context, sum digest.Sum, meta disk.Metadata) error {
	if f.plan.Readback {
		if err := f.readBack(ctx, sum); err != nil {
			return err
		}
	}
	return f.partial.Prepare(ctx, meta, f.plan.Durability, f.worked)
}

// readBack compares what the disk has, as far as the system can be made to read it, with what was to be written.
func (f *file) readBack(ctx context.Context, sum digest.Sum) error {
	if err := f.partial.Flush(ctx, f.worked); err != nil {
		return err
	}
	f.partial.DropCache(0, f.length)
	read, _, err := digest.Of(ctx, sum.Algorithm(), job.NewReader(f.partial, f.length, func(read int64) {
		f.worked(f.length + read) // after what was flushed
	}))
	if err != nil {
		return err
	}
	if read != sum {
		return job.NewError(job.ErrDigest, nil, "check the disk and the memory of this side",
			"digest mismatch of %s: written %s, read back %s", f.partial.File().Name(), sum, read)
	}
	return nil
}

func (f *file) Commit() error { return f.partial.Commit(f.plan.Durability) }

func (f *file) Keep() (kept int64, lost string) {
	kept = f.partial.Keep()
	return kept, f.partial.Lost()
}

func (f *file) Discard() error {
	f.partial.Discard()
	return nil
}

func (f *file) Abandon(keep bool) int64 { return f.partial.Abandon(keep) }
