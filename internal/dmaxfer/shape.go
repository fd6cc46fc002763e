package dmaxfer

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// What is chosen when the user does not, in the reference's protocol. A megabyte is where larger chunks stop to be faster.
const (
	defaultChunk = 1 << 20
	defaultDepth = 8

	// defaultSlots is the depth in the native protocol, where a piece also waits for its file and for its acknowledgement.
	defaultSlots = 16
)

// shape is how a file is cut.
type shape struct {
	chunk int64 // bytes per copy
	depth int   // copies in flight
}

// checkShape refuses what the device cannot do, before the peer is bothered. On the host, where the peer's engine copies,
// only the chunk is looked at: asking for the depth takes an engine, which a host function need not have.
func checkShape(device *doca.Device, side negotiate.Side, chunk int64, depth int) error {
	largest := int64(device.Info().MaxBufferSize)
	if chunk > largest && largest > 0 {
		return failure(ErrSettings, nil, "choose a smaller value",
			"--chunk %d exceeds the limit of %s per DMA task of %s",
			chunk, humanize.IBytes(uint64(largest)), device.Info().PCIAddress)
	}
	if side == negotiate.Host || depth == 0 {
		return nil
	}
	deepest, err := maxDepth(device)
	if err != nil {
		return err
	}
	if depth > deepest {
		return failure(ErrSettings, nil, "choose a smaller value",
			"--depth %d exceeds the limit of %d DMA tasks in flight of %s", depth, deepest, device.Info().PCIAddress)
	}
	return nil
}

// suitableChunk takes a largest of 0 for unknown.
func suitableChunk(largest int64) int64 {
	if largest == 0 {
		return defaultChunk
	}
	return min(defaultChunk, largest)
}

func maxDepth(device *doca.Device) (int, error) {
	deepest, err := device.MaxDepth()
	if err != nil {
		return 0, fmt.Errorf("querying the limits of %s: %w", device.Info().PCIAddress, err)
	}
	return deepest, nil
}

// chooseShape takes what was asked for, which checkShape has seen, and otherwise what suits the device and the file.
func chooseShape(device *doca.Device, chunk int64, depth int, size int64) (shape, error) {
	if chunk == 0 {
		chunk = suitableChunk(int64(device.Info().MaxBufferSize))
	}
	if depth == 0 {
		deepest, err := maxDepth(device)
		if err != nil {
			return shape{}, err
		}
		depth = min(defaultDepth, deepest)
	}
	chunks := max(1, (size+chunk-1)/chunk)
	return shape{chunk: chunk, depth: int(min(int64(depth), chunks))}, nil
}
