package reference

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// The sizes of this protocol. Sizes are in bytes.
const (
	// defaultChunk is the largest chunk that is chosen. Larger ones are not faster.
	defaultChunk = 1 << 20

	// defaultDepth is how many chunks the engine has in flight unless the user or the device says otherwise.
	defaultDepth = 8

	// fileWorkers is how many slots are read from or written to the file at once. A second one hides the time in which
	// the file system is not moving bytes; a third has nothing left to hide.
	fileWorkers = 2

	// placeholderSize is what a host exports for an empty file, because DOCA registers no empty memory.
	placeholderSize = 4096

	// fileStep is how much of a file that is held in memory is read or written between two checks of the context.
	fileStep = 8 << 20

	// graceUnit is how many bytes of a file, or what is left of them at its end, earn the idle timeout once more
	// while the peer works and, in this protocol, cannot report how far it is.
	graceUnit = 256 << 20
)

// shape is how a file is cut.
type shape struct {
	chunk int64 // bytes
	depth int   // chunks in flight
}

// chooseShape takes what was asked for, which job.CheckLimits has seen, and otherwise what suits the device and the
// file.
func chooseShape(device *doca.Device, chunk int64, depth int, size int64) (shape, error) {
	if chunk == 0 {
		chunk = suitableChunk(int64(device.Info().MaxBufferSize))
	}
	if depth == 0 {
		deepest, err := job.MaxDepth(device)
		if err != nil {
			return shape{}, err
		}
		depth = min(defaultDepth, deepest)
	}
	chunks := max(1, (size+chunk-1)/chunk)
	return shape{chunk: chunk, depth: int(min(int64(depth), chunks))}, nil
}

// suitableChunk returns the default for a device that copies at most largest bytes at once; 0 if it does not say.
func suitableChunk(largest int64) int64 {
	if largest == 0 {
		return defaultChunk
	}
	return min(defaultChunk, largest)
}
