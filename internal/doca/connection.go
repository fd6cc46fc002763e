package doca

import (
	"errors"

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
	endpoint  *endpoint
	handle    cabi.Connection
	closeFunc func() error
	ofServer  bool // run may end it alone
	inbox     inbox
	outbox    outbox // run's
	peers     consumerList
	ended     chan struct{} // closed by run; cause is valid from then on
	cause     error
}

func newConnection(e *endpoint, handle cabi.Connection) *Connection {
	c := &Connection{endpoint: e, handle: handle, inbox: newInbox(e.config), ended: make(chan struct{})}
	c.peers.set(nil)
	return c
}

// MaxMessage returns the maximum number of bytes of one message. Implements: doca_comch_server_get_max_msg_size.
func (c *Connection) MaxMessage() int { return c.endpoint.config.MaxMessage }

// Done returns a channel that is closed when the connection has ended, by either side.
func (c *Connection) Done() <-chan struct{} { return c.ended }

func (c *Connection) end(cause error) {
	c.cause = cause
	close(c.ended)
	c.peers.set(nil)
}

func (c *Connection) hasEnded() bool { return isClosed(c.ended) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Failed returns the panic that has ended the connection, an error with a method Panic; nil: there was none.
func (c *Connection) Failed() error {
	if c.hasEnded() {
		if d, is := errors.AsType[*defect](c.cause); is {
			return d
		}
	}
	return nil
}

// Close ends the connection and notifies the peer. Closing twice is harmless. CodeInUse while it has open Consumers or
// Producers. Implements: doca_comch_server_disconnect; doca_ctx_stop for a client.
func (c *Connection) Close() error { return c.closeFunc() }
