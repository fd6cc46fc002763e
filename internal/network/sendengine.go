package network

import (
	"context"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
)

// frame is the content of one slot on its way.
type frame struct {
	slot    uint32
	content []byte
	moved   pump.Moved        // reported when it has been sent
	to      chan<- pump.Moved // which has space for it
}

// writer sends frames to a data connection from a goroutine: a write waits until the peer takes it, which a lane must
// not do, since nothing could end its wait.
type writer struct {
	lane   *lane
	frames chan frame // which has space for those that are submitted
	ctx    context.Context
	stop   context.CancelFunc
	ended  sync.WaitGroup
	failed error // of the goroutine
}

// newWriter starts the writer for up to depth frames at a time.
func newWriter(l *lane, depth int) *writer {
	w := &writer{lane: l, frames: make(chan frame, depth)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.ended.Go(w.run)
	return w
}

func (w *writer) run() {
	for {
		select {
		case f := <-w.frames:
			w.send(f)
		case <-w.ctx.Done():
			return
		}
	}
}

// send sends a frame. After a failure of the connection it sends nothing.
func (w *writer) send(f frame) {
	if w.failed == nil {
		if err := w.write(f); err != nil {
			w.failed = lost(err)
		}
	}
	f.moved.Err = w.failed
	f.to <- f.moved
}

func (w *writer) write(f frame) (err error) {
	defer job.Recover(&err)
	return w.lane.writeFrame(f.slot, f.content)
}

// Close closes the connection, which ends a write, and returns when no memory is read any more.
func (w *writer) Close() error {
	w.stop()
	_ = w.lane.Close()
	w.ended.Wait()
	return nil
}

// sendEngine is the pump.Engine of a sender's lane: each move is a frame on the connection of its slot. The writers
// belong to all lanes, because the receiver may have another number of them.
type sendEngine struct {
	writers  []*writer
	slots    []byte
	chunk    int64
	inflight int
	sent     chan pump.Moved
}

var _ pump.Engine = (*sendEngine)(nil)

func newSendEngine(writers []*writer, slots []byte, l window.Layout) *sendEngine {
	return &sendEngine{writers: writers, slots: slots, chunk: l.Chunk, sent: make(chan pump.Moved, l.Depth)}
}

// Submit implements pump.Engine. A slot is in flight once at a time, so there is always space for all moves.
func (e *sendEngine) Submit(moves []pump.Move) (int, error) {
	for _, m := range moves {
		slot := int(m.Window / e.chunk)
		e.inflight++
		e.writers[slot%len(e.writers)].frames <- frame{
			slot: uint32(slot), content: e.slots[m.Buffer : m.Buffer+m.Length],
			moved: pump.Moved{Tag: m.Tag}, to: e.sent,
		}
	}
	return len(moves), nil
}

// Reap implements pump.Engine.
func (e *sendEngine) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	if e.inflight == 0 {
		return 0, nil
	}
	select {
	case into[0] = <-e.sent:
		e.inflight--
		return 1 + e.Poll(into[1:]), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// Poll implements pump.Engine.
func (e *sendEngine) Poll(into []pump.Moved) (n int) {
	for ; n < len(into); n++ {
		select {
		case into[n] = <-e.sent:
			e.inflight--
		default:
			return n
		}
	}
	return n
}

// Inflight implements pump.Engine.
func (e *sendEngine) Inflight() int { return e.inflight }

// Close implements pump.Engine. The writers read the memory, not the engine.
func (e *sendEngine) Close() error { return nil }
