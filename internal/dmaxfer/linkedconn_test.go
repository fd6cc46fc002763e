package dmaxfer

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// closeMessage ends one side's part of a transfer, as the service does it.
var closeMessage = binary.LittleEndian.AppendUint32(nil, 0x45)

// linkedEnd is one side's end of a connection that has transfer after transfer.
type linkedEnd struct{ raw comch.Conn }

// begin returns the connection of the next transfer.
func (e *linkedEnd) begin() *linkedConn {
	c := &linkedConn{Conn: e.raw, closed: make(chan struct{}), ended: make(chan struct{})}
	go c.watch()
	return c
}

// linkedConn is the part of a connection that one transfer has.
type linkedConn struct {
	comch.Conn

	mu         sync.Mutex
	peerClosed bool
	closed     chan struct{} // by this side
	ended      chan struct{} // by either side
	closeOnce  sync.Once
	endOnce    sync.Once
}

func (c *linkedConn) watch() {
	select {
	case <-c.Conn.Done():
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
	if wire.TypeOf(message) != wire.TypeOf(closeMessage) {
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
	return c.Conn.Send(ctx, message)
}

func (c *linkedConn) Recv(ctx context.Context) ([]byte, error) {
	switch {
	case c.isClosed():
		return nil, comch.ErrClosed
	case c.hasPeerClosed():
		return nil, comch.ErrPeerLost
	}
	message, err := c.Conn.Recv(ctx)
	if err != nil || c.take(message) {
		return message, err
	}
	return nil, comch.ErrPeerLost
}

func (c *linkedConn) Done() <-chan struct{} { return c.ended }

func (c *linkedConn) Close() error {
	var err error
	c.closeOnce.Do(func() {
		close(c.closed)
		err = c.Conn.Send(context.Background(), closeMessage)
		c.endOnce.Do(func() { close(c.ended) })
	})
	return err
}

// finish waits until the peer has closed its part, too.
func (c *linkedConn) finish(ctx context.Context) error {
	for !c.hasPeerClosed() {
		message, err := c.Conn.Recv(ctx)
		if err != nil {
			return err
		}
		c.take(message)
	}
	return nil
}

// TryRecv implements comch.Conn.
func (c *linkedConn) TryRecv() (message []byte, received bool) {
	if c.isClosed() || c.hasPeerClosed() {
		return nil, false
	}
	message, received = c.Conn.TryRecv()
	return message, received && c.take(message)
}
