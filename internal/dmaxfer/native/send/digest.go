package send

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
)

// sumOf reads a file for its digest.
func sumOf(ctx context.Context, p *role.Params, e *entry) (digest.Sum, error) {
	if !e.acquire() {
		return digest.Sum{}, errDecided
	}
	defer e.release()
	c, err := e.open(ctx)
	if err != nil {
		return digest.Sum{}, err
	}
	defer c.close()
	sum, err := sumOfSource(ctx, p, c.source, p.Plan.SumDigest())
	if err != nil {
		return digest.Sum{}, err
	}
	return sum, verifySource(ctx, p, c.source, sum)
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
