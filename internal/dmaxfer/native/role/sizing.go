package role

import (
	"math"
	"math/bits"
	"time"

	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The sizes and waits of this protocol. Sizes are in bytes.
const (
	// distantChunk and distantDepth keep an engine of 50 GB/s busy, whose copies do not pass through the caches here.
	// Each message then stands for more bytes.
	distantChunk = 1 << 20
	distantDepth = 32

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

	// maxBatch is how many bytes of chunks one message announces or acknowledges at most.
	maxBatch = 4 << 20

	// pacedChunks is how many chunks per second a transfer with a bandwidth limit has, unless they would be too small.
	pacedChunks = 8

	// MaxLanes is how many goroutines move units, unless Config.Lanes says otherwise. A third one finds nothing that
	// the two others leave idle.
	MaxLanes = 2

	// smallFile is the size below which a file is transferred before pinning its lanes could pay.
	smallFile = 16 << 20

	// StreamStep is how much is written to a stream between two reports of progress: what a pipe holds.
	StreamStep = 64 << 10

	// SlowChunk is how long one chunk may take that the bandwidth limit or a disk delays. It is within the second that
	// a side may take beyond its idle timeout.
	SlowChunk = time.Second

	// SlowEntry is how long one entry of a tree may take, for example on a disk that writes its journal.
	SlowEntry = 20 * time.Millisecond

	// SlowFlush is how long the flush of a file system may take.
	SlowFlush = 2 * time.Minute

	// SlowWalk is how long a sender may look for something to send.
	SlowWalk = 10 * time.Minute

	// MaxAttributes is how many bytes of extended attributes a receiver holds of needed files, and of directories and
	// symlinks that it has not planned yet, each; and how many a sender holds of entries that it has found.
	MaxAttributes = 16 << 20

	// smallestHole is the size below which a sparse file is sent without its holes.
	smallestHole = 64 << 10

	// slowestDisk is how many bytes per second are allocated, flushed or read back at least.
	slowestDisk = 4 << 20
)

// The sizes of windows by what copies. Chunks are so small that the stages work on several of them at once, and a slot
// and a buffer stay in a core's own caches from one stage to the next, and not so small that messages cost more than
// bytes.
var (
	// distantSizes are for an engine that copies with another processor.
	distantSizes = window.Sizes{Smallest: 64 << 10, Largest: distantChunk, Chunks: 256, Depth: distantDepth}

	// cachedSizes are for an engine that copies with this processor. A slot is occupied until its chunk is
	// acknowledged.
	cachedSizes = window.Sizes{Smallest: 64 << 10, Largest: 512 << 10, Chunks: 256, Depth: 16}

	// sharedSizes are for such an engine where the lanes of both sides share the CPUs: a slot is soon vacant where the
	// sides alternate on a CPU, and each message may be a change of thread.
	sharedSizes = window.Sizes{Smallest: 64 << 10, Largest: 1 << 20, Chunks: 128, Depth: 4}
)

// DefaultWindow is how many bytes the DPU registers with hardware if neither chunk nor depth is given, the device
// allows it, and the file is not small.
const DefaultWindow = distantChunk * distantDepth

// SlowWork returns how long an honest peer may need to allocate, flush or read back that many bytes.
func SlowWork(bytes int64) time.Duration {
	return SlowChunk + time.Duration(max(bytes, 0)/slowestDisk)*time.Second
}

// sizing is what chunk and depth are chosen by, apart from the file.
type sizing struct {
	window.Traits
	shared bool // lanes of both sides share the CPUs
}

// Proposal returns the chunk, in bytes, and the depth of the window that a side proposes which does not initiate, such
// as the DPU, whose engine copies. It depends on the size of the file: hostSize is what the DPU knows of the host's.
func (c *Config) Proposal(hostSize uint64) (chunk, depth uint32) {
	size, s := int64(min(hostSize, math.MaxInt64)), c.sizing()
	if c.Kept {
		return c.window(0, s)
	}
	if c.File.Stream || c.digest().Ordered() {
		s.shared = false // its only lane does not share a CPU with the host's
	}
	if c.File.Source != nil {
		size = c.File.Source.Info().Size
	}
	return c.window(size, s)
}

func (c *Config) sizing() sizing {
	s := sizing{Traits: c.traits()}
	s.shared = !s.Distant && c.Placement != nil && c.Placement.Lanes(MaxLanes) != nil
	return s
}

// suitable returns the sizes that the side which does not initiate chooses.
func (s sizing) suitable() window.Sizes {
	switch {
	case s.Sizes != (window.Sizes{}):
		return s.Sizes
	case s.Distant:
		return distantSizes
	case s.shared:
		return sharedSizes
	}
	return cachedSizes
}

// window returns the chunk, in bytes, and the depth for a file of that size; 0 is unknown.
func (c *Config) window(size int64, s sizing) (chunk, depth uint32) {
	chunk = c.chunk(size, s)
	return chunk, c.depth(size, chunk, s)
}

// chunk returns the largest power of two that is no more than what was asked for, or else suits the device and the
// file, and that the device copies at once.
func (c *Config) chunk(size int64, s sizing) uint32 {
	wanted := c.Chunk
	if wanted == 0 {
		wanted = c.suitableChunk(size, s)
	}
	if s.Largest > 0 {
		wanted = min(wanted, s.Largest)
	}
	if limit := c.slowestLimit(); limit > 0 {
		wanted = min(wanted, limit/pacedChunks) // each chunk is progress that the peer sees
	}
	wanted = min(max(wanted, wire.MinChunk), wire.MaxChunk)
	return 1 << (bits.Len64(uint64(wanted)) - 1)
}

// slowestLimit returns the lowest of the bandwidth limits, in bytes per second; 0 if there is none.
func (c *Config) slowestLimit() int64 {
	limit := max(c.Bandwidth, 0)
	for _, l := range c.Limiters {
		if l.Limit() == rate.Inf {
			continue
		}
		if own := max(int64(l.Limit()), 1); limit == 0 || own < limit {
			limit = own
		}
	}
	return limit
}

func (c *Config) suitableChunk(size int64, s sizing) int64 {
	if c.Side.Initiates() {
		return hostChunk
	}
	suitable := s.suitable()
	if size == 0 {
		return suitable.Largest
	}
	return min(max(size/suitable.Chunks, suitable.Smallest), suitable.Largest)
}

// depth returns as many slots as were asked for, or as a file of that size keeps busy.
func (c *Config) depth(size int64, chunk uint32, s sizing) uint32 {
	wanted := int64(c.Depth)
	if wanted == 0 {
		wanted = c.suitableDepth(size, int64(chunk), s)
	}
	wanted = min(wanted, wire.MaxDepth)
	if s.Deepest > 0 {
		wanted = min(wanted, s.Deepest)
	}
	return uint32(wanted)
}

func (c *Config) suitableDepth(size, chunk int64, s sizing) int64 {
	largest := s.suitable().Depth
	switch {
	case c.Side.Initiates():
		return hostDepth
	case size == 0:
		return largest
	}
	rounds := int64(fewestRounds)
	if !s.Distant && s.Sizes == (window.Sizes{}) {
		rounds = cachedRounds
	}
	return min(max(size/chunk/rounds, fewestSlots), largest)
}
