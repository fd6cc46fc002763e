package send

import (
	"context"
	"io"

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
	sum, err := sumOfSource(ctx, p, c.source, p.SumAlgorithm())
	if err != nil {
		return digest.Sum{}, err
	}
	return sum, verifySource(ctx, p, c.source, sum)
}

func sumOfSource(ctx context.Context, p *role.Params, s *disk.Source, by digest.Algorithm) (digest.Sum, error) {
	sum, _, err := digest.Of(ctx, by, &sourceReader{source: s, progress: p.Config.Progress})
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
