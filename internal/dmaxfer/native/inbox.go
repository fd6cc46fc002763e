package native

import (
	"context"
	"sync"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// inbox is where the messages of the peer arrive.
type inbox interface {
	comch.Polling

	// Recv returns the next message, like that of a comch.Conn.
	Recv(ctx context.Context) ([]byte, error)

	// close ends the use of the inbox, and returns a message that has not been taken.
	close() []byte
}

// newInbox returns the inbox of a connection, which need not be able to poll.
func newInbox(conn comch.Conn) inbox {
	if polling, is := conn.(comch.Polling); is {
		return polledInbox{polling, conn}
	}
	return newReceivedInbox(conn)
}

// polledInbox is that of a connection that can poll.
type polledInbox struct {
	comch.Polling
	conn comch.Conn
}

func (p polledInbox) Recv(ctx context.Context) ([]byte, error) { return p.conn.Recv(ctx) }
func (polledInbox) close() []byte                              { return nil }

// receivedInbox is that of a connection that can only wait: a goroutine receives one message ahead.
type receivedInbox struct {
	stop    context.CancelFunc
	stopped chan struct{}
	arrived chan struct{} // a message, or the end, has arrived
	taken   chan struct{} // the message has been taken

	mu   sync.Mutex
	next []byte
	err  error // why there is no message any more
}

func newReceivedInbox(conn comch.Conn) *receivedInbox {
	ctx, stop := context.WithCancel(context.Background())
	r := &receivedInbox{
		stop: stop, stopped: make(chan struct{}), arrived: make(chan struct{}, 1), taken: make(chan struct{}, 1),
	}
	go r.receive(ctx, conn)
	return r
}

func (r *receivedInbox) receive(ctx context.Context, conn comch.Conn) {
	defer close(r.stopped)
	recv := func() (message []byte, err error) {
		defer job.Recover(&err)
		return conn.Recv(ctx)
	}
	for {
		message, err := recv()
		r.mu.Lock()
		r.next, r.err = message, err
		r.mu.Unlock()
		select {
		case r.arrived <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
		select {
		case <-r.taken:
		case <-ctx.Done():
			return
		}
	}
}

// TryRecv implements comch.Polling.
func (r *receivedInbox) TryRecv() (message []byte, received bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.next == nil {
		return nil, false
	}
	message, r.next = r.next, nil
	r.taken <- struct{}{}
	return message, true
}

// Recv implements inbox.
func (r *receivedInbox) Recv(ctx context.Context) ([]byte, error) {
	for {
		if message, received := r.TryRecv(); received {
			return message, nil
		}
		r.mu.Lock()
		err := r.err
		r.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-r.arrived:
		case <-r.stopped:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Arrived implements comch.Polling.
func (r *receivedInbox) Arrived() <-chan struct{} { return r.arrived }

// StartPolling implements comch.Polling. What arrives is announced nevertheless.
func (*receivedInbox) StartPolling() {}

// StopPolling implements comch.Polling.
func (*receivedInbox) StopPolling() {}

// Patience implements comch.Polling. Messages arrive without being looked for, so polling gains nothing.
func (*receivedInbox) Patience() int { return 0 }

func (r *receivedInbox) close() []byte {
	r.stop()
	<-r.stopped
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}
