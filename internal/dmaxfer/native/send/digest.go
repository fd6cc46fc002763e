package send

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
)

// sumOf reads a file for its digest. expected is the digest to compare with what the user allows, which may name
// another algorithm.
func sumOf(ctx context.Context, p *role.Params, e *entry) (sum, expected digest.Sum, err error) {
	if !e.acquire() {
		return sum, expected, errDecided
	}
	defer e.release()
	c, err := e.open(ctx)
	if err != nil {
		return sum, expected, err
	}
	defer c.close()
	sum, err = sumOfSource(ctx, p, c.source, p.Plan.SumDigest())
	expected = sum
	if of := p.Config.Expect; err == nil && of != nil && of.Algorithm() != sum.Algorithm() {
		expected, err = sumOfSource(ctx, p, c.source, of.Algorithm())
	}
	if err != nil || p.Plan.AllowChanging {
		return sum, expected, err
	}
	return sum, expected, verifySource(ctx, p, c.source, sum)
}

func sumOfSource(ctx context.Context, p *role.Params, s *disk.Source, by digest.Algorithm) (digest.Sum, error) {
	sum, _, err := digest.Of(ctx, by, job.NewReader(s, s.Info().Size, func(int64) {
		p.Config.Progress.Touch()
	}))
	return sum, err
}

// verifySource returns an error if a source has changed since it was opened. What was read of it has this digest.
func verifySource(ctx context.Context, p *role.Params, s *disk.Source, sum digest.Sum) error {
	return s.Verify(func() (bool, error) {
		if sum.Algorithm() == digest.None {
			return false, nil
		}
		again, err := sumOfSource(ctx, p, s, sum.Algorithm())
		return again == sum, err
	})
}
