package fileio

import (
	"context"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Replacement is a file that is written like the target of a copy: under a temporary name first, and in place of a
// regular file only. A symlink stays, and its target is replaced.
type Replacement struct {
	Path      string // as the user gave it
	Overwrite bool
	Hint      string // the next step if it cannot be written
}

// Check returns an error now if Write would fail later.
func (r Replacement) Check() error {
	at, err := disk.Locate(disk.OS, r.Path)
	if err != nil {
		return r.Failed(disk.Reason(err), err)
	}
	defer at.Dir.Close()
	switch {
	case at.Found == nil:
	case !at.Found.Mode.IsRegular():
		return r.Failed("not a regular file", nil)
	case !r.Overwrite:
		return &job.Error{
			Kind: job.ErrTarget, Cause: quote.Bare(r.Path) + " already exists",
			Next: "remove it, or replace it with --overwrite",
		}
	}
	if err := at.Dir.MayCreate(); err != nil {
		return r.Failed(disk.Reason(err), err)
	}
	return nil
}

// Write writes the file durably. Its name has either the old or the new content, never part of one.
func (r Replacement) Write(ctx context.Context, content []byte) error {
	if err := r.Check(); err != nil {
		return err
	}
	want := disk.Wanted{Size: int64(len(content)), Known: true, Overwrite: r.Overwrite}
	partial, err := disk.OpenPartial(disk.OS, r.Path, want)
	if err != nil {
		return err
	}
	defer partial.Discard() // does nothing after Commit
	if err := partial.WriteAt(content, 0); err != nil {
		return err
	}
	metadata := disk.Metadata{Size: int64(len(content))}
	if err := partial.Prepare(ctx, metadata, negotiate.DurabilityFull, nil); err != nil {
		return err
	}
	return partial.Commit(negotiate.DurabilityFull)
}

// Failed returns the error of a file that cannot be written, and why.
func (r Replacement) Failed(why string, err error) error {
	cause := fmt.Sprintf("cannot write %s: %s", quote.Bare(r.Path), why)
	return &job.Error{Kind: job.ErrTarget, Cause: cause, Next: r.Hint, Err: err}
}
