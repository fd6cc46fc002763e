package pump

import (
	"context"

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

func pieceOf(r *negotiate.Record) Chunk {
	return Chunk{Kind: r.Kind, Offset: int64(r.Offset), Length: int64(r.Length)}
}

// enter takes a piece into a ledger, whose digest needs either the check of the piece or, in sequence, its bytes.
func enter(ledger *digest.Ledger, a digest.Algorithm, piece Chunk, bytes []byte, check uint64) error {
	switch {
	case piece.Kind == negotiate.HoleRecord:
		return ledger.AddHole(piece.Offset, piece.Length)
	case a.Ordered():
		return ledger.Write(piece.Offset, bytes)
	default:
		return ledger.Add(piece.Offset, piece.Length, check)
	}
}
