package dmaxfer

import (
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// checkCapable refuses a device that could take its side's part in the conversation, but not in the copy.
func checkCapable(device doca.DeviceInfo, side negotiate.Side) error {
	const next = "name another device with -p, or look at the card's mode of operation"
	switch {
	case side == negotiate.Host && !device.ExportSupported:
		return failure(ErrCapability, nil, next, "%s cannot export memory to the DPU", device.PCIAddress)
	case side == negotiate.DPU && !device.ImportSupported:
		return failure(ErrCapability, nil, next, "%s cannot reach memory that a host exports", device.PCIAddress)
	case side == negotiate.DPU && !device.MemcpySupported:
		return failure(ErrCapability, nil, next, "%s has no DMA engine that copies memory", device.PCIAddress)
	}
	return nil
}
