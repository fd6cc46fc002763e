package native

import (
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// deviceMemory is the Memory of a DOCA device.
type deviceMemory struct{ device *doca.Device }

// NewMemory returns the Memory of a DOCA device.
func NewMemory(device *doca.Device) Memory { return deviceMemory{device} }

// Traits implements Memory.
func (d deviceMemory) Traits() Traits {
	return Traits{Largest: int64(d.device.Info().MaxBufferSize), Distant: d.device.Distant()}
}

// Expose implements Memory.
func (d deviceMemory) Expose(l Layout) (*Window, error) {
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
func (d deviceMemory) Open(l Layout, of negotiate.Window) (*Window, error) {
	w := &Window{}
	if err := d.openInto(w, l, of); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (d deviceMemory) openInto(w *Window, l Layout, of negotiate.Window) error {
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

// openSender gives all lanes the same memory: each of its slots belongs to one slot of the window.
func (d deviceMemory) openSender(w *Window, l Layout, remote *doca.Remote) error {
	region, err := d.device.Alloc(l.Length(), doca.LocalRead)
	if err != nil {
		return fmt.Errorf("registering buffers: %w", err)
	}
	w.AddCloser(region)
	w.Slots = pump.NewSlots(region.Bytes(), l.Chunk)
	for range l.Lanes {
		if err := d.addEngine(w, (l.Depth+l.Lanes-1)/l.Lanes, remote, region, true); err != nil {
			return err
		}
	}
	return nil
}

func (d deviceMemory) openReceiver(w *Window, l Layout, remote *doca.Remote) error {
	for range l.Lanes {
		region, err := d.device.Alloc(int64(l.Buffers)*l.Chunk, doca.LocalWrite)
		if err != nil {
			return fmt.Errorf("registering buffers: %w", err)
		}
		w.AddCloser(region)
		w.Buffers = append(w.Buffers, pump.NewSlots(region.Bytes(), l.Chunk))
		if err := d.addEngine(w, l.Buffers, remote, region, false); err != nil {
			return err
		}
	}
	return nil
}

func (d deviceMemory) addEngine(w *Window, depth int, remote *doca.Remote, region *doca.Region, sends bool) error {
	deepest, err := job.MaxDepth(d.device)
	if err != nil {
		return err
	}
	engine, err := d.device.NewEngine(min(depth, deepest))
	if err != nil {
		return fmt.Errorf("starting a DMA engine: %w", err)
	}
	w.AddCloser(engine)
	w.Engines = append(w.Engines, newDMA(engine, remote, region, sends))
	return nil
}
