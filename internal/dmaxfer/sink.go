package dmaxfer

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// sink is where a receiver puts the file: a partial file that gets its name in the end, or a stream.
type sink interface {
	pump.Target

	// resumable is how much is there from an earlier copy, and warnings are sentences about what of it is not used, and
	// why a name is not the usual one.
	resumable() int64
	warnings() []string

	// allocate makes room.
	allocate(ctx context.Context) error

	// concurrent tells whether two lanes can write at once, after allocate.
	concurrent() bool

	// advance notes how much from the beginning on is verified.
	advance(prefix int64) error

	// finish makes what has come, and is sum, durable but for its name.
	finish(ctx context.Context, sum digest.Sum, attributes []byte) error

	// commit gives it its name, and durability is what it then has.
	commit() error
	durability() negotiate.Durability

	// close, keep and discard end it: done, to be gone on with, or not wanted. keep says how many bytes it has kept, or
	// why nothing of what was verified.
	close() error
	keep() (kept int64, lost string)
	discard() error

	// abandon is keep, or discard, while another call to the sink has not returned. It may hang itself.
	abandon(keep bool) int64
}

// openTarget opens what the plan wants filled.
func (r *receiving) openTarget(ctx context.Context) (sink, error) {
	if r.place.stream {
		return openStream(ctx, r)
	}
	return openFile(r)
}
