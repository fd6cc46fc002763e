package comch

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// pipeQueue is the number of messages that one direction of a pipe holds before Send waits: as many as a connection of
// a device holds unread.
const pipeQueue = 1024

// PipeEnd is one end of a connection within this process. It implements Conn.
type PipeEnd struct {
	in, out    *pipeDirection
	ended      context.Context // the connection, which both ends have
	end        context.CancelFunc
	closed     atomic.Bool // this end
	maxMessage int
}

var _ Conn = (*PipeEnd)(nil)

// pipeDirection has what one end has sent and the other has not received.
type pipeDirection struct {
	queue   chan []byte
	arrived chan struct{} // of Conn.Arrived

	mu      sync.Mutex
	waiting []waitingMessage // for space in the queue, in order
}

// waitingMessage is one whose Send waits. It is sent even if the context of that Send ends.
type waitingMessage struct {
	bytes  []byte
	queued chan struct{} // closed when the message is in the queue
}

// Pipe returns the two ends of a connection within this process, without a device, for messages of up to maxMessage
// bytes. Each direction holds up to 1024 messages that have not been received.
func Pipe(maxMessage int) (one, other *PipeEnd) {
	ended, end := context.WithCancel(context.Background())
	there, back := newPipeDirection(), newPipeDirection()
	newEnd := func(in, out *pipeDirection) *PipeEnd {
		return &PipeEnd{in: in, out: out, ended: ended, end: end, maxMessage: maxMessage}
	}
	return newEnd(back, there), newEnd(there, back)
}

func newPipeDirection() *pipeDirection {
	return &pipeDirection{queue: make(chan []byte, pipeQueue), arrived: make(chan struct{}, 1)}
}

// Send implements Conn.
func (e *PipeEnd) Send(ctx context.Context, message []byte) error {
	if len(message) < 1 || len(message) > e.maxMessage {
		return fmt.Errorf("message of %d bytes, not 1 to %d: %w", len(message), e.maxMessage, doca.CodeInvalidValue)
	}
	if err := e.whyEnded(); err != nil {
		return err
	}
	queued, wait := e.out.add(bytes.Clone(message))
	if !wait {
		return nil
	}
	select {
	case <-queued:
		return nil
	case <-e.ended.Done():
		return e.whyEnded()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add appends a message. If it has to wait, queued is closed when it is in the queue.
func (d *pipeDirection) add(message []byte) (queued <-chan struct{}, wait bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 && d.put(message) {
		return nil, false
	}
	added := waitingMessage{message, make(chan struct{})}
	d.waiting = append(d.waiting, added)
	return added.queued, true
}

// put appends a message to the queue if it has space.
func (d *pipeDirection) put(message []byte) bool {
	select {
	case d.queue <- message:
		d.announce()
		return true
	default:
		return false
	}
}

// refill moves waiting messages into the queue, which has space again, unless the connection has ended.
func (e *PipeEnd) refill() {
	if e.ended.Err() != nil {
		return
	}
	d := e.in
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.waiting) > 0 && d.put(d.waiting[0].bytes) {
		close(d.waiting[0].queued)
		d.waiting = d.waiting[1:]
	}
}

func (d *pipeDirection) announce() {
	select {
	case d.arrived <- struct{}{}:
	default:
	}
}

// Recv implements Conn.
func (e *PipeEnd) Recv(ctx context.Context) ([]byte, error) {
	if message, received := e.TryRecv(); received {
		return message, nil
	}
	select {
	case message := <-e.in.queue:
		e.refill()
		return message, nil
	case <-e.ended.Done():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if message, received := e.TryRecv(); received {
		return message, nil // it was sent before the end
	}
	return nil, e.whyEnded()
}

// whyEnded returns nil as long as the connection has not ended.
func (e *PipeEnd) whyEnded() error {
	switch {
	case e.closed.Load():
		return ErrClosed
	case e.ended.Err() != nil:
		return ErrPeerLost
	}
	return nil
}

// MaxMessage implements Conn.
func (e *PipeEnd) MaxMessage() int { return e.maxMessage }

// Done implements Conn.
func (e *PipeEnd) Done() <-chan struct{} { return e.ended.Done() }

// Close implements Conn.
func (e *PipeEnd) Close() error {
	e.closed.Store(true)
	e.end()
	return nil
}

// TryRecv implements Conn.
func (e *PipeEnd) TryRecv() (message []byte, received bool) {
	select {
	case message := <-e.in.queue:
		e.refill()
		return message, true
	default:
		return nil, false
	}
}

// Arrived implements Conn.
func (e *PipeEnd) Arrived() <-chan struct{} { return e.in.arrived }

// SpinLimit implements Conn. It is short, because another goroutine of this process is woken without a system call.
func (*PipeEnd) SpinLimit() int { return 2 }
