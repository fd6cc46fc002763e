package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// deviceMemory is the Memory of a DOCA device and a connection of it.
type deviceMemory struct {
	device *doca.Device
	side   wire.Side
	conn   comch.Conn
}

// NewMemory returns the Memory of a DOCA device on its side, and a connection of it.
func NewMemory(device *doca.Device, side wire.Side, conn comch.Conn) Memory {
	return deviceMemory{device, side, conn}
}

// Paths implements Memory.
func (d deviceMemory) Paths(choice job.PathChoice) (job.Paths, error) {
	return job.ChoosePaths(choice, d.device.Info(), d.side)
}

// Check implements Memory.
func (d deviceMemory) Check(chunk int64, depth int) error {
	return job.CheckLimits(d.device, d.side, chunk, depth)
}

// Traits implements Memory.
func (d deviceMemory) Traits(p job.Paths) Traits {
	info := d.device.Info()
	t := Traits{Offloaded: d.device.Offloaded()}
	if p.Has(wire.PathDMA) {
		t.Largest = int64(info.MaxBufferSize)
	}
	if p.Has(wire.PathFast) {
		consumer, producer := info.Consumer, info.Producer
		t.Largest = least(t.Largest, int64(consumer.MaxBuffer), int64(producer.MaxBuffer))
		t.Deepest = least(int64(consumer.MaxTasks), int64(producer.MaxTasks))
		t.Lanes = least(int64(consumer.MaxPorts), int64(producer.MaxPorts))
	}
	return t
}

// least returns the smallest of several limits; 0 stands for no limit.
func least(limits ...int64) int64 {
	smallest := int64(0)
	for _, l := range limits {
		if smallest == 0 || l != 0 && l < smallest {
			smallest = l
		}
	}
	return smallest
}

// Expose implements Memory.
func (d deviceMemory) Expose(ctx context.Context, l Layout) (*Window, error) {
	if l.Path == wire.PathFast {
		return d.exposeConsumers(ctx, l)
	}
	access := doca.RemoteWrite
	if l.Sends {
		access = doca.RemoteRead
	}
	region, err := d.device.Alloc(l.Length(), access)
	if err != nil {
		return nil, fmt.Errorf("registering the window: %w", err)
	}
	descriptor, err := region.Export()
	if err != nil {
		return nil, errors.Join(err, region.Close())
	}
	w := NewHostWindow(l, region.Bytes())
	w.Address, w.Descriptor = region.Address(), descriptor
	w.AddCloser(region)
	return w, nil
}

// Open implements Memory.
func (d deviceMemory) Open(ctx context.Context, l Layout, of native.Window) (*Window, error) {
	if l.Path == wire.PathFast {
		return d.openProducers(ctx, l, of)
	}
	w := &Window{}
	if err := d.openInto(w, l, of); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (d deviceMemory) openInto(w *Window, l Layout, of native.Window) error {
	remote, err := d.device.Import(of.Descriptor, of.Address, int64(of.Length))
	if err != nil {
		return fmt.Errorf("importing the host's window: %w", err)
	}
	w.AddCloser(remote)
	if l.Sends {
		return d.openSender(w, l, remote)
	}
	return d.openReceiver(w, l, remote)
}

// addSlots gives all lanes of a sender the same memory: each of its slots belongs to one slot of the window.
func (d deviceMemory) addSlots(w *Window, l Layout) (*doca.Region, error) {
	region, err := d.device.Alloc(l.Length(), doca.LocalRead)
	if err != nil {
		return nil, fmt.Errorf("registering buffers: %w", err)
	}
	w.AddCloser(region)
	w.Slots = pump.NewSlots(region.Bytes(), l.Chunk)
	return region, nil
}

func (d deviceMemory) openSender(w *Window, l Layout, remote *doca.Remote) error {
	region, err := d.addSlots(w, l)
	if err != nil {
		return err
	}
	for range l.Lanes {
		if err := d.addEngine(w, l.LaneSlots(0), remote, region, true); err != nil {
			return err
		}
	}
	return nil
}

func (d deviceMemory) openReceiver(w *Window, l Layout, window doca.Memory) error {
	for range l.Lanes {
		region, err := d.device.Alloc(int64(l.Buffers)*l.Chunk, doca.LocalWrite)
		if err != nil {
			return fmt.Errorf("registering buffers: %w", err)
		}
		w.AddCloser(region)
		w.Buffers = append(w.Buffers, pump.NewSlots(region.Bytes(), l.Chunk))
		if err := d.addEngine(w, l.Buffers, window, region, false); err != nil {
			return err
		}
	}
	return nil
}

func (d deviceMemory) addEngine(w *Window, depth int, window doca.Memory, region *doca.Region, sends bool) error {
	deepest, err := job.MaxDepth(d.device)
	if err != nil {
		return err
	}
	engine, err := d.device.NewEngine(min(depth, deepest))
	if err != nil {
		return fmt.Errorf("starting a DMA engine: %w", err)
	}
	w.AddCloser(engine)
	w.Engines = append(w.Engines, newDMA(engine, window, region, sends))
	return nil
}
