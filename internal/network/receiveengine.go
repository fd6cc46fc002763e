package network

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// receiveEngine is the pump.Engine and pump.InPlace of a receiver's lane. A goroutine reads the frames of the lane's
// connection, each into the memory of its slot, where the lane then uses it: that memory is private to this process,
// and nothing else writes to it. Until the lane has released it, another frame for the slot breaks the protocol.
type receiveEngine struct {
	*window.SlotMatcher // used by the lane

	plain       bool // the frames are outside of TLS
	chunk       int64
	depth       int // slots of the window
	lane, lanes int
	received    []byte        // the memory of the lane's slots
	occupied    []atomic.Bool // by slot of the lane, from the header of a frame or Occupy until Release

	frames chan received // in received; there is space for one of each slot
	failed chan struct{} // closed by the reader when it has ended, for the reason err
	err    error
	cancel context.CancelFunc
	reader sync.WaitGroup

	arrived    atomic.Int64 // bytes of content, also of an incomplete frame
	encrypted  atomic.Int64 // bytes that the peer has encrypted with the keys of the connection
	renewAfter int64        // Settings.RenewAfter

	broken error // why no further move can end; of the lane
}

// received is a frame that is in the memory of its slot.
type received struct {
	slot    uint32
	content []byte
}

var (
	_ pump.Engine  = (*receiveEngine)(nil)
	_ pump.InPlace = (*receiveEngine)(nil)
)

// newReceiveEngine returns the engine of a lane with the memory of its slots. start must be called.
func newReceiveEngine(l window.Layout, lane int, memory []byte, s *Settings) *receiveEngine {
	slots := l.LaneSlots(lane)
	e := &receiveEngine{
		renewAfter: cmp.Or(s.RenewAfter, renewAfter),
		plain:      l.Path == wire.PathTCP,
		chunk:      l.Chunk, depth: l.Depth, lane: lane, lanes: l.Lanes,
		received: memory, occupied: make([]atomic.Bool, slots),
		frames: make(chan received, slots), failed: make(chan struct{}),
	}
	e.SlotMatcher = window.NewSlotMatcher(nil, l, lane, nil)
	return e
}

// Occupy implements pump.InPlace.
func (e *receiveEngine) Occupy(buffer int) error {
	if !e.occupied[buffer].CompareAndSwap(false, true) {
		return e.Violation("content of slot %d, which the record claims to be in the target", buffer*e.lanes+e.lane)
	}
	return nil
}

// Release implements pump.InPlace.
func (e *receiveEngine) Release(buffer int) { e.occupied[buffer].Store(false) }

// start starts the reader, which first waits for its connection.
func (e *receiveEngine) start(await func(context.Context) (*lane, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	e.reader.Go(func() {
		defer close(e.failed)
		e.err = e.awaitAndRead(ctx, await)
	})
}

func (e *receiveEngine) awaitAndRead(ctx context.Context, await func(context.Context) (*lane, error)) (err error) {
	defer job.Recover(&err)
	connected, err := await(ctx)
	if err != nil {
		return err
	}
	if e.plain {
		connected.leaveTLS()
	}
	stop := context.AfterFunc(ctx, func() { _ = connected.Close() })
	defer func() {
		if stop() {
			_ = connected.Close()
		}
	}()
	return e.read(connected)
}

// hasEnded reports whether nothing more can arrive, or the connection is to be replaced before the next transfer.
func (e *receiveEngine) hasEnded() bool {
	select {
	case <-e.failed:
		return true
	default:
		return !e.plain && e.encrypted.Load() > e.renewAfter
	}
}

// read receives frames until the connection ends.
func (e *receiveEngine) read(from *lane) error {
	for {
		slot, content, err := from.readFrame(e.place, &e.arrived)
		if err != nil {
			return err
		}
		e.encrypted.Add(frameOverhead + int64(len(content)))
		e.frames <- received{slot, content}
	}
}

// place checks the header of a frame, and returns where its content belongs.
func (e *receiveEngine) place(slot, length uint32) ([]byte, error) {
	switch {
	case slot >= uint32(e.depth) || int(slot)%e.lanes != e.lane:
		return nil, e.Violation("slot %d is not one of lane %d", slot, e.lane)
	case length == 0 || int64(length) > e.chunk:
		return nil, e.Violation("%d bytes for a slot of %d", length, e.chunk)
	}
	own := int(slot) / e.lanes
	if !e.occupied[own].CompareAndSwap(false, true) {
		return nil, e.Violation("slot %d twice", slot)
	}
	start := int64(own) * e.chunk
	return e.received[start : start+int64(length)], nil
}

// Submit implements pump.Engine.
func (e *receiveEngine) Submit(moves []pump.Move) (int, error) {
	if err := e.SlotMatcher.Submit(moves); err != nil {
		return 0, err
	}
	return len(moves), e.broken
}

// arrive takes a frame. The first error is kept.
func (e *receiveEngine) arrive(r received) {
	err := e.Arrive(r.slot, r.content, 0)
	if err != nil && e.broken == nil {
		e.broken = err
	}
}

// collect takes the frames that have arrived.
func (e *receiveEngine) collect() {
	for {
		select {
		case r := <-e.frames:
			e.arrive(r)
		default:
			return
		}
	}
}

// Reap implements pump.Engine.
func (e *receiveEngine) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	for e.Waits() {
		if e.broken != nil {
			return 0, e.broken
		}
		select {
		case r := <-e.frames:
			e.arrive(r)
		case <-e.failed:
			e.collect() // what arrived before
			if e.broken == nil {
				e.broken = e.err
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return e.Poll(into), nil
}

// Poll implements pump.Engine. An error is reported by Submit or Reap.
func (e *receiveEngine) Poll(into []pump.Moved) int {
	e.collect()
	return e.Take(into)
}

// Close implements pump.Engine. It closes the connection, and returns when nothing more is received.
func (e *receiveEngine) Close() error {
	e.cancel()
	e.reader.Wait()
	return nil
}
