package job

import (
	"fmt"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// ChoosePaths returns the paths that the user permits and the device can do on its side. It fails with ErrCapability if
// there is none, and with ErrSettings for a path of a network connection.
func ChoosePaths(choice PathChoice, device doca.DeviceInfo, side wire.Side) (Paths, error) {
	if !choice.Permits(wire.PathDMA) && !choice.Permits(wire.PathFast) {
		return 0, NewError(ErrSettings, nil, "use --path auto, dma or fast",
			"the path %s is for connections to other machines", wire.Path(choice-OnlyDMA))
	}
	var p Paths
	noDMA, noFast := LacksForDMA(device, side), LacksForFast(device)
	if choice.Permits(wire.PathDMA) && noDMA == "" {
		p |= PathsOf(wire.PathDMA)
	}
	if choice.Permits(wire.PathFast) && noFast == "" {
		p |= PathsOf(wire.PathFast)
	}
	switch {
	case p != 0:
		return p, nil
	case choice == OnlyFast:
		return 0, incapable(device, noFast)
	}
	return 0, incapable(device, noDMA)
}

// LacksForDMA returns why a device that can negotiate cannot do its side's part of a copy by DMA, as the end of a
// sentence about it; empty if it can.
func LacksForDMA(device doca.DeviceInfo, side wire.Side) string {
	switch {
	case side == wire.Host && !device.ExportSupported:
		return "cannot export memory to the DPU"
	case side == wire.DPU && !device.ImportSupported:
		return "cannot import memory from the host"
	case side == wire.DPU && !device.MemcpySupported:
		return "does not support DMA copies"
	}
	return ""
}

// CheckLocal refuses a device that cannot copy within this machine.
func CheckLocal(device doca.DeviceInfo) error {
	if !device.MemcpySupported {
		return incapable(device, "does not support DMA copies")
	}
	return nil
}

// slotNumber is how many bytes of immediate data the fast path needs.
const slotNumber = 4

// LacksForFast returns why a device cannot send and receive by producers and consumers, as LacksForDMA does.
func LacksForFast(device doca.DeviceInfo) string {
	switch {
	case !device.Producer.Supported || !device.Consumer.Supported:
		return "does not support Comch producers and consumers"
	case device.MaxImmediate < slotNumber:
		return "does not support immediate data"
	case device.Consumer.MaxBuffer > 0 && device.Consumer.MaxBuffer < wire.MinChunk,
		device.Producer.MaxBuffer > 0 && device.Producer.MaxBuffer < wire.MinChunk:
		return "sends and receives less than 4 KiB at once over producers and consumers"
	}
	return ""
}

func incapable(device doca.DeviceInfo, why string) error {
	return NewError(ErrCapability, nil,
		"choose another device with -p, or check that the card is in DPU mode (not NIC mode)",
		"%s %s", device.Name(), why)
}

// CheckLimits refuses a chunk, in bytes, or a depth that is beyond the device; 0 stands for the default. On the host,
// where the peer's engine copies, it checks only the chunk: the depth is limited by an engine, which a host function
// need not have.
func CheckLimits(device *doca.Device, side wire.Side, chunk int64, depth int) error {
	largest := int64(device.Info().MaxBufferSize)
	if chunk > largest && largest > 0 {
		return NewError(ErrSettings, nil, "choose a smaller value",
			"--chunk %d exceeds the limit of %s per DMA task of %s",
			chunk, quantity.Bytes(uint64(largest)), device.Info().PCIAddress)
	}
	if side == wire.Host || depth == 0 {
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
