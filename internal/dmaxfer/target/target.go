// Package target is what a receiver in the native protocol writes to: a partial file that is renamed in the end, a
// stream, or nothing.
package target

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Target is what a receiver writes to. Several goroutines use it, one after the other except for the methods of
// pump.Target.
type Target interface {
	pump.Target

	// Resumable returns, after Allocate, how many bytes an earlier transfer has left, or the file that is replaced has,
	// and why what was left is not used. Warnings returns sentences about that, and about a name that is not the usual
	// one.
	Resumable() (int64, wire.Discarded)
	Warnings() []string

	// Allocate preallocates the target.
	Allocate(ctx context.Context) error

	// Concurrent reports, after Allocate, whether two lanes can write at once.
	Concurrent() bool

	// Advance notes how many bytes from the beginning are verified.
	Advance(prefix int64) error

	// Finish gives what was received, whose digest is sum, its attributes, and makes it durable but for its name.
	Finish(ctx context.Context, sum digest.Sum, meta disk.Metadata) error

	// Commit gives it its final name.
	Commit() error

	// Keep and Discard end a target that is not committed: to be resumed, or not wanted. Keep returns how many bytes it
	// has kept, or why nothing of what was verified.
	Keep() (kept int64, lost string)
	Discard() error

	// Abandon is Keep, or Discard, while another call to the target has not returned. It may hang itself.
	Abandon(keep bool) int64
}
