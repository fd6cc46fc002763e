package dmaxfer

import (
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// layout is how a side arranges its memory for a copy.
type layout struct {
	sends   bool
	digest  digest.Algorithm
	chunk   int64 // bytes of a slot
	slots   int   // of the window
	lanes   int
	buffers int // of each lane of a receiver
}

// reach is this side's end of the window: memory, and the engines between it and the window.
type reach struct {
	slots   pump.Slots    // of a sender, one for each of the window's
	buffers []pump.Slots  // of a receiver, by lane
	engines []pump.Engine // by lane; none where the slots are the window
	opened  []interface{ Close() error }
}

// close gives everything back, the engines first: nothing may be freed while it copies. So what cannot be closed keeps what was opened
// before it; another call tries again.
func (r *reach) close() error {
	for last := len(r.opened) - 1; last >= 0; last-- {
		if err := r.opened[last].Close(); err != nil {
			return err
		}
		r.opened = r.opened[:last]
	}
	return nil
}

// traits are what the slots are chosen by.
type traits struct {
	largest int64 // bytes that the device copies at once; 0 if it does not say
	distant bool  // it copies with another processor than this one, and other caches
	cpus    []int // that a lane of each side shares; nil: the system finds one for each lane
}

// memoryLayer is what a native copy needs of a device.
type memoryLayer interface {
	// traits are those of the device.
	traits() traits

	// expose makes the window, on the host, and says how the DPU reaches it.
	expose(l layout) (r *reach, address uint64, descriptor []byte, err error)

	// open reaches for the host's window, on the DPU.
	open(l layout, w negotiate.Window) (*reach, error)
}

// docaMemory is the memoryLayer of a DOCA device.
type docaMemory struct{ device *doca.Device }

// traits implements memoryLayer.
func (d docaMemory) traits() traits {
	of := traits{largest: int64(d.device.Info().MaxBufferSize), distant: d.device.Distant()}
	if !of.distant {
		of.cpus = scarceCPUs()
	}
	return of
}

// expose implements memoryLayer. What the DPU may write, a receiving host copies before it looks at it.
func (d docaMemory) expose(l layout) (*reach, uint64, []byte, error) {
	access := doca.RemoteWrite
	if l.sends {
		access = doca.RemoteRead
	}
	region, err := d.device.Alloc(int64(l.slots)*l.chunk, access)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("registering the window: %w", err)
	}
	descriptor, err := region.Export()
	if err != nil {
		return nil, 0, nil, errors.Join(err, region.Close())
	}
	r := exposed(l, region.Bytes())
	r.opened = append(r.opened, region)
	return r, region.Address(), descriptor, nil
}

// exposed arranges a host's memory around its window.
func exposed(l layout, window []byte) *reach {
	if l.sends {
		return &reach{slots: pump.NewSlots(window, l.chunk)}
	}
	r := &reach{}
	for range l.lanes {
		private := make([]byte, int64(l.buffers)*l.chunk)
		r.buffers = append(r.buffers, pump.NewSlots(private, l.chunk))
		r.engines = append(r.engines, pump.NewCopier(window, private, l.buffers, l.digest))
	}
	return r
}

// open implements memoryLayer.
func (d docaMemory) open(l layout, w negotiate.Window) (*reach, error) {
	r := &reach{}
	if err := d.openInto(r, l, w); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (d docaMemory) openInto(r *reach, l layout, w negotiate.Window) error {
	remote, err := d.device.Import(w.Descriptor, w.Address, int64(w.Length))
	if err != nil {
		return fmt.Errorf("importing the host's window: %w", err)
	}
	r.opened = append(r.opened, remote)
	if l.sends {
		return d.openSender(r, l, remote)
	}
	return d.openReceiver(r, l, remote)
}

// openSender gives all lanes one memory, since a slot is a slot of the window.
func (d docaMemory) openSender(r *reach, l layout, remote *doca.Remote) error {
	region, err := d.device.Alloc(int64(l.slots)*l.chunk, doca.LocalRead)
	if err != nil {
		return fmt.Errorf("registering buffers: %w", err)
	}
	r.opened = append(r.opened, region)
	r.slots = pump.NewSlots(region.Bytes(), l.chunk)
	for range l.lanes {
		if err := d.addEngine(r, (l.slots+l.lanes-1)/l.lanes, remote, region, true); err != nil {
			return err
		}
	}
	return nil
}

func (d docaMemory) openReceiver(r *reach, l layout, remote *doca.Remote) error {
	for range l.lanes {
		region, err := d.device.Alloc(int64(l.buffers)*l.chunk, doca.LocalWrite)
		if err != nil {
			return fmt.Errorf("registering buffers: %w", err)
		}
		r.opened = append(r.opened, region)
		r.buffers = append(r.buffers, pump.NewSlots(region.Bytes(), l.chunk))
		if err := d.addEngine(r, l.buffers, remote, region, false); err != nil {
			return err
		}
	}
	return nil
}

func (d docaMemory) addEngine(r *reach, depth int, remote *doca.Remote, region *doca.Region, sends bool) error {
	deepest, err := maxDepth(d.device)
	if err != nil {
		return err
	}
	engine, err := d.device.NewEngine(min(depth, deepest))
	if err != nil {
		return fmt.Errorf("starting a DMA engine: %w", err)
	}
	r.opened = append(r.opened, engine)
	r.engines = append(r.engines, newDMA(engine, remote, region, sends))
	return nil
}
