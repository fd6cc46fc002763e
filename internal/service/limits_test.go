package service

import (
	"context"
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// bufferingMemory has windows without memory, and an overhead for each byte of the peer's descriptor.
type bufferingMemory struct{ window.Memory }

// Open implements window.Memory.
func (bufferingMemory) Open(context.Context, window.Layout, native.Window) (*window.Window, error) {
	return &window.Window{}, nil
}

// Expose implements window.Memory.
func (bufferingMemory) Expose(context.Context, window.Layout) (*window.Window, error) {
	return &window.Window{}, nil
}

// Overhead implements window.Buffering.
func (bufferingMemory) Overhead(_ window.Layout, peer native.Window) int64 {
	return 1000 * int64(1+len(peer.Descriptor))
}

// What a window has beside its slots and buffers counts in --max-memory, from when it is opened until it is closed.
func TestOverheadCounts(t *testing.T) {
	b := &memoryBudget{limit: 70_000}
	m := budgetedMemory{bufferingMemory{}, b}
	sends := window.Layout{Sends: true, Chunk: 4096, Depth: 4, Lanes: 2}
	receives := window.Layout{Chunk: 4096, Depth: 4, Lanes: 2, Buffers: 2}
	opened, err := m.Open(t.Context(), sends, native.Window{Descriptor: make([]byte, 9)})
	must(t, err)
	if used := b.inUse(); used != 4*4096+10_000 {
		t.Errorf("a sender's window counts as %d", used)
	}
	exposed, err := m.Expose(t.Context(), receives)
	must(t, err)
	if used := b.inUse(); used != 4*4096+10_000+8*4096+1000 {
		t.Errorf("with that of a receiver it is %d", used)
	}
	_, err = m.Open(t.Context(), sends, native.Window{Descriptor: make([]byte, 50)})
	if !errors.Is(err, job.ErrLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
	must(t, opened.Close())
	must(t, exposed.Close())
	if used := b.inUse(); used != 0 {
		t.Errorf("%d bytes are still in use", used)
	}
}
