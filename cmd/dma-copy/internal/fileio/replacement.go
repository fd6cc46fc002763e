package fileio

import (
	"context"
	"fmt"
	"io"

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
	w, err := r.Create()
	if err != nil {
		return err
	}
	defer w.Discard()
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Commit(ctx)
}

// maxBuffered is how much of a file is kept in memory until its temporary file is created, in bytes. The content of
// most files is known at once.
const maxBuffered = 1 << 20

// ReplacementWriter writes a Replacement with several calls. It is for one goroutine.
type ReplacementWriter struct {
	of       Replacement
	partial  *disk.Partial // nil until the buffer is full
	buffered []byte
	written  int64
}

var _ io.Writer = (*ReplacementWriter)(nil)

// Create returns a writer of the file. The caller calls Discard at the end.
func (r Replacement) Create() (*ReplacementWriter, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	return &ReplacementWriter{of: r}, nil
}

// Write implements io.Writer.
func (w *ReplacementWriter) Write(p []byte) (int, error) {
	w.buffered = append(w.buffered, p...)
	if len(w.buffered) < maxBuffered {
		return len(p), nil
	}
	return len(p), w.flush()
}

// flush writes what is buffered to the temporary file.
func (w *ReplacementWriter) flush() (err error) {
	if w.partial == nil {
		w.partial, err = disk.OpenPartial(disk.OS, w.of.Path, disk.Wanted{Overwrite: w.of.Overwrite})
	}
	if err == nil && len(w.buffered) > 0 {
		err = w.partial.WriteAt(w.buffered, w.written)
	}
	w.written += int64(len(w.buffered))
	w.buffered = w.buffered[:0]
	return err
}

// Commit writes the file durably. Its name has either the old or the new content, never part of one.
func (w *ReplacementWriter) Commit(ctx context.Context) error {
	if err := w.of.Check(); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.partial.Prepare(ctx, disk.Metadata{Size: w.written}, negotiate.DurabilityFull, nil); err != nil {
		return err
	}
	return w.partial.Commit(negotiate.DurabilityFull)
}

// Discard removes what was written, unless it was committed.
func (w *ReplacementWriter) Discard() {
	if w.partial != nil {
		w.partial.Discard()
	}
}

// Failed returns the error of a file that cannot be written, and why.
func (r Replacement) Failed(why string, err error) error {
	cause := fmt.Sprintf("cannot write %s: %s", quote.Bare(r.Path), why)
	return &job.Error{Kind: job.ErrTarget, Cause: cause, Next: r.Hint, Err: err}
}
