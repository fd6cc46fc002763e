package window

import (
	"math"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// With a bandwidth limit chunks are so small that the peer sees progress, unless they could not be smaller.
func TestPacedChunksAreSmall(t *testing.T) {
	for bandwidth, want := range map[int64]uint32{
		0: 512 << 10, 1 << 30: 512 << 10, 2 << 20: 256 << 10, 100_000: 8192, 1: wire.MinChunk,
	} {
		if got, _ := (Choice{Limit: bandwidth}).For(0); got != want {
			t.Errorf("at %d bytes per second chunks have %d bytes, not %d", bandwidth, got, want)
		}
	}
}

// The DPU has small windows for small files. A side that was given a chunk or a depth proposes that, and the host
// leaves the choice to the DPU.
func TestSmallFilesGetSmallWindows(t *testing.T) {
	const unknown = 0
	dpu, host := Choice{}, Choice{Initiates: true}
	for _, c := range []struct {
		choice       Choice
		size         int64
		chunk, depth uint32
	}{
		{dpu, unknown, 512 << 10, 16},
		{dpu, 1, 64 << 10, 8},
		{dpu, 2 << 20, 64 << 10, 8},
		{dpu, 60 << 20, 128 << 10, 8},
		{dpu, 64 << 20, 256 << 10, 8},
		{dpu, 1 << 30, 512 << 10, 8},
		{dpu, 2 << 30, 512 << 10, 16},
		{dpu, math.MaxInt64, 512 << 10, 16},
		{host, 2 << 20, 2 << 20, 32},
		{Choice{Chunk: 1 << 20}, 64 << 20, 1 << 20, 8},
		{Choice{Depth: 4}, 1 << 30, 512 << 10, 4},
		{Choice{Depth: 1 << 20}, 1 << 30, 512 << 10, wire.MaxDepth},
	} {
		if chunk, depth := c.choice.For(c.size); chunk != c.chunk || depth != c.depth {
			t.Errorf("%+v, %d bytes: %d slots of %d bytes", c.choice, c.size, depth, chunk)
		}
	}
	offloaded := Choice{Traits: Traits{Offloaded: true}}
	for size, want := range map[int64][2]uint32{
		unknown: {1 << 20, 32}, 2 << 20: {64 << 10, 8}, 1 << 30: {1 << 20, 32},
	} {
		if chunk, depth := offloaded.For(size); chunk != want[0] || depth != want[1] {
			t.Errorf("a distant device and %d bytes: %d slots of %d bytes", size, depth, chunk)
		}
	}
	connected := Choice{Traits: Traits{
		Sizes: Sizes{Smallest: 512 << 10, Largest: 2 << 20, Chunks: 32, Depth: 4},
	}}
	for size, want := range map[int64][2]uint32{
		unknown: {2 << 20, 4}, 1: {512 << 10, 4}, 32 << 20: {1 << 20, 4}, math.MaxInt64: {2 << 20, 4},
	} {
		if chunk, depth := connected.For(size); chunk != want[0] || depth != want[1] {
			t.Errorf("a network connection and %d bytes: %d slots of %d bytes", size, depth, chunk)
		}
	}
	for size, want := range map[int64][2]uint32{
		2 << 20: {64 << 10, 4}, 64 << 20: {512 << 10, 4}, 4 << 30: {1 << 20, 4},
	} {
		if chunk, depth := (Choice{Shared: true}).For(size); chunk != want[0] || depth != want[1] {
			t.Errorf("lanes that share CPUs and %d bytes: %d slots of %d bytes", size, depth, chunk)
		}
	}
	if got, _ := (Choice{Traits: Traits{Largest: 100_000}}).For(unknown); got != 64<<10 {
		t.Errorf("a device that copies 100,000 bytes at once gets slots of %d", got)
	}
}

// The window keeps to what the device can have in flight, whatever was asked for.
func TestDepthOfADevice(t *testing.T) {
	for _, asked := range []int64{0, 3, 64} {
		c := Choice{Initiates: true, Depth: asked, Traits: Traits{Deepest: 5}}
		want := uint32(5)
		if asked == 3 {
			want = 3
		}
		if _, got := c.For(0); got != want {
			t.Errorf("%d slots were asked for: got %d", asked, got)
		}
	}
}
