package ucxpath

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// engine is the pump.Engine of a lane whose moves are operations of its worker: messages or reads. The worker
// progresses while the lane waits for them.
type engine struct {
	worker   *ucx.Worker
	start    func(pump.Move) error // an operation; it has the tag of the move
	inflight int                   // operations whose end was not reaped
	events   []ucx.Event           // reused
	broken   error                 // why no further operation can end well
}

var _ pump.Engine = (*engine)(nil)

func newEngine(w *ucx.Worker, start func(pump.Move) error) *engine {
	return &engine{worker: w, start: start, events: make([]ucx.Event, w.Depth())}
}

// Submit implements pump.Engine.
func (e *engine) Submit(moves []pump.Move) (int, error) {
	if e.broken != nil {
		return 0, e.broken
	}
	for i, m := range moves {
		if err := e.start(m); errors.Is(err, ucx.ErrQueueFull) {
			return i, nil
		} else if err != nil {
			return i, lost(err)
		}
		e.inflight++
	}
	return len(moves), nil
}

// Reap implements pump.Engine.
func (e *engine) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	for e.inflight > 0 {
		n, err := e.worker.Reap(ctx, e.events[:min(len(into), len(e.events))])
		if err != nil {
			return 0, err
		}
		if n = e.take(n, into); n > 0 {
			return n, nil
		}
	}
	return 0, nil
}

// Poll implements pump.Engine.
func (e *engine) Poll(into []pump.Moved) int {
	if e.inflight == 0 {
		return 0
	}
	return e.take(e.worker.Poll(e.events[:min(len(into), len(e.events))]), into)
}

// take returns the number of operations that have ended. After the failure of an endpoint its operations end with
// errors, too.
func (e *engine) take(events int, into []pump.Moved) (n int) {
	for _, event := range e.events[:events] {
		switch event.Kind {
		case ucx.Completed:
			into[n] = pump.Moved{Tag: int(event.Tag)}
			if event.Err != nil {
				into[n].Err = lost(event.Err)
			}
			n++
			e.inflight--
		case ucx.Failed:
			e.broken = lost(event.Err)
		}
	}
	return n
}

// Inflight implements pump.Engine.
func (e *engine) Inflight() int { return e.inflight }

// Close implements pump.Engine. The window closes the worker.
func (e *engine) Close() error { return nil }
