package doca

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Connection is one client connected to one server: ordered, reliable messages of bounded size. Send, Recv and Close may
// be called from different goroutines; messages that two goroutines receive at once are divided between them.
//
// Source: doca_comch_connection.
type Connection struct {
	endpoint   *endpoint
	handle     cabi.Connection
	maxMessage int
	closeFunc  func() error
	inbox      chan []byte
	arrived    chan struct{} // holds a token for Arrived
	pollers    atomic.Int32  // for whom nothing needs to be announced
	ended      chan struct{} // closed by the driver; cause is valid from then on
	cause      error
	peers      consumerList
}

func newConnection(e *endpoint, handle cabi.Connection) *Connection {
	return &Connection{
		endpoint: e, handle: handle, maxMessage: e.maxMessage,
		// A poll that began with room for one message may bring a batch.
		inbox:   make(chan []byte, e.inboxCap+4*pollBatch),
		arrived: make(chan struct{}, 1),
		ended:   make(chan struct{}),
		peers:   consumerList{changed: make(chan struct{})},
	}
}

// MaxMessage is the most bytes of one message. Implements: doca_comch_server_get_max_msg_size.
func (c *Connection) MaxMessage() int { return c.maxMessage }

// Done is closed when the connection has ended, whoever ended it.
func (c *Connection) Done() <-chan struct{} { return c.ended }

func (c *Connection) full() bool { return len(c.inbox) >= c.endpoint.inboxCap }

// deliver is called by the driver. The inbox has room for all that one poll can bring; a library that brings more loses the
// connection rather than a message.
func (c *Connection) deliver(message []byte) {
	select {
	case c.inbox <- message:
		if c.pollers.Load() == 0 {
			c.announce()
		}
	default:
		c.endpoint.disconnected(c.handle, fmt.Errorf("%w: more messages than the receive queue holds", ErrDisconnected))
	}
}

func (c *Connection) announce() {
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

func (c *Connection) end(cause error) {
	c.cause = cause
	close(c.ended)
	c.peers.clear()
}

// Send returns when the message is in the peer's queue, which is not to say that the peer has looked at it. 1 to
// MaxMessage bytes; the caller may reuse them afterwards. A full queue waits. When ctx ends first the message may or may
// not arrive. ErrDisconnected, ErrClosed. Implements: doca_comch_server_task_send_alloc_init, doca_task_submit.
func (c *Connection) Send(ctx context.Context, message []byte) error {
	if len(message) < 1 || len(message) > c.maxMessage {
		return fmt.Errorf("message of %d bytes, not 1 to %d: %w", len(message), c.maxMessage, CodeInvalidValue)
	}
	s := &send{connection: c, message: append([]byte(nil), message...), result: make(chan error, 1)}
	c.endpoint.do(func() { c.endpoint.enqueue(s) })
	select {
	case err := <-s.result: // as mostly: then nobody waits for ctx
		return err
	default:
	}
	select {
	case err := <-s.result:
		return err
	case <-c.endpoint.finished:
		return c.endpoint.await(s.result, c.cause) // all connections ended before run did
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Recv returns the next message. Messages that arrived before the connection ended are still received; then its cause:
// ErrDisconnected or ErrClosed.
func (c *Connection) Recv(ctx context.Context) ([]byte, error) {
	select {
	case message := <-c.inbox:
		c.endpoint.inboxDrained()
		return message, nil
	default:
	}
	select {
	case message := <-c.inbox:
		c.endpoint.inboxDrained()
		return message, nil
	case <-c.ended:
		return c.rest()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TryRecv is Recv without the wait, and looks for messages itself: so it has one sooner than this process would be woken for it. It is for
// who is at work anyway, or waits for something that is due in some microseconds. Implements: doca_pe_progress.
func (c *Connection) TryRecv() (message []byte, received bool) {
	if len(c.inbox) == 0 {
		c.endpoint.pollDevice()
	}
	select {
	case message := <-c.inbox:
		c.endpoint.inboxDrained()
		return message, true
	default:
		return nil, false
	}
}

// Arrived delivers a token when TryRecv may have a message. There is one token however many there are, and perhaps none for what came
// while there was a poller.
func (c *Connection) Arrived() <-chan struct{} { return c.arrived }

// StartPolling promises that the caller will call TryRecv again and again, until it calls StopPolling. As long as somebody does so every ten
// milliseconds, nobody is woken for a message. Safe for concurrent use.
func (c *Connection) StartPolling() {
	c.pollers.Add(1)
	c.endpoint.pollers.Add(1)
}

// StopPolling takes the promise back.
func (c *Connection) StopPolling() {
	if c.pollers.Add(-1) == 0 && len(c.inbox) > 0 {
		c.announce()
	}
	if c.endpoint.pollers.Add(-1) == 0 {
		c.endpoint.wake()
	}
}

func (c *Connection) rest() ([]byte, error) {
	select {
	case message := <-c.inbox:
		return message, nil
	default:
		return nil, c.cause
	}
}

// Close ends the connection; the peer is told. Closing twice is harmless. Its Consumers and Producers are closed first:
// CodeInUse. Implements: doca_comch_server_disconnect, or
// doca_ctx_stop for a client.
func (c *Connection) Close() error { return c.closeFunc() }

// disconnect is the server's way to hang up. DOCA may ask to be called again.
func (e *endpoint) disconnect(c *Connection) error {
	for deadline := time.Now().Add(drainTime); ; {
		err := e.call(func() error { return e.tryDisconnect(c) })
		if err == ErrClosed {
			return nil // all connections ended with the server
		}
		if !isAgain(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// reject is disconnect for the driver, which does not wait: a device that asks to be called again is, at the next poll.
// Until then the peer's messages are dropped, so that it cannot fill an inbox that has no reader.
func (e *endpoint) reject(c *Connection) {
	e.disconnected(c.handle, ErrClosed)
	e.rejected = append(e.rejected, c.handle)
	e.rejectAgain()
}

func (e *endpoint) rejectAgain() {
	e.rejected = slices.DeleteFunc(e.rejected, func(handle cabi.Connection) bool {
		return !isAgain(e.abi.ChannelDisconnect(e.channel, handle))
	})
}

// tryDisconnect ends the connection here as soon as DOCA has taken the call: most devices raise no event on the side
// that called, and the event of those that do finds a handle that is no longer known.
func (e *endpoint) tryDisconnect(c *Connection) error {
	if e.connections[c.handle] != c {
		return nil
	}
	if err := e.abi.ChannelDisconnect(e.channel, c.handle); err != nil {
		return err
	}
	e.disconnected(c.handle, ErrClosed)
	return nil
}
