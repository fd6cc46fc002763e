package ucx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// Kind is what an Event reports.
type Kind uint32

// Kinds of events.
const (
	// Completed: the operation with this Tag has ended, see Err. Its memory may be used again.
	Completed Kind = iota + 1

	// Arrived: a message of Length bytes is in the slot whose number is Tag, which is occupied until Post. Err: the
	// slot's content is not valid.
	Arrived

	// Failed: the endpoint that was connected with this Tag cannot be used any more, see Err. Its operations complete
	// with errors.
	Failed

	// Refused: a message of the peer was dropped, because its header, slot or length is invalid or its slot is not
	// vacant; Err says which. All further messages are dropped without an event.
	Refused
)

// Event is something that has happened on a Worker.
type Event struct {
	Kind   Kind
	Tag    uint64
	Length int64
	Err    error
}

// Worker has its own connections, and is progressed only by the calls to it: by the lane that waits in Reap, or on a
// side that only serves its peer by a goroutine that calls Reap for this. It is used by one goroutine at a time, except
// for Post.
//
// Its states:
//
//	open ── Close ──► closing: endpoints flush until ctx ends, then they are forced ──┬─ all operations ended ──► closed
//	                     ▲                                                            │
//	                     └── Close ───── ErrStillRunning, after closeLimit ◄──────────┘
type Worker struct {
	context   *Context
	handle    workerHandle
	parker    *parker
	endpoints []*Endpoint
	depth     int
	slots     Slots
	raw       []event // of one poll
	taken     []event // of raw, those that nobody has asked for yet

	mu     sync.Mutex // of interrupt and Close
	closed bool
}

const (
	// maxDepth is the maximum number of operations in flight of one worker, and maxSlots of its slots.
	maxDepth = 1 << 16
	maxSlots = 1 << 16

	// eventBatch is the maximum number of events of one poll.
	eventBatch = 64

	// spinTime is how long a worker is polled in vain before its owner sleeps, and spinPolls how often between two
	// looks at the clock.
	spinTime  = 25 * time.Microsecond
	spinPolls = 8

	// closeLimit is how long Close waits for operations after it has forced their end.
	closeLimit = 10 * time.Second
)

// UCX's memory for a worker whose endpoints are in use, in bytes: pools of buffers, and over shared memory a queue.
// The buffers of an RDMA device are registered.
const (
	WorkerMemory     = 3 << 20
	WorkerMemoryRDMA = 80 << 20
)

// NewWorker opens a worker for up to depth operations in flight, 1 to 65536. From now on UCX listens on ports of its
// devices. Implements: ucp_worker_create.
func (c *Context) NewWorker(depth int) (*Worker, error) {
	if depth < 1 || depth > maxDepth {
		return nil, fmt.Errorf("worker for %d operations in flight: %w", depth, ErrInvalid)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == nil {
		return nil, ErrClosed
	}
	handle, status := c.abi.workerOpen(c.handle, depth)
	if status != StatusOK {
		return nil, failed(c.abi, "ucp_worker_create", status)
	}
	parker, err := newParker(c.abi.workerDescriptor(handle))
	if err != nil {
		_ = c.abi.workerClose(handle)
		return nil, err
	}
	return &Worker{context: c, handle: handle, parker: parker, depth: depth, raw: make([]event, eventBatch)}, nil
}

// Address returns the address by which a peer connects to this worker. Implements: ucp_worker_query.
func (w *Worker) Address() ([]byte, error) {
	if w.handle == nil {
		return nil, ErrClosed
	}
	address, status := w.context.abi.workerAddress(w.handle)
	return address, failed(w.context.abi, "ucp_worker_query", status)
}

// Depth returns the maximum number of operations in flight.
func (w *Worker) Depth() int { return w.depth }

// Inflight returns the number of operations that were posted and whose completion was not reaped; 0 after Close.
func (w *Worker) Inflight() int {
	if w.handle == nil {
		return 0
	}
	inflight := w.context.abi.workerInflight(w.handle)
	for _, e := range w.taken {
		if Kind(e.kind) == Completed {
			inflight++
		}
	}
	return inflight
}

// Poll makes progress and returns the available events, up to len(into), without waiting. Implements:
// ucp_worker_progress.
func (w *Worker) Poll(into []Event) int {
	if w.handle == nil {
		return 0
	}
	if len(w.taken) == 0 {
		w.take()
	}
	n := min(len(into), len(w.taken))
	for i, e := range w.taken[:n] {
		into[i] = Event{Kind: Kind(e.kind), Tag: e.tag, Length: int64(e.length), Err: w.eventError(e)}
	}
	w.taken = w.taken[n:]
	return n
}

// take makes progress and returns the number of new events. There must be none taken.
func (w *Worker) take() int {
	w.taken = w.raw[:w.context.abi.workerPoll(w.handle, w.raw)]
	return len(w.taken)
}

// eventError returns the error of an event without an allocation if there is none.
func (w *Worker) eventError(e event) error {
	if e.status == int32(StatusOK) {
		return nil
	}
	if Kind(e.kind) == Refused {
		return refusal(e)
	}
	return failed(w.context.abi, operations[Kind(e.kind)], Status(e.status))
}

// Reap waits for at least one event and returns as many as there are, up to len(into), which is at least 1. If ctx ends
// first it returns its cause. Implements: ucp_worker_progress, ucp_worker_arm, ucp_worker_signal.
func (w *Worker) Reap(ctx context.Context, into []Event) (int, error) {
	for {
		if n := w.spin(into); n > 0 {
			return n, nil
		}
		if w.handle == nil {
			return 0, ErrClosed
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err := w.park(ctx); err != nil {
			return 0, err
		}
	}
}

// spin polls until there is an event, or spinTime has passed.
func (w *Worker) spin(into []Event) int {
	for start := (time.Time{}); ; {
		for range spinPolls {
			if n := w.Poll(into); n > 0 {
				return n
			}
		}
		if now := time.Now(); start.IsZero() {
			start = now
		} else if now.Sub(start) > spinTime {
			return 0
		}
	}
}

// Slots are the places in memory where active messages are written: slot First+i*Step has Size bytes at i*Size.
type Slots struct {
	Memory             *Memory // with LocalWrite
	Size               int64   // bytes of a slot, at least 1
	First, Step, Count uint32  // Count up to 65536
	Token              uint64  // that messages must have: a random number only known to the peer
}

// Receive sets the slots of this worker, all of them vacant. It is called once, before the address is given to a peer.
// Implements: ucp_worker_set_am_recv_handler.
func (w *Worker) Receive(s Slots) error {
	if w.handle == nil {
		return ErrClosed
	}
	if s.Size < 1 || s.Step < 1 || s.Count < 1 || s.Count > maxSlots || s.Size > memoryLimit/int64(s.Count) ||
		uint64(s.First)+uint64(s.Count-1)*uint64(s.Step) > math.MaxUint32 || w.slots.Count > 0 {
		return fmt.Errorf("%d slots of %d bytes: %w", s.Count, s.Size, ErrInvalid)
	}
	area, err := s.Memory.transfer(0, s.Size*int64(s.Count), 0)
	if err != nil {
		return err
	}
	status := w.context.abi.workerReceive(w.handle, slots{
		memory: area.memory, address: area.address, size: uint64(s.Size), token: s.Token,
		first: s.First, step: s.Step, count: s.Count,
	})
	if status != StatusOK {
		return failed(w.context.abi, "ucp_worker_set_am_recv_handler", status)
	}
	w.slots = s
	return nil
}

// Post makes a slot vacant again, after its Arrived event. It may be called while another goroutine polls or reaps, but
// not while that closes the worker.
func (w *Worker) Post(slot uint32) error {
	if w.handle == nil {
		return ErrClosed
	}
	if w.context.abi.workerPost(w.handle, slot) != StatusOK {
		return fmt.Errorf("slot %d has no message: %w", slot, ErrInvalid)
	}
	return nil
}

// Close closes the endpoints as Endpoint.Close does, one after the other, and frees the worker, which ends what cannot
// be forced. ErrStillRunning if an operation does not end within 10 s of its forced end; then nothing is freed.
// Implements: ucp_worker_destroy.
func (w *Worker) Close(ctx context.Context) error {
	if w.handle == nil {
		return nil
	}
	for _, e := range w.endpoints {
		if err := e.Close(ctx); err != nil && !errors.Is(err, errNotForcible) {
			return err
		}
	}
	for _, e := range w.endpoints {
		e.closeKeys()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if status := w.context.abi.workerClose(w.handle); status != StatusOK {
		return fmt.Errorf("worker with %d operations: %w", w.Inflight(), ErrStillRunning)
	}
	for _, e := range w.endpoints {
		e.handle = nil
	}
	w.handle, w.taken, w.closed = nil, nil, true
	return w.parker.file.Close()
}
