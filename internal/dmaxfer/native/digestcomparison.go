package native

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// digestComparison compares files that the target has with digests of the sender's. The owner of the transfer calls
// compare.
type digestComparison struct {
	planner *planner
	queue   digestQueue
	bytes   int64 // of the files in the queue, which this side and the sender may have to read; for the owner
}

// compare compares the content of a file with a digest of the sender's, after those before it.
func (d *digestComparison) compare(ctx context.Context, e *arriving, sum digest.Sum) {
	if e.directory != nil {
		d.planner.directories.await(e.directory)
	}
	d.bytes += e.size
	d.queue.add(func() func() error {
		err := d.decide(ctx, e, sum)
		return func() error {
			d.bytes -= e.size
			return err
		}
	})
}

// decide decides by the digest whether a file is needed.
func (d *digestComparison) decide(ctx context.Context, e *arriving, sum digest.Sum) error {
	defer d.planner.replies.hurry()
	if e.directory != nil {
		defer d.planner.leave(e.directory)
	}
	own, err := d.sum(ctx, e, sum.Algorithm())
	if err == nil && e.depth == 0 && own == sum {
		err = d.planner.terms.checkContent(e.size, own)
		d.planner.account.content(e.size, own)
	}
	switch {
	case errors.Is(err, errDecided):
		return nil
	case err != nil:
		return d.planner.fail(e, err)
	case own == sum:
		return d.planner.haveContent(e)
	case d.planner.terms.plan.Compare:
		return d.planner.differs(e.path)
	}
	return d.planner.needNew(ctx, e, disk.Info{}, negotiate.ChangeContent)
}

// sum computes the digest of what the target has in place of a file.
func (d *digestComparison) sum(ctx context.Context, e *arriving, by digest.Algorithm) (digest.Sum, error) {
	own, undecided := d.planner.open.hold(e)
	if !undecided {
		return digest.Sum{}, errDecided
	}
	file, err := d.open(e, own)
	if err != nil {
		return digest.Sum{}, err
	}
	defer file.Close()
	sum, _, err := digest.Of(ctx, by, touchingReader{file, d.planner.terms.config.Progress})
	if err != nil && ctx.Err() == nil {
		err = disk.NewError(disk.ErrTarget, err, "check the disk", "reading %s failed: %s", e.path, disk.Reason(err))
	}
	return sum, err
}

// open opens what the target has: own, if it is a file of a comparison of trees, which is released.
func (d *digestComparison) open(e *arriving, own *tree.Entry) (disk.File, error) {
	if own == nil {
		return d.planner.openOwn(e)
	}
	defer own.Release()
	source, err := own.Open()
	if err != nil {
		return nil, err
	}
	return source.File(), nil // which closes it, too
}

// touchingReader reports the progress of reading a file.
type touchingReader struct {
	file     disk.File
	progress *job.Progress
}

// Read implements io.Reader.
func (t touchingReader) Read(b []byte) (int, error) {
	t.progress.Touch()
	return t.file.Read(b)
}
