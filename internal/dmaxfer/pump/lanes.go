package pump

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// runLanes runs all lanes; the first that fails ends the others.
func runLanes[L interface{ run(context.Context) error }](ctx context.Context, lanes []L) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range lanes {
		group.Go(func() error { return l.run(ctx) })
	}
	return group.Wait()
}

// patientLooks is how often a lane looks for the peer's message before it sleeps. A look is the better part of a microsecond, most of it
// a system call, so all of them are the time of a few pieces: to be woken for a message that comes earlier costs more, on both sides.
const patientLooks = 400

// Lookout looks for the peer's messages, and reports whether that is of any use: nil looks for nothing, and is of none.
type Lookout func() bool

// glance is for in between two pieces: what has come, and who has to handle it, gets its turn.
func (look Lookout) glance() {
	if look != nil && look() {
		runtime.Gosched()
	}
}

// expect looks for a while for what will be in the inbox soon.
func expect[T any](inbox <-chan T, look Lookout) {
	for n := 0; n < patientLooks && len(inbox) == 0 && look != nil && look(); n++ {
		runtime.Gosched()
	}
}

func pieceOf(r *negotiate.Record) Piece {
	return Piece{Kind: r.Kind, Offset: int64(r.Offset), Length: int64(r.Length)}
}

// enter takes a piece into a ledger, whose digest needs either the check of the piece or, in sequence, its bytes.
func enter(ledger *digest.Ledger, a digest.Algorithm, piece Piece, bytes []byte, check uint64) error {
	switch {
	case piece.Kind == negotiate.HoleRecord:
		return ledger.AddHole(piece.Offset, piece.Length)
	case a.Ordered():
		return ledger.Write(piece.Offset, bytes)
	default:
		return ledger.Add(piece.Offset, piece.Length, check)
	}
}
