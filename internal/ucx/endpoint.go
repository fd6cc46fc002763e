package ucx

import (
	"context"
	"fmt"
	"time"
	"unsafe"
)

// Bounds of a peer's input, in bytes. With UCX 1.13 an address has below 6 KiB with the most devices that it can have,
// and a key below 1 KiB with all transports of a machine.
const (
	MaxAddress = 16 << 10 // of a worker
	MaxKey     = 4 << 10  // of memory

	// padding is more than UCX reads of an address or key beyond what this package has checked: parts of a fixed
	// length, and the most that a part can claim to have.
	padding = 4 << 10
)

// errNotForcible is an endpoint over shared memory whose peer does nothing.
var errNotForcible = fmt.Errorf("endpoint over shared memory: %w", ErrStillRunning)

// closePause is the time between two looks at an endpoint that is being closed.
const closePause = 200 * time.Microsecond

// Endpoint is the connection of a Worker with a worker of a peer. It is used by the goroutine of its Worker.
type Endpoint struct {
	worker *Worker
	handle endpointHandle
	keys   []*RemoteKey
}

// RemoteKey gives access to memory of the peer, by one Endpoint.
type RemoteKey struct {
	endpoint *Endpoint
	handle   keyHandle
}

// Connect opens an endpoint to the worker with this address, which comes from an authenticated peer. It does not wait:
// that the peer cannot be reached is an event, Failed, with this tag. ErrInvalid: it is no address of version 1.
// Implements: ucp_ep_create.
func (w *Worker) Connect(address []byte, tag uint64) (*Endpoint, error) {
	if w.handle == nil {
		return nil, ErrClosed
	}
	own, err := w.Address()
	if err == nil {
		err = checkAddress(address, own)
	}
	if err != nil {
		return nil, err
	}
	handle, status := w.context.abi.endpointOpen(w.handle, padded(address), tag)
	if status != StatusOK {
		return nil, failed(w.context.abi, "ucp_ep_create", status)
	}
	e := &Endpoint{worker: w, handle: handle}
	w.endpoints = append(w.endpoints, e)
	return e, nil
}

// Transports returns what UCX has chosen for data, such as "rc_mlx5/mlx5_0:1" or "tcp/eth0", several with commas; ""
// if it does not say. Implements: ucp_ep_print_info.
func (e *Endpoint) Transports() string {
	if e.handle == nil {
		return ""
	}
	return parseTransports(e.worker.context.abi.endpointDescribe(e.handle))
}

// ImportKey unpacks a key of the peer's memory. ErrInvalid: it is malformed, or longer than MaxKey; an Error: UCX
// cannot use it. Implements: ucp_ep_rkey_unpack.
func (e *Endpoint) ImportKey(packed []byte) (*RemoteKey, error) {
	if e.handle == nil {
		return nil, ErrClosed
	}
	if err := checkKey(packed); err != nil {
		return nil, err
	}
	handle, status := e.worker.context.abi.endpointKey(e.handle, padded(packed))
	if status != StatusOK {
		return nil, failed(e.worker.context.abi, "ucp_ep_rkey_unpack", status)
	}
	key := &RemoteKey{endpoint: e, handle: handle}
	e.keys = append(e.keys, key)
	return key, nil
}

// Map returns length bytes, 1 to 2^46, at address of the peer's memory if the transport shares it with this process;
// nil if it does not, or the key is closed. They change whenever the peer writes there, must not be written, and stay
// until the Endpoint is closed. ErrInvalid: they are not within memory that a peer shares; UCX only adds to an address
// what the peer has said. Implements: ucp_rkey_ptr.
func (k *RemoteKey) Map(address uint64, length int64) ([]byte, error) {
	if k.handle == nil || length < 1 || length > memoryLimit {
		return nil, nil
	}
	mapped, status := k.endpoint.worker.context.abi.keyMap(k.handle, address)
	if status != StatusOK {
		return nil, nil
	}
	within, err := withinSharedMemory(uintptr(mapped), uintptr(length))
	if err != nil {
		return nil, fmt.Errorf("looking for the peer's memory: %w", err)
	}
	if !within {
		return nil, fmt.Errorf("%d bytes outside of the peer's memory: %w", length, ErrInvalid)
	}
	return unsafe.Slice((*byte)(mapped), length), nil
}

// Get reads length bytes at address of the peer into m at offset. Its end is an event, Completed, with this tag; until
// then m must be neither used nor closed. ErrQueueFull: reap first. Implements: ucp_get_nbx.
func (e *Endpoint) Get(m *Memory, offset, length int64, address uint64, key *RemoteKey, tag uint64) error {
	if e.handle == nil || key.handle == nil {
		return ErrClosed
	}
	t, err := m.transfer(offset, length, tag)
	if err != nil {
		return err
	}
	return e.posted("ucp_get_nbx", e.worker.context.abi.endpointGet(e.handle, t, address, key.handle))
}

// Send sends length bytes of m at offset to a slot of the peer's worker, with the token of its Slots. Its end is an
// event as for Get; it means that m may be used again and that the message arrives without progress of this Worker, not
// that it has arrived. Implements: ucp_am_send_nbx, ucp_ep_flush_nbx.
func (e *Endpoint) Send(token uint64, slot uint32, m *Memory, offset, length int64, tag uint64) error {
	if e.handle == nil {
		return ErrClosed
	}
	t, err := m.transfer(offset, length, tag)
	if err != nil {
		return err
	}
	return e.posted("ucp_am_send_nbx", e.worker.context.abi.endpointSend(e.handle, t, token, slot))
}

func (e *Endpoint) posted(op string, status Status) error {
	if status == statusQueueFull {
		return ErrQueueFull
	}
	return failed(e.worker.context.abi, op, status)
}

// Close closes the endpoint: what is in flight is flushed until ctx ends, and then forced to end, with errors. Events
// stay available to Poll. ErrStillRunning if operations do not end within 10 s of that, or if the transport cannot be
// forced (shared memory): then closing the Worker ends them. Implements: ucp_ep_close_nbx.
func (e *Endpoint) Close(ctx context.Context) error {
	if e.handle == nil {
		return nil
	}
	_ = e.worker.context.abi.endpointClose(e.handle, false) // begins, which cannot fail
	if !e.awaitClosed(ctx) {
		if err := e.force(ctx); err != nil {
			return err
		}
	}
	e.closeKeys()
	e.handle = nil
	return nil
}

func (e *Endpoint) force(ctx context.Context) error {
	if e.worker.context.abi.endpointClose(e.handle, true) != StatusOK {
		return errNotForcible
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if !e.awaitClosed(limit) {
		return fmt.Errorf("endpoint: %w", ErrStillRunning)
	}
	return nil
}

func (e *Endpoint) closeKeys() {
	for _, key := range e.keys {
		key.close()
	}
}

// awaitClosed progresses the worker until the endpoint is closed, or ctx ends. Events stay in C.
func (e *Endpoint) awaitClosed(ctx context.Context) bool {
	a := e.worker.context.abi
	for {
		a.workerPoll(e.worker.handle, nil)
		if a.endpointClosed(e.handle) || ctx.Err() != nil {
			return a.endpointClosed(e.handle)
		}
		time.Sleep(closePause)
	}
}

func (k *RemoteKey) close() {
	if k.handle != nil {
		k.endpoint.worker.context.abi.keyClose(k.handle)
		k.handle = nil
	}
}
