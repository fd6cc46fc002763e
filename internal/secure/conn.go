package secure

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// raw is the connection that carries the records of a Conn.
type raw = comch.Conn

// Conn is an authenticated connection. Any input that is not a record of data ends the
// connection.
type Conn struct {
	raw

	stream     *stream
	tls        *tls.Conn
	own        tls.Certificate
	peer       identity.Public
	maxMessage int

	sends     sendLock
	unsent    error         // why the channel did not take a record; guarded by sends
	receiving chan struct{} // holds a token while a message is received

	closing sync.Once
	closed  atomic.Bool
	failure atomic.Pointer[error] // why this side has ended the connection, other than by Close
}

var _ comch.Conn = (*Conn)(nil)

func newConn(on raw, s *stream, t *tls.Conn, v *verifier) *Conn {
	s.ctx = nil // from now on it does no I/O
	return &Conn{
		raw: on, stream: s, tls: t, own: v.own, peer: v.peer,
		maxMessage: min(on.MaxMessage()-Overhead, maxRecord),
		receiving:  make(chan struct{}, 1),
	}
}

// Peer returns the public key of the peer, which has proved that it has the private one.
func (c *Conn) Peer() identity.Public { return c.peer }

// MaxMessage implements comch.Conn. It is Overhead less than the channel below has.
func (c *Conn) MaxMessage() int { return c.maxMessage }

// Send implements comch.Conn.
func (c *Conn) Send(ctx context.Context, message []byte) error {
	if len(message) < 1 || len(message) > c.maxMessage {
		return fmt.Errorf("message of %d bytes, not 1 to %d: %w", len(message), c.maxMessage, doca.CodeInvalidValue)
	}
	if w := c.sends.acquire(); w != nil {
		select {
		case <-w.granted:
		case <-ctx.Done():
			if c.sends.leave(w, message) {
				return context.Cause(ctx)
			}
		}
	}
	err := c.transmit(ctx, message)
	c.releaseSends()
	return err
}

// releaseSends releases the lock, after sending the messages that other Sends have left in its queue. These do not
// wait: the channel below takes a message even if the context has ended.
func (c *Conn) releaseSends() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for left := c.sends.release(); left != nil; left = c.sends.release() {
		_ = c.transmit(ended, left) // its Send has returned
	}
}

// transmit sends a message as one record. The caller holds c.sends.
func (c *Conn) transmit(ctx context.Context, message []byte) error {
	if _, err := c.tls.Write(message); err != nil {
		return c.explain(err)
	}
	return c.explain(c.sendRecords(ctx, ""))
}

// sendRecords sends all that was written, each record as a message, even if ctx ends: the next record would not be
// authentic without the one before it. So after one that the channel did not take, nothing follows. kind is what the
// log calls them; empty: messages of the connection, which its user logs.
func (c *Conn) sendRecords(ctx context.Context, kind string) (first error) {
	for _, record := range c.stream.take() {
		if c.unsent != nil {
			return c.unsent
		}
		if kind != "" {
			c.stream.trace("message sent", kind, record)
		}
		err := c.raw.Send(ctx, record)
		if first == nil {
			first = err
		}
		if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Cause(ctx))) {
			c.unsent = err
		}
	}
	return first
}

// Recv implements comch.Conn. It returns ErrPeerClosed if the peer closed the connection in an orderly way, which is
// also a comch.ErrPeerLost; and ErrRecord, after which the connection is closed, for a message that is not authentic.
func (c *Conn) Recv(ctx context.Context) ([]byte, error) {
	select {
	case c.receiving <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-c.receiving }()
	if failure := c.failure.Load(); failure != nil {
		return nil, c.explain(*failure)
	}
	record, err := c.raw.Recv(ctx)
	if err != nil {
		return nil, c.explain(err)
	}
	return c.open(record)
}

// TryRecv implements comch.Conn. If what arrived ends the connection, Recv returns the reason.
func (c *Conn) TryRecv() (message []byte, received bool) {
	select {
	case c.receiving <- struct{}{}:
	default:
		return nil, false // another goroutine receives
	}
	defer func() { <-c.receiving }()
	if c.failure.Load() != nil {
		return nil, false
	}
	record, received := c.raw.TryRecv()
	if !received {
		return nil, false
	}
	message, err := c.open(record)
	return message, err == nil
}

// open returns the message in a record. An error ends the connection.
func (c *Conn) open(record []byte) ([]byte, error) {
	message, err := c.decrypt(record)
	if err != nil {
		c.failure.Store(&err)
		c.end()
		return nil, c.explain(err)
	}
	return message, nil
}

func (c *Conn) decrypt(record []byte) ([]byte, error) {
	if !isRecord(record) {
		return nil, fmt.Errorf("%w: %d bytes that are not one record", ErrRecord, len(record))
	}
	c.stream.in = record
	message := make([]byte, len(record)-Overhead)
	n, err := c.tls.Read(message)
	if errors.Is(err, io.EOF) {
		c.stream.trace("message received", "alert", record)
		return nil, ErrPeerClosed
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrRecord, quote.Bare(err.Error()))
	}
	return message[:n], nil
}

// The type and version of an encrypted TLS 1.3 record, at the beginning of its header. The length follows.
const encryptedRecord = "\x17\x03\x03"

// recordHeader is the length of a record's header, in bytes.
const recordHeader = len(encryptedRecord) + 2

// isRecord reports whether a message is one encrypted record with at least one byte in it, as far as that is visible.
func isRecord(message []byte) bool {
	return len(message) > Overhead && string(message[:len(encryptedRecord)]) == encryptedRecord &&
		int(binary.BigEndian.Uint16(message[len(encryptedRecord):])) == len(message)-recordHeader
}

// Close implements comch.Conn. It tells the peer that nothing is missing, unless a Send is waiting, which then fails.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.closed.Store(true)
		c.end()
	})
	return c.raw.Close()
}

// end sends the reason, or that there is none, and closes the channel below.
func (c *Conn) end() {
	if c.sends.tryAcquire() {
		ctx, cancel := context.WithTimeout(context.Background(), alertTime)
		defer cancel()
		_ = c.tls.CloseWrite()
		_ = c.sendRecords(ctx, "alert")
		defer c.releaseSends()
	}
	_ = c.raw.Close()
}

// explain returns the error of a Conn for one of the channel below, or of package tls.
func (c *Conn) explain(err error) error {
	switch failure := c.failure.Load(); {
	case err == nil:
		return nil
	case c.closed.Load():
		return comch.ErrClosed
	case failure != nil:
		return *failure
	default:
		return err
	}
}
