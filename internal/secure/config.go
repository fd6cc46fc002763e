package secure

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
)

// Config is what a side needs to authenticate.
type Config struct {
	// Key is the key of this side. If it is nil, a new one is generated that nobody knows.
	Key *identity.Key

	// Verify decides whether a peer with a key is accepted; any error refuses it. It must not be nil: AnyKey accepts
	// all. It is called during the handshake, before the peer has proved that it has the private key, so it must not
	// remember the key, nor report that the peer was there: Conn.Peer is the key that is proved.
	Verify func(identity.Public) error

	// Timeout is for the whole handshake; 0 is 10 seconds.
	Timeout time.Duration

	// Log has a line at level TRACE for each message of the handshake, and for that which ends the connection.
	Log zerolog.Logger
}

// AnyKey is a Config.Verify that accepts every key.
func AnyKey(identity.Public) error { return nil }

// DefaultTimeout is the timeout of a handshake.
const DefaultTimeout = 10 * time.Second

// Limits on a peer that has not authenticated yet, before this side ends the connection. From a RecordFramed
// channel it takes more messages, because a flight of the handshake is one for each of its records.
const (
	MaxHandshakeMessages = 8
	MaxHandshakeRecords  = 16
	MaxHandshakeBytes    = 64 << 10
)

// RecordFramed is implemented by a channel that carries bytes, such as TCP, and finds the messages in them by the
// headers of TLS records: each message that it delivers is one record.
type RecordFramed interface {
	comch.Conn
	RecordFramed()

	// Stalled returns ErrPacketsLost or ErrSilent if that is why a handshake has timed out, and otherwise nil.
	Stalled() error
}

// Overhead is the number of bytes by which a message is longer than what it carries: the header of a TLS record, its
// type and its authentication tag.
const Overhead = recordHeader + 1 + 16

// MinMessage is the smallest MaxMessage, in bytes, of a channel whose handshake fits in MaxHandshakeMessages.
const MinMessage = 1024

// maxRecord is the most data that one TLS record can carry, in bytes.
const maxRecord = 16 << 10

// MaxMessage is the largest MaxMessage, in bytes, of a channel that a Conn can use fully.
const MaxMessage = maxRecord + Overhead

var (
	// ErrRefused means that the peer does not accept the key of this side.
	ErrRefused = exit.NewReason(exit.Refused,
		"run dma-copy keys trust there with the key that dma-copy keys show prints here",
		"the peer does not trust the key of this side")

	// ErrHandshake means that the peer sent what no handshake has, or more than the limits of this package.
	ErrHandshake = exit.NewReason(exit.Protocol, "run dma-copy of the same release on both sides",
		"the peer did not authenticate")

	// ErrTimeout means that the peer did not complete the handshake in time.
	ErrTimeout = exit.NewReason(exit.Peer, "check the other side", "timeout: the peer did not authenticate")

	// ErrPacketsLost means that the connection was made, by small packets, and that larger ones do not arrive.
	ErrPacketsLost = exit.NewReason(exit.Peer,
		"check the MTU on the way to the other side, also of tunnels, and that ICMP is let through",
		"timeout: the connection was made, but larger packets do not arrive")

	// ErrSilent means that the connection was made, and that no byte of the peer has arrived.
	ErrSilent = exit.NewReason(exit.Peer, "check what listens there, and the MTU on the way, also of tunnels",
		"timeout: the connection was made, but nothing arrives from the peer")

	// ErrRecord means that a message is not authentic, or not one record of data.
	ErrRecord = exit.NewReason(exit.Protocol, "check the device and the other side",
		"a message of the peer is not authentic")

	// ErrPeerClosed means that the peer has closed the connection and nothing that it sent is missing. It is a
	// comch.ErrPeerLost. A connection that was cut ends with a comch.ErrPeerLost that is not ErrPeerClosed.
	ErrPeerClosed error = peerClosed{}
)

type peerClosed struct{}

func (peerClosed) Error() string { return "the peer closed the connection" }
func (peerClosed) Unwrap() error { return comch.ErrPeerLost }

// UntrustedError means that Config.Verify refused the key that the peer has shown. The peer may not have the private
// key.
type UntrustedError struct {
	Key identity.Public
	Err error // of Config.Verify
}

// Error names the fingerprint words of the key, and the reason.
func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the key of the peer is refused: %v (its words: %s)", e.Err, e.Key.Words())
}

// ExitCode implements exit.Coder.
func (e *UntrustedError) ExitCode() int { return exit.Refused }

// Hint implements exit.Coder.
func (e *UntrustedError) Hint() string {
	return "compare them with the output of dma-copy keys show on the other side, then run dma-copy keys trust here"
}

// Unwrap returns the error of Config.Verify.
func (e *UntrustedError) Unwrap() error { return e.Err }
