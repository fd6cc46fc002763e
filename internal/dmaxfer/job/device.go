package job

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// CheckCapable refuses a device that can negotiate, but cannot do its side's part of the transfer.
func CheckCapable(device doca.DeviceInfo, side negotiate.Side) error {
	const next = "choose another device with -p, or check that the card is in DPU mode (not NIC mode)"
	switch {
	case side == negotiate.Host && !device.ExportSupported:
		return NewError(ErrCapability, nil, next, "%s cannot export memory to the DPU", device.PCIAddress)
	case side == negotiate.DPU && !device.ImportSupported:
		return NewError(ErrCapability, nil, next, "%s cannot import memory from the host", device.PCIAddress)
	case side == negotiate.DPU && !device.MemcpySupported:
		return NewError(ErrCapability, nil, next, "%s does not support DMA copies", device.PCIAddress)
	}
	return nil
}

// CheckLimits refuses a chunk, in bytes, or a depth that is beyond the device; 0 stands for the default. On the host,
// where the peer's engine copies, it checks only the chunk: the limit of the depth is that of an engine, which a host
// function need not have.
func CheckLimits(device *doca.Device, side negotiate.Side, chunk int64, depth int) error {
	largest := int64(device.Info().MaxBufferSize)
	if chunk > largest && largest > 0 {
		return NewError(ErrSettings, nil, "choose a smaller value",
			"--chunk %d exceeds the limit of %s per DMA task of %s",
			chunk, humanize.IBytes(uint64(largest)), device.Info().PCIAddress)
	}
	if side == negotiate.Host || depth == 0 {
		return nil
	}
	deepest, err := MaxDepth(device)
	if err != nil {
		return err
	}
	if depth > deepest {
		return NewError(ErrSettings, nil, "choose a smaller value",
			"--depth %d exceeds the limit of %d DMA tasks in flight of %s", depth, deepest, device.Info().PCIAddress)
	}
	return nil
}

// MaxDepth returns how many copies an engine of the device can have in flight.
func MaxDepth(device *doca.Device) (int, error) {
	deepest, err := device.MaxDepth()
	if err != nil {
		return 0, fmt.Errorf("querying the limits of %s: %w", device.Info().PCIAddress, err)
	}
	return deepest, nil
}
