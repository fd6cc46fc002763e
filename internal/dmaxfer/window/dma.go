package window

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// dma is the pump.Engine of a DPU: a DOCA engine between the host's window and this side's buffers.
type dma struct {
	*doca.Engine
	window, buffers doca.Memory
	sends           bool // from the buffers to the window
	copies          []doca.Copy
	ranges          []doca.Range // of copies
	completions     []doca.Completion
}

var _ pump.Gatherer = (*dma)(nil)

func newDMA(engine *doca.Engine, window, buffers doca.Memory, sends bool) *dma {
	return &dma{
		Engine: engine, window: window, buffers: buffers, sends: sends,
		copies: make([]doca.Copy, 0, engine.Depth()), completions: make([]doca.Completion, engine.Depth()),
	}
}

// Submit implements pump.Engine.
func (d *dma) Submit(moves []pump.Move) (int, error) {
	d.copies, d.ranges = d.copies[:0], d.ranges[:0]
	for _, m := range moves[:min(len(moves), d.Depth())] {
		d.copies = append(d.copies, d.copyOf(m))
	}
	taken, err := d.Engine.Submit(d.copies)
	if errors.Is(err, doca.ErrQueueFull) {
		err = nil
	}
	return taken, err
}

// copyOf returns the copy of a move, which is valid until the next Submit.
func (d *dma) copyOf(m pump.Move) doca.Copy {
	if d.sends {
		return doca.Copy{
			Source: d.buffers, SourceOffset: m.Buffer, Target: d.window, TargetOffset: m.Window,
			Length: m.Length, Tag: uint64(m.Tag),
		}
	}
	first := len(d.ranges)
	for _, r := range m.More {
		d.ranges = append(d.ranges, doca.Range{Offset: r.Offset, Length: r.Length})
	}
	return doca.Copy{
		Source: d.window, SourceOffset: m.Window, Target: d.buffers, TargetOffset: m.Buffer,
		Length: m.Length, Tag: uint64(m.Tag), More: d.ranges[first:],
	}
}

// Reap implements pump.Engine.
func (d *dma) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	n, err := d.Engine.Reap(ctx, d.completions[:min(len(into), len(d.completions))])
	return d.take(n, into), err
}

// Poll implements pump.Engine.
func (d *dma) Poll(into []pump.Moved) int {
	if d.Inflight() == 0 {
		return 0
	}
	return d.take(d.Engine.Poll(d.completions[:min(len(into), len(d.completions))]), into)
}

func (d *dma) take(n int, into []pump.Moved) int {
	for i, c := range d.completions[:n] {
		into[i] = pump.Moved{Tag: int(c.Tag), Err: c.Err}
	}
	return n
}
