package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// Control is a control connection before it is authenticated, for secure.Server or secure.Client: a comch.Conn over
// TCP whose messages are TLS records. A message may be any bytes of the TLS stream. A message that is not a record
// is the last one of a connection.
type Control struct {
	socket *net.TCPConn
	raw    syscall.RawConn
	in     incoming
	out    outgoing

	goroutines sync.WaitGroup // the reader, and a writer while there is something to write
	ended      chan struct{}  // by either side, or by a defect
	endOnce    sync.Once
	closed     atomic.Bool // by this side
	closeOnce  sync.Once
	closeErr   error
	defect     atomic.Pointer[job.Defect] // a panic of the reader or a writer

	server  *Listener               // nil on the client's side
	leave   func()                  // ends the admission of a Listener; on the client's side it does nothing
	session atomic.Pointer[session] // of data connections; nil: none yet
}

var _ secure.RecordFramed = (*Control)(nil)

// newControl takes over a connection from which the bytes in already have been read.
func newControl(socket *net.TCPConn, already io.Reader, s *Settings) (*Control, error) {
	raw, err := s.prepare(socket)
	if err != nil {
		return nil, err
	}
	c := &Control{
		socket: socket, raw: raw, in: newIncoming(), out: outgoing{broken: make(chan struct{})},
		ended: make(chan struct{}), leave: func() {},
	}
	c.run(func() { c.read(already) })
	return c, nil
}

// run runs a goroutine of the connection, which ends with a panic in it.
func (c *Control) run(function func()) {
	c.goroutines.Go(func() {
		var err error
		defer func() {
			if defect, is := errors.AsType[*job.Defect](err); is {
				c.defect.CompareAndSwap(nil, defect)
				c.end()
			}
		}()
		defer job.Recover(&err)
		function()
	})
}

// Failed returns the panic that has ended the connection; nil: there was none.
func (c *Control) Failed() error {
	if defect := c.defect.Load(); defect != nil {
		return defect
	}
	return nil
}

// RecordFramed implements secure.RecordFramed.
func (*Control) RecordFramed() {}

// Stalled implements secure.RecordFramed.
func (c *Control) Stalled() error {
	info, err := tcpInfo(c.raw)
	if err != nil {
		return nil
	}
	return stalled(info)
}

// stalled returns why an open connection brings nothing. Packets have got lost if this side's packets are sent again
// and again and not acknowledged, or if a packet of the peer has arrived and the one before it has not.
func stalled(info *unix.TCPInfo) error {
	switch {
	case info.Unacked > 0 && info.Backoff > 0, info.Rcv_ooopack > 0:
		return secure.ErrPacketsLost
	case info.Bytes_received == 0:
		return secure.ErrSilent
	default:
		return nil
	}
}

// MaxMessage implements comch.Conn.
func (*Control) MaxMessage() int { return secure.MaxMessage }

// Done implements comch.Conn.
func (c *Control) Done() <-chan struct{} { return c.ended }

// Address returns the IP address of the peer as text, without a port.
func (c *Control) Address() string { return addressOf(c.socket.RemoteAddr()).String() }

// Send implements comch.Conn. The peer's queue is the buffers of both sockets.
func (c *Control) Send(ctx context.Context, message []byte) error {
	if len(message) < 1 || len(message) > secure.MaxMessage {
		return fmt.Errorf("message of %d bytes, not 1 to %d: %w", len(message), secure.MaxMessage,
			doca.CodeInvalidValue)
	}
	if err := c.whyEnded(); err != nil {
		return err
	}
	sent, err := c.out.add(c, message)
	if err != nil {
		return c.lost()
	}
	if sent == nil {
		return nil
	}
	select {
	case <-sent:
		return nil
	case <-c.out.broken:
		return c.lost()
	case <-c.ended:
		return c.lost()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// whyEnded returns nil as long as messages can be sent: also after a defect, which the peer is to be told about.
func (c *Control) whyEnded() error {
	select {
	case <-c.ended:
		if c.Failed() != nil && !c.closed.Load() {
			return nil
		}
		return c.lost()
	default:
		return nil
	}
}

// lost returns the error of a connection that cannot be used any more. Messages that the peer has sent may still be
// received.
func (c *Control) lost() error {
	if c.closed.Load() {
		return comch.ErrClosed
	}
	return cmp.Or[error](c.Failed(), comch.ErrPeerLost)
}

func (c *Control) end() { c.endOnce.Do(func() { close(c.ended) }) }

// The limits of Close.
const (
	// lingerTime is how long Close waits for the peer's system to acknowledge what was sent.
	lingerTime = 500 * time.Millisecond

	firstLook, lastLook = 100 * time.Microsecond, 20 * time.Millisecond // between two looks at that
)

// Close implements comch.Conn. Messages that Send has taken reach the peer, unless that takes longer than half a
// second.
func (c *Control) Close() error {
	c.closeOnce.Do(func() {
		c.closed.Store(true)
		c.end()
		c.leave()
		if s := c.session.Load(); s != nil {
			s.close()
		}
		past := time.Unix(1, 0)
		c.out.fail(comch.ErrClosed)
		_ = c.socket.SetWriteDeadline(past) // ends the writer
		c.in.discard()
		if c.socket.CloseWrite() == nil {
			c.linger()
		}
		c.closeErr = c.socket.Close()
		c.goroutines.Wait()
	})
	return c.closeErr
}

// linger waits until the peer has everything. Meanwhile the reader discards what arrives: a socket that is closed with
// unread bytes resets the connection, and the peer would lose what it has not read.
func (c *Control) linger() {
	deadline := time.Now().Add(lingerTime)
	for pause := firstLook; time.Now().Before(deadline); pause = min(2*pause, lastLook) {
		if left, err := unacknowledged(c.raw); err != nil || left == 0 {
			return
		}
		time.Sleep(pause)
	}
}
