package doca

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// connections are the connections of an endpoint. They belong to run.
type connections struct {
	open     map[cabi.Connection]*Connection
	rejected []cabi.Connection // no longer open, still to be disconnected by DOCA
}

func (e *endpoint) connected(event *cabi.Event) error {
	if event.Status != cabi.Success {
		return e.owner.notConnected(&Error{Op: "doca_comch_client_get_connection", Code: event.Status})
	}
	c := newConnection(e, event.Connection)
	e.connections.open[c.handle] = c
	e.owner.connected(c)
	return nil
}

func (e *endpoint) disconnected(handle cabi.Connection, cause error) {
	isHandle := func(rejected cabi.Connection) bool { return rejected == handle }
	e.connections.rejected = slices.DeleteFunc(e.connections.rejected, isHandle)
	c := e.connections.open[handle]
	if c == nil {
		return
	}
	delete(e.connections.open, handle)
	c.end(cause)
	e.sending.drop(c)
}

// disconnectAll ends all connections. One whose end panics, perhaps because of what has panicked before, does not keep
// the others from theirs.
func (e *endpoint) disconnectAll(cause error) {
	e.connections.rejected = nil
	for handle := range e.connections.open {
		err := protect(func() error { e.disconnected(handle, cause); return nil })
		e.life.cause = cmp.Or(e.life.cause, err)
	}
}

// disconnect is Close for the connection of a server. It retries while DOCA returns AGAIN.
func (e *endpoint) disconnect(c *Connection) error {
	for deadline := time.Now().Add(drainTime); ; {
		err := e.call(func() error { return e.tryDisconnect(c) })
		if !isAgain(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(retryPause)
	}
}

// tryDisconnect ends the connection as soon as DOCA accepts the call: most devices raise no event on the calling side,
// and the event of others finds an unknown handle.
func (e *endpoint) tryDisconnect(c *Connection) error {
	if c.hasEnded() {
		return nil
	}
	err := e.abi.ChannelDisconnect(e.channel, c.handle)
	if err == nil {
		e.disconnected(c.handle, ErrClosed)
	}
	return err
}

// reject is disconnect for run, which must not wait: polls retry while DOCA returns AGAIN, or IN_USE because the
// owners of consumers and producers have not closed them yet. Until then the peer's messages are dropped, so that they
// cannot fill an inbox without a reader.
func (e *endpoint) reject(c *Connection, cause error) {
	e.disconnected(c.handle, cause)
	if c.ofServer {
		e.connections.rejected = append(e.connections.rejected, c.handle)
	}
}

func (e *endpoint) rejectAgain() {
	e.connections.rejected = slices.DeleteFunc(e.connections.rejected, func(handle cabi.Connection) bool {
		err := e.abi.ChannelDisconnect(e.channel, handle)
		return !errors.Is(err, CodeAgain) && !errors.Is(err, CodeInUse)
	})
}
