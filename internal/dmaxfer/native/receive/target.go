package receive

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// target is what a receiver writes to: a partial file that is renamed in the end, or a stream.
type target interface {
	pump.Target

	// resumable returns how many bytes an earlier transfer has left, and why they are not used. warnings returns
	// sentences about that, and about a name that is not the usual one.
	resumable() (int64, wire.Discarded)
	warnings() []string

	// allocate preallocates the target.
	allocate(ctx context.Context) error

	// concurrent reports, after allocate, whether two lanes can write at once.
	concurrent() bool

	// advance notes how many bytes from the beginning are verified.
	advance(prefix int64) error

	// finish gives what was received, whose digest is sum, its attributes, and makes it durable but for its name.
	finish(ctx context.Context, sum digest.Sum, meta disk.Metadata) error

	// commit gives it its final name.
	commit() error

	// keep and discard end a target that is not committed: to be resumed, or not wanted. keep returns how many bytes it
	// has kept, or why nothing of what was verified.
	keep() (kept int64, lost string)
	discard() error

	// abandon is keep, or discard, while another call to the target has not returned. It may hang itself.
	abandon(keep bool) int64
}

// openTarget opens what the plan wants written.
func openTarget(ctx context.Context, t *role.Params, e *entry) (target, error) {
	switch file := t.Config.File; {
	case file.Discards:
		return discardTarget{}, nil
	case file.Stream:
		return openStreamTarget(ctx, t)
	}
	return openFileTarget(t, e)
}
