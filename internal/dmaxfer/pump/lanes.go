package pump

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// runLanes runs all lanes until they end or the first one fails. pinning is nil if they are not pinned to CPUs.
func runLanes[L interface{ run(context.Context) error }](ctx context.Context, lanes []L, pinning Pinning) error {
	if pinning != nil {
		defer pinning.Reserve(len(lanes))()
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

// AddToLedger adds a chunk to a ledger, whose digest needs either the chunk's checksum or, in order, its bytes.
func AddToLedger(ledger *digest.Ledger, chunk Chunk, bytes []byte, check uint64) error {
	switch {
	case chunk.Kind == negotiate.HoleRecord:
		return ledger.AddHole(chunk.Offset, chunk.Length)
	case ledger.Algorithm().Ordered():
		return ledger.Write(chunk.Offset, bytes)
	default:
		return ledger.Add(chunk.Offset, chunk.Length, check)
	}
}

// ErrCorrupted is the error for a chunk whose checksum was wrong every time it was sent.
var ErrCorrupted = errors.New("checksum mismatch, retransmit limit reached")
