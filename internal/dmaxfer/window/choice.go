package window

import (
	"math/bits"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The sizes that a window is chosen by, in bytes, slots and uses of a slot.
const (
	// offloadedChunk and offloadedDepth keep an engine of 50 GB/s busy, whose copies do not pass through the caches
	// here. Each message then stands for more bytes.
	offloadedChunk = 1 << 20
	offloadedDepth = 32

	// fewestRounds is how often each slot is used at least before a window gets more than fewestSlots, with which no
	// stage waits for a slot. The first use of a slot costs more than a copy of that size, and in a virtual machine,
	// where the first access to a page is expensive, as much as many copies: cachedRounds is for an engine that copies
	// with this processor, which has nothing in flight that more slots would serve.
	fewestRounds = 32
	cachedRounds = 256
	fewestSlots  = 8

	// hostChunk and hostDepth are what a host or client offers that was given neither: the other side, the DPU with its
	// engine, then chooses. They bound the window at 64 MiB.
	hostChunk = 2 << 20
	hostDepth = 32

	// pacedChunks is how many chunks per second a transfer with a bandwidth limit has, unless they would be too small.
	pacedChunks = 8
)

// The sizes of windows by what copies. Chunks are so small that the stages work on several of them at once, and a slot
// and a buffer stay in a core's own caches from one stage to the next, and not so small that messages cost more than
// bytes.
var (
	// offloadedSizes are for an engine that copies with another processor.
	offloadedSizes = Sizes{Smallest: 64 << 10, Largest: offloadedChunk, Chunks: 256, Depth: offloadedDepth}

	// cachedSizes are for an engine that copies with this processor. A slot is occupied until its chunk is
	// acknowledged.
	cachedSizes = Sizes{Smallest: 64 << 10, Largest: 512 << 10, Chunks: 256, Depth: 16}

	// sharedSizes are for such an engine where the lanes of both sides share the CPUs: a slot is soon vacant where the
	// sides alternate on a CPU, and each message may be a change of thread.
	sharedSizes = Sizes{Smallest: 64 << 10, Largest: 1 << 20, Chunks: 128, Depth: 4}
)

// DefaultWindow is how many bytes the DPU registers with hardware if neither chunk nor depth is given, the device
// allows it, and the file is not small.
const DefaultWindow = offloadedChunk * offloadedDepth

// Choice is what the chunk and the depth of a window are chosen by, apart from the size of the file.
type Choice struct {
	Chunk     int64 // bytes that were asked for; 0: none were
	Depth     int64 // slots that were asked for; 0: none were
	Initiates bool  // the other side then chooses what this one was not asked for
	Shared    bool  // lanes of both sides share the CPUs
	Traits    Traits
	Limit     int64 // the lowest bandwidth limit, in bytes per second; 0: none
}

// suitable returns the sizes that the side which does not initiate chooses.
func (c Choice) suitable() Sizes {
	switch {
	case c.Traits.Sizes != (Sizes{}):
		return c.Traits.Sizes
	case c.Traits.Offloaded:
		return offloadedSizes
	case c.Shared:
		return sharedSizes
	}
	return cachedSizes
}

// For returns the chunk, in bytes, and the depth for a file of that size; 0 is unknown.
func (c Choice) For(size int64) (chunk, depth uint32) {
	chunk = c.chunk(size)
	return chunk, c.depth(size, int64(chunk))
}

// chunk returns the largest power of two that is no more than what was asked for, or else suits the device and the
// file, and that the device copies at once.
func (c Choice) chunk(size int64) uint32 {
	wanted := c.Chunk
	if wanted == 0 {
		wanted = c.suitableChunk(size)
	}
	if c.Traits.Largest > 0 {
		wanted = min(wanted, c.Traits.Largest)
	}
	if c.Limit > 0 {
		wanted = min(wanted, c.Limit/pacedChunks) // each chunk is progress that the peer sees
	}
	wanted = min(max(wanted, wire.MinChunk), wire.MaxChunk)
	return 1 << (bits.Len64(uint64(wanted)) - 1)
}

func (c Choice) suitableChunk(size int64) int64 {
	if c.Initiates {
		return hostChunk
	}
	suitable := c.suitable()
	if size == 0 {
		return suitable.Largest
	}
	return min(max(size/suitable.Chunks, suitable.Smallest), suitable.Largest)
}

// depth returns as many slots as were asked for, or as a file of that size keeps busy.
func (c Choice) depth(size, chunk int64) uint32 {
	wanted := c.Depth
	if wanted == 0 {
		wanted = c.suitableDepth(size, chunk)
	}
	wanted = min(wanted, wire.MaxDepth)
	if c.Traits.Deepest > 0 {
		wanted = min(wanted, c.Traits.Deepest)
	}
	return uint32(wanted)
}

func (c Choice) suitableDepth(size, chunk int64) int64 {
	largest := c.suitable().Depth
	switch {
	case c.Initiates:
		return hostDepth
	case size == 0:
		return largest
	}
	rounds := int64(fewestRounds)
	if !c.Traits.Offloaded && c.Traits.Sizes == (Sizes{}) {
		rounds = cachedRounds
	}
	return min(max(size/chunk/rounds, fewestSlots), largest)
}
