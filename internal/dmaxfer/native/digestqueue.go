package native

import (
	"context"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// digestQueue computes and sends the digests that a receiver wants, one after another in jobs. The owner of the
// transfer uses it.
type digestQueue struct {
	*common
	sums []*outgoing // whose digest the receiver wants; the first one is being computed

	// ending is called by the job when all of a file has been read, and cannotSend by the owner for one that cannot be.
	ending     func(o *outgoing, size int64, sum digest.Sum) error
	cannotSend func(ctx context.Context, o *outgoing, err error) error
}

// want computes the digest of a file in a job, after those that were wanted before.
func (d *digestQueue) want(ctx context.Context, o *outgoing) {
	if d.sums = append(d.sums, o); len(d.sums) == 1 {
		d.compute(ctx)
	}
}

func (d *digestQueue) compute(ctx context.Context) {
	o := d.sums[0]
	d.link.run(func() func() error {
		sum, err := sumOf(ctx, d.terms, o)
		if err == nil {
			err = d.ending(o, o.size, sum)
		}
		return func() error {
			if d.sums = d.sums[1:]; len(d.sums) > 0 {
				d.compute(ctx)
			}
			if err != nil || o.decided.Load() { // the receiver may have failed it meanwhile
				return d.cannotSend(ctx, o, err)
			}
			message, err := d.session.Sum(d.message, o.number, sum.Bytes())
			if err != nil {
				return err
			}
			return d.link.send(ctx, message)
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
