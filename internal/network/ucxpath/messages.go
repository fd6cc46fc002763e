package ucxpath

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// exposeSlots makes the window of a receiver on am: for each lane a worker, and memory for the messages of its slots.
func exposeSlots(b *builder) error {
	token := make([]byte, native.TokenSize)
	_, _ = rand.Read(token) // which does not fail
	described := native.Workers{Key: token}
	for lane := range b.layout.Lanes {
		address, err := b.addReceiver(lane, binary.BigEndian.Uint64(token))
		if err != nil {
			return err
		}
		described.Addresses = append(described.Addresses, address)
	}
	b.window.Descriptor = native.AppendWorkers(nil, described)
	return nil
}

// addReceiver adds the worker of a lane, and returns its address.
func (b *builder) addReceiver(lane int, token uint64) ([]byte, error) {
	l := b.layout
	slots := l.LaneSlots(lane)
	memory, err := b.alloc(int64(slots)*l.Chunk, ucx.LocalWrite)
	if err != nil {
		return nil, err
	}
	worker, err := b.worker(1)
	if err != nil {
		return nil, err
	}
	err = worker.Receive(ucx.Slots{
		Memory: memory, Size: l.Chunk, First: uint32(lane), Step: uint32(l.Lanes), Count: uint32(slots), Token: token,
	})
	if err != nil {
		return nil, fmt.Errorf("receiving messages: %w", err)
	}
	private := make([]byte, int64(l.Buffers)*l.Chunk)
	receives := newReceiver(worker, memory.Bytes(), private, l, lane)
	b.window.Buffers = append(b.window.Buffers, pump.NewSlots(private, l.Chunk))
	b.window.Engines = append(b.window.Engines, receives)
	address, err := worker.Address()
	if err == nil {
		b.progress(worker, receives.add, receives.fail)
	}
	return address, err
}

// receiver is the pump.Engine of a receiver's lane on am. Another goroutine progresses the worker, because the sender's
// messages need that while the lane does something else.
type receiver struct {
	worker  *ucx.Worker // for Post only
	arrived []byte      // the memory of the slots
	chunk   int64
	lane    int
	lanes   int
	matcher *window.SlotMatcher

	events chan ucx.Event // a slot is in it once at most, and an event of a message that was refused
	failed chan error     // why there are no more events; once
	broken error          // why no further move can end
}

var _ pump.Engine = (*receiver)(nil)

func newReceiver(w *ucx.Worker, arrived, private []byte, l window.Layout, lane int) *receiver {
	r := &receiver{
		worker: w, arrived: arrived, chunk: l.Chunk, lane: lane, lanes: l.Lanes,
		events: make(chan ucx.Event, l.LaneSlots(lane)+1), failed: make(chan error, 1),
	}
	r.matcher = window.NewSlotMatcher(private, l, lane, r.free)
	return r
}

// add passes on an event of the worker. The goroutine that progresses it calls it.
func (r *receiver) add(e ucx.Event) {
	if e.Kind == ucx.Arrived || e.Kind == ucx.Refused {
		r.events <- e
	}
}

// fail says that there are no more events.
func (r *receiver) fail(err error) { r.failed <- err }

// free lets the peer use a slot again.
func (r *receiver) free(slot int64) error { return r.worker.Post(uint32(slot)) }

// Submit implements pump.Engine.
func (r *receiver) Submit(moves []pump.Move) (int, error) {
	if err := r.matcher.Submit(moves); err != nil {
		return 0, err
	}
	return len(moves), r.broken
}

// take handles an event. The first error is kept.
func (r *receiver) take(e ucx.Event) {
	if err := r.arrive(e); err != nil && r.broken == nil {
		r.broken = err
	}
}

func (r *receiver) arrive(e ucx.Event) error {
	switch {
	case e.Kind == ucx.Refused:
		return r.matcher.Violation("%v", e.Err)
	case e.Err != nil:
		return lost(e.Err)
	}
	start := int64(int(e.Tag)/r.lanes) * r.chunk
	return r.matcher.Arrive(uint32(e.Tag), r.arrived[start:start+e.Length], int64(e.Tag))
}

// Reap implements pump.Engine.
func (r *receiver) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	for r.matcher.Waits() {
		if r.broken != nil {
			return 0, r.broken
		}
		select {
		case e := <-r.events:
			r.take(e)
		case err := <-r.failed:
			r.broken = lost(err)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return r.Poll(into), nil
}

// Poll implements pump.Engine. An error is reported by Submit or Reap.
func (r *receiver) Poll(into []pump.Moved) int {
	for r.matcher.Waits() && len(r.events) > 0 {
		r.take(<-r.events)
	}
	return r.matcher.Take(into)
}

// Inflight implements pump.Engine.
func (r *receiver) Inflight() int { return r.matcher.Inflight() }

// Close implements pump.Engine. The window closes the worker.
func (r *receiver) Close() error { return nil }

// openSlots opens the window of a receiver for a sender on am.
func (b *builder) openSlots(to native.Workers) error {
	l := b.layout
	memory, err := b.alloc(l.Length(), ucx.LocalRead)
	if err != nil {
		return err
	}
	b.window.Slots = pump.NewSlots(memory.Bytes(), l.Chunk)
	token := binary.BigEndian.Uint64(to.Key)
	for lane := range l.Lanes {
		worker, err := b.worker((l.Depth + l.Lanes - 1) / l.Lanes)
		if err != nil {
			return err
		}
		endpoints, err := b.connectLane(worker, lane, to.Addresses)
		if err != nil {
			return err
		}
		b.window.Engines = append(b.window.Engines, newEngine(worker, func(m pump.Move) error {
			slot := int(m.Window / l.Chunk)
			return endpoints[slot%len(endpoints)].Send(token, uint32(slot), memory, m.Buffer, m.Length, uint64(m.Tag))
		}))
	}
	return nil
}

// connectLane connects a lane of a sender to the workers of its slots, which may be all or one of them. The endpoints
// are in the order of the addresses.
func (b *builder) connectLane(w *ucx.Worker, lane int, addresses [][]byte) ([]*ucx.Endpoint, error) {
	endpoints := make([]*ucx.Endpoint, len(addresses))
	for slot := lane; slot < b.layout.Depth; slot += b.layout.Lanes {
		number := slot % len(addresses)
		if endpoints[number] != nil {
			continue
		}
		endpoint, err := w.Connect(addresses[number], uint64(number))
		if err != nil {
			return nil, unreachable(err)
		}
		endpoints[number], b.window.Transport = endpoint, endpoint.Transports()
	}
	return endpoints, nil
}
