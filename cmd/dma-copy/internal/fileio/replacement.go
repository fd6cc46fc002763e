package fileio

import (
	"context"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Replacement is a file that a command writes as a copy writes its target: under a temporary name first, and in place
// of a regular file only. A symlink stays, and what it points to is replaced.
type Replacement struct {
	Path      string // as the user gave it
	Overwrite bool
	Hint      string // what to do where it cannot be written
}

// Check finds early what would keep the file from being written.
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
		return &dmaxfer.Error{
			Kind: dmaxfer.ErrTarget, Cause: quote.Bare(r.Path) + " already exists",
			Next: "remove it, or replace it with --overwrite",
		}
	}
	if err := at.Dir.MayCreate(); err != nil {
		return r.Failed(disk.Reason(err), err)
	}
	return nil
}

// Write makes the file durable; its name holds the old content or the new, never a part.
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
	if err := partial.Prepare(ctx, disk.Metadata{Size: int64(len(content))}, negotiate.DurabilityFull, nil); err != nil {
		return err
	}
	return partial.Commit(negotiate.DurabilityFull)
}

func (r Replacement) Failed(why string, err error) error {
	cause := fmt.Sprintf("cannot write %s: %s", quote.Bare(r.Path), why)
	return &dmaxfer.Error{Kind: dmaxfer.ErrTarget, Cause: cause, Next: r.Hint, Err: err}
}

// DirectoryOf returns the directory that the kernel looks the last name of a path up in.
func DirectoryOf(path string) string {
	directory, _ := disk.Split(path)
	return directory
}
