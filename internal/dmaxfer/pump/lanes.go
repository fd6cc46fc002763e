package pump

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// runLanes runs all lanes; the first that fails ends the others. A lane that is bound has a thread of its own, and leaves the others those
// that they have.
func runLanes[L interface{ run(context.Context) error }](ctx context.Context, lanes []L, bound bool) error {
	if bound {
		reserve(len(lanes))
		defer reserve(-len(lanes))
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range lanes {
		group.Go(func() error { return l.run(ctx) })
	}
	return group.Wait()
}

func chunkOf(r *negotiate.Record) Chunk {
	return Chunk{Kind: r.Kind, Offset: int64(r.Offset), Length: int64(r.Length)}
}

// enter takes a chunk into a ledger, whose digest needs either the check of the chunk or, in sequence, its bytes.
func addToLedger(ledger *digest.Ledger, a digest.Algorithm, chunk Chunk, bytes []byte, check uint64) error {
	switch {
	case chunk.Kind == negotiate.HoleRecord:
		return ledger.AddHole(chunk.Offset, chunk.Length)
	case a.Ordered():
		return ledger.Write(chunk.Offset, bytes)
	default:
		return ledger.Add(chunk.Offset, chunk.Length, check)
	}
}

// maxAttempts is how often a chunk is sent before its copy is given up.
const maxAttempts = 1 + negotiate.MaxAttempt

// ErrCorrupted is a chunk that arrived other than it was sent, each time.
var ErrCorrupted = errors.New("checksum mismatch, retransmit limit reached")
