package dmaxfer

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// closeMessage ends one side's part of a transfer, as the service does it.
var closeMessage = binary.LittleEndian.AppendUint32(nil, 0x45)

// linkedEnd is one side's end of a connection that has transfer after transfer.
type linkedEnd struct {
	raw     comch.Conn
	polling comch.Polling // nil: raw is none
}

func newLinkedEnd(raw comch.Conn) *linkedEnd {
	polling, _ := raw.(comch.Polling)
	return &linkedEnd{raw, polling}
}

// begin returns the connection of the next transfer.
func (e *linkedEnd) begin() *linkedConn {
	c := &linkedConn{end: e, closed: make(chan struct{}), ended: make(chan struct{})}
	go c.watch()
	return c
}

// pollingLinkedConn is a linkedConn over a connection that can poll.
type pollingLinkedConn struct {
	*linkedConn
	comch.Polling
}

// conn returns what the transfer uses.
func (c *linkedConn) conn() comch.Conn {
	if c.end.polling == nil {
		return c
	}
	return pollingLinkedConn{c, c.end.polling}
}

// linkedConn is the part of a connection that one transfer has.
type linkedConn struct {
	end *linkedEnd

	mu         sync.Mutex
	peerClosed bool
	closed     chan struct{} // by this side
	ended      chan struct{} // by either side
	closeOnce  sync.Once
	endOnce    sync.Once
}

func (c *linkedConn) watch() {
	select {
	case <-c.end.raw.Done():
		c.endOnce.Do(func() { close(c.ended) })
	case <-c.ended:
	}
}

func (c *linkedConn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// take returns whether a message is one of the transfer.
func (c *linkedConn) take(message []byte) bool {
	if negotiate.TypeOf(message) != negotiate.TypeOf(closeMessage) {
		return true
	}
	c.mu.Lock()
	c.peerClosed = true
	c.mu.Unlock()
	c.endOnce.Do(func() { close(c.ended) })
	return false
}

func (c *linkedConn) hasPeerClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peerClosed
}

func (c *linkedConn) Send(ctx context.Context, message []byte) error {
	if c.isClosed() {
		return comch.ErrClosed
	}
	return c.end.raw.Send(ctx, message)
}

func (c *linkedConn) Recv(ctx context.Context) ([]byte, error) {
	switch {
	case c.isClosed():
		return nil, comch.ErrClosed
	case c.hasPeerClosed():
		return nil, comch.ErrPeerLost
	}
	message, err := c.end.raw.Recv(ctx)
	if err != nil || c.take(message) {
		return message, err
	}
	return nil, comch.ErrPeerLost
}

func (c *linkedConn) MaxMessage() int       { return c.end.raw.MaxMessage() }
func (c *linkedConn) Done() <-chan struct{} { return c.ended }

func (c *linkedConn) Close() error {
	var err error
	c.closeOnce.Do(func() {
		close(c.closed)
		err = c.end.raw.Send(context.Background(), closeMessage)
		c.endOnce.Do(func() { close(c.ended) })
	})
	return err
}

// finish waits until the peer has closed its part, too.
func (c *linkedConn) finish(ctx context.Context) error {
	for !c.hasPeerClosed() {
		message, err := c.end.raw.Recv(ctx)
		if err != nil {
			return err
		}
		c.take(message)
	}
	return nil
}

// TryRecv implements comch.Polling.
func (c pollingLinkedConn) TryRecv() (message []byte, received bool) {
	if c.isClosed() || c.hasPeerClosed() {
		return nil, false
	}
	message, received = c.Polling.TryRecv()
	return message, received && c.take(message)
}
