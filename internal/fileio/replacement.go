package fileio

import (
	"context"
	"fmt"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// maxBuffered is how much of a file is kept in memory until its temporary file is created, in bytes. The content of
// most files is known at once.
const maxBuffered = 1 << 20

// Replacement is a file that is written like the target of a copy: under a temporary name first, and replaces a
// regular file only. A symlink stays, and its target is replaced. It is for one goroutine.
type Replacement struct {
	path      string // as the user gave it
	overwrite bool
	partial   *disk.Partial // nil until the buffer is full
	buffered  []byte
	written   int64
}

var _ io.Writer = (*Replacement)(nil)

// Create returns a Replacement that is to be written. It fails now if Commit would fail later. The caller calls Discard
// at the end.
func Create(path string, overwrite bool) (*Replacement, error) {
	r := &Replacement{path: path, overwrite: overwrite}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Replacement) check() error {
	at, err := disk.Locate(disk.OS, r.path)
	if err != nil {
		return r.failed(disk.Reason(err), err)
	}
	defer at.Dir.Close()
	switch {
	case at.Found == nil:
	case !at.Found.Mode.IsRegular():
		return r.failed("not a regular file", nil)
	case !r.overwrite:
		return &job.Error{
			Kind: job.ErrTarget, Cause: quote.Bare(r.path) + " already exists",
			Next: "remove it, or replace it with --overwrite",
		}
	}
	if err := at.Dir.MayCreate(); err != nil {
		return r.failed(disk.Reason(err), err)
	}
	return nil
}

// Write implements io.Writer.
func (r *Replacement) Write(p []byte) (int, error) {
	r.buffered = append(r.buffered, p...)
	if len(r.buffered) < maxBuffered {
		return len(p), nil
	}
	return len(p), r.flush()
}

// flush writes what is buffered to the temporary file.
func (r *Replacement) flush() (err error) {
	if r.partial == nil {
		r.partial, err = disk.OpenPartial(disk.OS, r.path, disk.Wanted{Overwrite: r.overwrite})
	}
	if err == nil && len(r.buffered) > 0 {
		err = r.partial.WriteAt(r.buffered, r.written)
	}
	r.written += int64(len(r.buffered))
	r.buffered = r.buffered[:0]
	return err
}

// Commit writes the file durably. Its name has either the old or the new content, never part of one.
func (r *Replacement) Commit(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	if err := r.partial.Prepare(ctx, disk.Metadata{Size: r.written}, wire.DurabilityFull, nil); err != nil {
		return err
	}
	return r.partial.Commit(wire.DurabilityFull)
}

// Discard removes what was written, unless it was committed.
func (r *Replacement) Discard() {
	if r.partial != nil {
		r.partial.Discard()
	}
}

// failed returns the error of a file that cannot be written, and why.
func (r *Replacement) failed(why string, err error) error {
	cause := fmt.Sprintf("cannot write %s: %s", quote.Bare(r.path), why)
	return &job.Error{Kind: job.ErrTarget, Cause: cause, Next: "name another file", Err: err}
}
