package receive

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// digests compares files that the target has with digests of the sender's. The owner of the transfer calls compare.
type digests struct {
	planner *planner
	queue   role.DigestQueue
	bytes   int64 // of the files in the queue, which this side and the sender may have to read; for the owner
}

// compare compares the content of a file with a digest of the sender's, after those before it.
func (d *digests) compare(ctx context.Context, e *entry, sum digest.Sum) {
	if e.directory != nil {
		d.planner.results.directories.await(e.directory)
	}
	d.bytes += e.size
	d.queue.Add(ctx, func(ctx context.Context) role.Call {
		err := d.decide(ctx, e, sum)
		return func(context.Context) error {
			d.bytes -= e.size
			return err
		}
	})
}

// decide decides by the digest whether a file is needed.
func (d *digests) decide(ctx context.Context, e *entry, sum digest.Sum) error {
	p := d.planner
	defer p.results.replies.requestFlush()
	if e.directory != nil {
		defer p.results.directories.leave(e.directory)
	}
	own, seen, err := d.sum(ctx, e, sum.Algorithm())
	if err == nil && e.depth == 0 && own == sum {
		err = d.checkExpected(ctx, e, own)
	}
	switch {
	case errors.Is(err, errDecided):
		return nil
	case err != nil:
		return p.results.fail(e, err)
	case own == sum:
		return p.haveContent(ctx, e, seen)
	case p.t.Params.Plan.Compare:
		return p.differs(e.path)
	}
	return p.needNew(ctx, e, disk.Info{}, native.ChangeContent)
}

// checkExpected compares the content of the only file with what the user allows, which another algorithm may name.
func (d *digests) checkExpected(ctx context.Context, e *entry, own digest.Sum) (err error) {
	p := d.planner.t.Params
	if expected := p.Config.Expect; expected != nil && expected.Algorithm() != own.Algorithm() {
		if own, _, err = d.sum(ctx, e, expected.Algorithm()); err != nil {
			return err
		}
	}
	d.planner.t.Stats.Content(e.size, own)
	return p.CheckContent(e.size, own)
}

// errDecided means that an entry need not be compared any more. It is not reported.
var errDecided = errors.New("internal error: the entry is decided")

// sum computes the digest of the file that the target has under the name. seen is that file before it is read.
func (d *digests) sum(ctx context.Context, e *entry, by digest.Algorithm) (sum digest.Sum, seen disk.Info, err error) {
	own, undecided := e.hold()
	if !undecided {
		return sum, seen, errDecided
	}
	file, err := d.open(e, own)
	if err != nil {
		return sum, seen, err
	}
	defer file.Close()
	if seen, err = file.Info(); err == nil {
		sum, _, err = digest.Of(ctx, by, d.planner.t.Params.Config.Progress.Reader(file))
	}
	if err != nil && ctx.Err() == nil {
		err = disk.NewError(disk.ErrTarget, err, "check the disk", "reading %s failed: %s", e.path, disk.Reason(err))
	}
	return sum, seen, err
}

// open opens what the target has: own, if it is a file of a comparison of trees, which is released.
func (d *digests) open(e *entry, own *tree.Entry) (disk.File, error) {
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
