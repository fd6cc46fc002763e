package native

import (
	"context"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// digestComparison compares files that the target has with digests of the sender's, one after another in a job. The
// owner of the transfer calls compare and summing.
type digestComparison struct {
	planner *planner

	mu   sync.Mutex
	sums []summed // the first one is being compared
}

// summed is a file whose content is compared with a digest of the sender's.
type summed struct {
	entry *arriving
	own   *tree.Entry // held; nil: it is not a file of a comparison of trees
	sum   digest.Sum
}

// compare compares the content of a file with a digest of the sender's, in a job and after those before it.
func (d *digestComparison) compare(ctx context.Context, e *arriving, sum digest.Sum) {
	if e.directory != nil {
		d.planner.directories.await(e.directory)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	first := summed{e, nil, sum}
	if e.own != nil {
		held := *e.own
		held.Dir.Hold()
		first.own = &held
	}
	if d.sums = append(d.sums, first); len(d.sums) == 1 {
		d.planner.link.run(func() func() error {
			for next, more := first, true; more; next, more = d.nextSum() {
				if err := d.compareSum(ctx, next); err != nil {
					return failWith(err)
				}
			}
			return nothing
		})
	}
}

// nextSum removes the file that has been compared, and returns the one after it.
func (d *digestComparison) nextSum() (next summed, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sums = d.sums[1:]; len(d.sums) == 0 {
		return summed{}, false
	}
	return d.sums[0], true
}

func (d *digestComparison) compareSum(ctx context.Context, s summed) error {
	defer d.planner.replies.hurry()
	if s.entry.directory != nil {
		defer d.planner.leave(s.entry.directory)
	}
	own, err := d.sum(ctx, s)
	if s.own != nil {
		s.own.Release()
	}
	if err == nil && s.entry.depth == 0 && own == s.sum {
		err = d.planner.terms.checkContent(s.entry.size, own)
		d.planner.account.content(s.entry.size, own)
	}
	switch {
	case err != nil:
		return d.planner.fail(s.entry, err)
	case own == s.sum:
		return d.planner.haveContent(s.entry)
	case d.planner.terms.plan.Compare:
		return d.planner.differs(s.entry.path)
	}
	return d.planner.needNew(ctx, s.entry, disk.Info{}, negotiate.ChangeContent)
}

// sum computes the digest of what the target has in place of a file.
func (d *digestComparison) sum(ctx context.Context, s summed) (digest.Sum, error) {
	file, err := d.open(s)
	if err != nil {
		return digest.Sum{}, err
	}
	defer file.Close()
	sum, _, err := digest.Of(ctx, s.sum.Algorithm(), touchingReader{file, d.planner.terms.config.Progress})
	if err != nil && ctx.Err() == nil {
		err = disk.NewError(disk.ErrTarget, err, "check the disk", "reading %s failed: %s",
			s.entry.path, disk.Reason(err))
	}
	return sum, err
}

func (d *digestComparison) open(s summed) (disk.File, error) {
	if s.own == nil {
		return d.planner.openOwn(s.entry)
	}
	source, err := s.own.Open()
	if err != nil {
		return nil, err
	}
	return source.File(), nil // which closes it, too
}

// settle releases what was to be compared when the transfer has ended.
func (d *digestComparison) settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sums {
		if s.own != nil {
			s.own.Release()
		}
	}
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

// summing returns how many bytes this side and the sender may have to read for digests.
func (d *digestComparison) summing() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	bytes := int64(0)
	for _, s := range d.sums {
		bytes += s.entry.size
	}
	return bytes
}
