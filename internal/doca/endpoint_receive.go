package doca

import (
	"context"
	"fmt"
	"time"
)

// inbox holds the messages of a connection that were not read. run adds them, and any goroutine takes them.
type inbox struct {
	messages chan []byte
	arrived  chan struct{} // holds a token for Arrived
	limit    int           // messages from which on the inbox is full; run's
}

// newInbox has space for more than its limit: a poll that began with space for one message may bring a batch, and a
// progress DOCA's queue. A server with several clients grants less to one to which nothing was sent yet, because the
// program knows nothing about it.
func newInbox(config ChannelConfig) inbox {
	limit := config.unread
	if config.Clients > 0 {
		limit = min(unreadBeforeAnswer, limit)
	}
	space := config.unread + pollBatch + config.ReceiveQueue
	return inbox{messages: make(chan []byte, space), arrived: make(chan struct{}, 1), limit: limit}
}

func (i *inbox) full() bool { return len(i.messages) >= i.limit }

// add reports false if there is no space for the message.
func (i *inbox) add(message []byte) bool {
	select {
	case i.messages <- message:
	default:
		return false
	}
	select {
	case i.arrived <- struct{}{}:
	default:
	}
	return true
}

// deliver returns the error that ends the connection, rather than lose a message, if there are more than it may hold.
func (e *endpoint) deliver(c *Connection, message []byte) error {
	if e.config.Clients > 0 && c.inbox.full() || !c.inbox.add(message) {
		const reason = "%w: the peer sent more than %d messages that were not read"
		return fmt.Errorf(reason, ErrDisconnected, c.inbox.limit)
	}
	return nil
}

// inboxFull reports whether DOCA must not be polled. Several clients would all wait for the reader of one, so those are
// not held back, see deliver.
func (e *endpoint) inboxFull() bool {
	if e.life.state != active || e.config.Clients > 0 {
		return false
	}
	for _, c := range e.connections.open {
		if c.inbox.full() {
			return true
		}
	}
	return false
}

// awaitReader sleeps until a reader has emptied an inbox, and reports whether one is full. Only a command can change
// anything then, so DOCA is not armed. It announces the sleep before it looks, and readers look for the announcement
// after they have taken a message, so that one of them sees the other.
func (e *endpoint) awaitReader() (full bool, err error) {
	e.stalled.Store(true)
	defer e.stalled.Store(false)
	if !e.inboxFull() {
		return false, nil
	}
	return true, e.sleepUntil(time.Time{})
}

// taken is called by readers after each message.
func (c *Connection) taken(message []byte) []byte {
	if c.endpoint.stalled.Load() {
		c.endpoint.commands.wake()
	}
	return message
}

// Recv returns the next message. Messages that arrived before the connection ended are still received; then Recv
// returns its cause: ErrDisconnected or ErrClosed.
func (c *Connection) Recv(ctx context.Context) ([]byte, error) {
	if message, received := c.take(); received {
		return message, nil
	}
	select {
	case message := <-c.inbox.messages:
		return c.taken(message), nil
	case <-c.ended:
		if message, received := c.take(); received {
			return message, nil
		}
		return nil, c.cause
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TryRecv returns the next message without waiting, and polls the device for it, which is faster than a wakeup. It is
// for callers that are busy anyway, or expect a message within microseconds. Implements: doca_pe_progress.
func (c *Connection) TryRecv() (message []byte, received bool) {
	if len(c.inbox.messages) == 0 {
		c.endpoint.pollers.try(c.endpoint.poll)
	}
	return c.take()
}

// take returns the next message that has arrived.
func (c *Connection) take() (message []byte, received bool) {
	select {
	case message = <-c.inbox.messages:
		return c.taken(message), true
	default:
		return nil, false
	}
}

// Arrived returns a channel that delivers a token when TryRecv may have a message: one token for any number of
// messages.
func (c *Connection) Arrived() <-chan struct{} { return c.inbox.arrived }
