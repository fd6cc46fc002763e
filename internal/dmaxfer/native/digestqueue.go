package native

import (
	"context"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// digestQueue makes calls that read whole files for their digests, in jobs and one after another. The owner of the
// transfer uses it.
type digestQueue struct {
	link  link
	calls []func() (finish func() error) // the first one is being made
}

// add makes a call after those that were added before, as link.run does.
func (d *digestQueue) add(call func() (finish func() error)) {
	if d.calls = append(d.calls, call); len(d.calls) == 1 {
		d.next()
	}
}

func (d *digestQueue) next() {
	call := d.calls[0]
	d.link.run(func() func() error {
		finish := call()
		return func() error {
			if d.calls = d.calls[1:]; len(d.calls) > 0 {
				d.next()
			}
			return finish()
		}
	})
}

// sumOf reads a file for its digest.
func sumOf(ctx context.Context, t *terms, o *outgoing) (digest.Sum, error) {
	if !o.acquire() {
		return digest.Sum{}, errDecided
	}
	defer o.letGo()
	c, err := o.open()
	if err != nil {
		return digest.Sum{}, err
	}
	defer c.close()
	sum, err := sumOfSource(ctx, t, c.source, t.sumAlgorithm())
	if err != nil {
		return digest.Sum{}, err
	}
	return sum, verifySource(ctx, t, c.source, sum)
}

func sumOfSource(ctx context.Context, t *terms, s *disk.Source, by digest.Algorithm) (digest.Sum, error) {
	sum, _, err := digest.Of(ctx, by, &sourceReader{source: s, progress: t.config.Progress})
	return sum, err
}

// verifySource returns an error if a source has changed since it was opened. What was read of it has this digest.
func verifySource(ctx context.Context, t *terms, s *disk.Source, sum digest.Sum) error {
	return s.Verify(func() (bool, error) {
		if sum.Algorithm() == digest.None {
			return false, nil
		}
		again, err := sumOfSource(ctx, t, s, sum.Algorithm())
		return again == sum, err
	})
}

// sourceReader reads a source from its beginning, and reports its progress.
type sourceReader struct {
	source   *disk.Source
	progress *job.Progress
	offset   int64
}

// Read implements io.Reader.
func (r *sourceReader) Read(p []byte) (int, error) {
	n := min(int64(len(p)), r.source.Info().Size-r.offset)
	if n == 0 {
		return 0, io.EOF
	}
	if err := r.source.ReadAt(p[:n], r.offset); err != nil {
		return 0, err
	}
	r.offset += n
	r.progress.Touch()
	return int(n), nil
}
