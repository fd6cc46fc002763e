package secure

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/identity"
)

// Conn is an authenticated connection. It implements comch.Conn and comch.Polling.
type Conn struct {
	comch.Polling
	raw  comch.Conn
	peer identity.Public
}

var (
	_ comch.Conn    = (*Conn)(nil)
	_ comch.Polling = (*Conn)(nil)
)

// Server authenticates a connection as the TLS server, which is the daemon's side. The Conn owns conn, which must
// implement comch.Polling. With an error conn is closed. UntrustedError, ErrRefused, ErrHandshake, ErrTimeout, an error
// of conn, or the cause of ctx.
func Server(ctx context.Context, conn comch.Conn, c Config) (*Conn, error) {
	return nil, errors.ErrUnsupported
}

// Client is Server for the TLS client, which is the command's side. When it returns without error, the server has
// accepted the key of this side as well.
func Client(ctx context.Context, conn comch.Conn, c Config) (*Conn, error) {
	return nil, errors.ErrUnsupported
}

// Peer returns the public key of the peer, which has proved that it has the private one.
func (c *Conn) Peer() identity.Public { return c.peer }

// Send implements comch.Conn.
func (c *Conn) Send(ctx context.Context, message []byte) error { return errors.ErrUnsupported }

// Recv implements comch.Conn.
func (c *Conn) Recv(ctx context.Context) ([]byte, error) { return nil, errors.ErrUnsupported }

// MaxMessage implements comch.Conn. It is Overhead less than that of the channel below.
func (c *Conn) MaxMessage() int { return c.raw.MaxMessage() - Overhead }

// Done implements comch.Conn.
func (c *Conn) Done() <-chan struct{} { return c.raw.Done() }

// Close implements comch.Conn.
func (c *Conn) Close() error { return c.raw.Close() }
