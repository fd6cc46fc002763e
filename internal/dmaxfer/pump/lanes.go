package pump

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// runLanes runs all lanes until they end or the first one fails. pinning is nil if they are not pinned to CPUs. A panic
// of a lane ends the others and then becomes one of the caller, so that it ends only the transfer.
func runLanes[L interface{ run(context.Context) error }](ctx context.Context, lanes []L, pinning Pinning) error {
	if pinning != nil {
		defer pinning.Reserve(len(lanes))()
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range lanes {
		group.Go(func() (err error) {
			defer func() {
				if value := recover(); value != nil {
					err = &lanePanic{value, debug.Stack()}
				}
			}()
			return l.run(ctx)
		})
	}
	err := group.Wait()
	if p, is := errors.AsType[*lanePanic](err); is {
		panic(p)
	}
	return err
}

// lanePanic is the panic of a lane.
type lanePanic struct {
	value any
	stack []byte
}

// Error implements error.
func (p *lanePanic) Error() string { return fmt.Sprint(p.value) }

// Panic returns the value and the stack of the lane.
func (p *lanePanic) Panic() (value any, stack []byte) { return p.value, p.stack }

// checkOf returns the check of a record. A claim decides whether two files are the same there, for which a CRC does not
// do: data that is followed by its own CRC does not change the CRC of the whole.
func checkOf(kind native.Kind, a digest.Algorithm, content []byte) uint64 {
	if kind == native.ClaimRecord {
		a = digest.XXH3
	}
	return digest.Check(a, content)
}

func chunkOf(r *native.Record) Chunk {
	return Chunk{Kind: r.Kind, Offset: int64(r.Offset), Length: int64(r.Length)}
}

// AddToLedger adds a chunk to a ledger, whose digest needs either the chunk's checksum or, in order, its bytes. The
// check of a claim is not that checksum.
func AddToLedger(ledger *digest.Ledger, chunk Chunk, bytes []byte, check uint64) error {
	switch {
	case chunk.Kind == native.HoleRecord:
		return ledger.AddHole(chunk.Offset, chunk.Length)
	case ledger.Algorithm().Ordered():
		return ledger.Write(chunk.Offset, bytes)
	case chunk.Kind == native.ClaimRecord:
		return ledger.Add(chunk.Offset, chunk.Length, digest.Check(ledger.Algorithm(), bytes))
	default:
		return ledger.Add(chunk.Offset, chunk.Length, check)
	}
}

// ErrCorrupted is the error for a chunk whose checksum was wrong every time it was sent.
var ErrCorrupted = errors.New("checksum mismatch, retransmit limit reached")
