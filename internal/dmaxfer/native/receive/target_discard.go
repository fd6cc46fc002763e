package receive

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// discardTarget is the target of a measurement: it stores nothing.
type discardTarget struct{}

var _ target = discardTarget{}

func (discardTarget) ReadAt([]byte, int64) error                              { return nil }
func (discardTarget) WriteAt([]byte, int64) error                             { return nil }
func (discardTarget) Punch(int64, int64) error                                { return nil }
func (discardTarget) resumable() (int64, wire.Discarded)                      { return 0, 0 }
func (discardTarget) warnings() []string                                      { return nil }
func (discardTarget) allocate(context.Context) error                          { return nil }
func (discardTarget) concurrent() bool                                        { return true }
func (discardTarget) advance(int64) error                                     { return nil }
func (discardTarget) finish(context.Context, digest.Sum, disk.Metadata) error { return nil }
func (discardTarget) commit() error                                           { return nil }
func (discardTarget) keep() (kept int64, lost string)                         { return 0, "" }
func (discardTarget) discard() error                                          { return nil }
func (discardTarget) abandon(bool) int64                                      { return 0 }
