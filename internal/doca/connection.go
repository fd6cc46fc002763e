package doca

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Connection is one client connected to one server: ordered, reliable messages of bounded size. Send, Recv and Close
// may be called from different goroutines; messages that two goroutines receive at once are divided between them.
//
// Its states:
//
//	open ──┬─ the peer left or died, or its endpoint failed ──► ended, cause is ErrDisconnected or the failure
//	       └─ Close, here or of its Server or Client ─────────► ended, cause is ErrClosed
//
// Once ended, what is in the inbox is still received; sends in flight fail with the cause. A connection does not
// reopen.
//
// Source: doca_comch_connection.
type Connection struct {
	endpoint   *endpoint
	handle     cabi.Connection
	maxMessage int
	closeFunc  func() error
	inbox      chan []byte
	arrived    chan struct{} // holds a token for Arrived
	ofServer   bool          // the driver may end it alone
	ended      chan struct{} // closed by the driver; cause is valid from then on
	cause      error
	peers      consumerList

	// What follows is the driver's.
	waiting  []*send // not yet accepted by DOCA, in order
	inFlight int
	sentAny  bool // this side has sent something, or tried to
}

func newConnection(e *endpoint, handle cabi.Connection) *Connection {
	return &Connection{
		endpoint: e, handle: handle, maxMessage: e.maxMessage,
		// A poll that began with space for one message may bring a batch, and a progress DOCA's queue.
		inbox:   make(chan []byte, e.inboxCap+pollBatch+e.queue),
		arrived: make(chan struct{}, 1),
		ended:   make(chan struct{}),
		peers:   consumerList{changed: make(chan struct{})},
	}
}

// MaxMessage returns the maximum number of bytes of one message. Implements: doca_comch_server_get_max_msg_size.
func (c *Connection) MaxMessage() int { return c.maxMessage }

// Done returns a channel that is closed when the connection has ended, by either side.
func (c *Connection) Done() <-chan struct{} { return c.ended }

// unread returns how many messages may be in the inbox. A server with several clients grants less to one that it has
// not answered, because the program knows nothing about it yet.
func (c *Connection) unread() int {
	if c.endpoint.clients > 0 && !c.sentAny {
		return min(unreadBeforeAnswer, c.endpoint.inboxCap)
	}
	return c.endpoint.inboxCap
}

func (c *Connection) full() bool { return len(c.inbox) >= c.unread() }

// deliver is called by the driver. The inbox has space for all messages of one poll; if a library returns more, deliver
// reports false.
func (c *Connection) deliver(message []byte) bool {
	select {
	case c.inbox <- message:
		select {
		case c.arrived <- struct{}{}:
		default:
		}
		return true
	default:
		return false
	}
}

func (c *Connection) end(cause error) {
	c.cause = cause
	close(c.ended)
	c.peers.clear()
}

func (c *Connection) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Send returns when the message is in the peer's queue; the peer may not have read it yet. message has 1 to MaxMessage
// bytes and may be reused afterwards. Send waits while the queue is full. If ctx ends first, the message still arrives
// unless the connection ends. Errors: ErrDisconnected, ErrClosed, ctx's cause. Implements:
// doca_comch_server_task_send_alloc_init, doca_task_submit.
func (c *Connection) Send(ctx context.Context, message []byte) error {
	if len(message) < 1 || len(message) > c.maxMessage {
		return fmt.Errorf("message of %d bytes, not 1 to %d: %w", len(message), c.maxMessage, CodeInvalidValue)
	}
	return c.send(ctx, message)
}

func (c *Connection) send(ctx context.Context, message []byte) error {
	s := &send{connection: c, message: append([]byte(nil), message...), result: make(chan error, 1)}
	c.endpoint.do(func() { c.endpoint.enqueue(s) })
	select {
	case err := <-s.result: // mostly so; it saves waiting for ctx
		return err
	default:
	}
	select {
	case err := <-s.result:
		return err
	case <-c.endpoint.finished:
		return c.endpoint.await(s.result, c.cause) // run ends all connections before it returns
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Recv returns the next message. Messages that arrived before the connection ended are still received; then Recv
// returns its cause: ErrDisconnected or ErrClosed.
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

// TryRecv returns the next message without waiting, and polls the device for it, which is faster than a wakeup. It is
// for callers that are busy anyway, or expect a message within microseconds. Implements: doca_pe_progress.
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

// Arrived returns a channel that delivers a token when TryRecv may have a message: one token for any number of
// messages.
func (c *Connection) Arrived() <-chan struct{} { return c.arrived }

func (c *Connection) rest() ([]byte, error) {
	select {
	case message := <-c.inbox:
		return message, nil
	default:
		return nil, c.cause
	}
}

// Failed returns the panic that has ended the connection, an error with a method Panic; nil: there was none.
func (c *Connection) Failed() error {
	if !c.hasEnded() {
		return nil
	}
	if d, is := errors.AsType[*defect](c.cause); is {
		return d
	}
	return nil
}

// Close ends the connection and notifies the peer. Closing twice is harmless. CodeInUse while it has open Consumers or
// Producers. Implements: doca_comch_server_disconnect; doca_ctx_stop for a client.
func (c *Connection) Close() error { return c.closeFunc() }
