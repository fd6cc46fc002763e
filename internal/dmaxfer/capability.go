package dmaxfer

import (
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// checkCapable refuses a device that could take its side's part in the conversation, but not in the copy.
func checkCapable(device doca.DeviceInfo, side negotiate.Side) error {
	const next = "choose another device with -p, or check that the card is in DPU mode (not NIC mode)"
	switch {
	case side == negotiate.Host && !device.ExportSupported:
		return failure(ErrCapability, nil, next, "%s cannot export memory to the DPU", device.PCIAddress)
	case side == negotiate.DPU && !device.ImportSupported:
		return failure(ErrCapability, nil, next, "%s cannot import memory from the host", device.PCIAddress)
	case side == negotiate.DPU && !device.MemcpySupported:
		return failure(ErrCapability, nil, next, "%s does not support DMA copies", device.PCIAddress)
	}
	return nil
}
