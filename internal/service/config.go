package service

import (
	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/identity"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Trust finds the grant of a key that may use the daemon. It may be called concurrently. *identity.Trusted implements
// it.
type Trust interface {
	Find(key identity.Public) (identity.Grant, bool)
	All() []identity.Grant
}

// ServerConfig is what a Server is made of.
type ServerConfig struct {
	Key      *identity.Key // of this daemon
	AuthNone bool          // accept any key, with the rights of the shares
	Trust    Trust         // the keys that may connect; not used with AuthNone
	Shares   []share.Share

	// MeasuresOnly lets any peer measure, also without a share.
	MeasuresOnly bool
	FS           disk.FS // where the shares are; nil: the operating system's

	// Forbidden reports whether the daemon has given up the right to use a share with an access, which it had when it
	// started. It is called before the directory of a share is opened, concurrently, and may hang. Nil: it never has.
	Forbidden func(s share.Share, needed share.Access) bool

	Limits Limits

	Name string // of this machine, for the peers: printable ASCII, at most 64 bytes; may be empty
	User string // of this daemon, likewise
	Text string // the answer to the text of a ping: UTF-8, at most protocol.MaxPingText bytes; may be empty

	// Copy has the daemon's part of every copy: Path, Chunk, Depth, Digest, Durability, Placement,
	// Readback, NoSparse, MaxHoles and Software. The rest is set for each copy.
	Copy dmaxfer.Options

	Observer Observer // nil: none
	Log      zerolog.Logger
}

// greeting returns what the daemon says about itself.
func (c *ServerConfig) greeting() protocol.Greeting {
	return protocol.Greeting{
		Authenticates: !c.AuthNone, Software: c.Copy.Software, Name: c.Name, User: c.User,
	}
}

// Incoming is a connection that a peer has made.
type Incoming struct {
	Conn     comch.Conn
	Memory   func(*secure.Conn) window.Memory // of this connection only; called once, after the peer has proved its key
	Function string                           // whence it comes, for limits, audit and status; below
	Side     wire.Side                        // of this daemon

	// Function is of the device, such as "b1:00.1", or of a network connection the IP address of the peer.
}
