package target

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Discarding is the target of a measurement: it stores nothing.
type Discarding struct{}

var _ Target = Discarding{}

func (Discarding) ReadAt([]byte, int64) error                              { return nil }
func (Discarding) WriteAt([]byte, int64) error                             { return nil }
func (Discarding) Punch(int64, int64) error                                { return nil }
func (Discarding) Resumable() (int64, wire.Discarded)                      { return 0, 0 }
func (Discarding) Warnings() []string                                      { return nil }
func (Discarding) Allocate(context.Context) error                          { return nil }
func (Discarding) Concurrent() bool                                        { return true }
func (Discarding) Advance(int64) error                                     { return nil }
func (Discarding) Finish(context.Context, digest.Sum, disk.Metadata) error { return nil }
func (Discarding) Commit() error                                           { return nil }
func (Discarding) Keep() (kept int64, lost string)                         { return 0, "" }
func (Discarding) Discard() error                                          { return nil }
func (Discarding) Abandon(bool) int64                                      { return 0 }
