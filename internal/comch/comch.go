// Package comch is the control channel between the two sides of a copy: ordered, bounded, cancellable messages over
// DOCA Comch. It adds to package doca what a program needs of a channel: waiting for a peer that is not there yet, one
// peer at a time, and errors that say what the loss of a connection means.
//
//	host                         DPU
//	Dialer ── connection ────►  Listen, Accept
//	Conn ◄──── messages ────►   Conn
//
// No call waits without end unless its context does.
package comch

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
)

var (
	// ErrPeerAbsent means that no peer appeared in time.
	ErrPeerAbsent = exit.NewReason(exit.Peer, "start the other side, or raise --wait",
		"timeout: the peer did not connect")

	// ErrRefused means that the other side was there all the time and did not take this one.
	ErrRefused = exit.NewPeerReason(exit.Peer, "its limit of connections may be reached; check it and try again",
		"the peer refused the connection", "timeout: the %s refused the connection until the end of --wait")

	// ErrTurnedAway means that the server took this host's connections only to end them before it had sent
	// anything.
	ErrTurnedAway = exit.NewReason(exit.Peer, "it may be serving another host: raise --wait, or check the DPU",
		"the DPU closed the connection without sending anything")

	// ErrMessageSize means that it never will: its messages have another maximum size.
	ErrMessageSize = exit.NewPeerReason(exit.Protocol,
		"give both sides the same max_msg_size in DMA_COPY_SOFT_LIMITS",
		"the peer refused the connection: the maximum message sizes differ",
		"the %s refused the connection: the maximum message sizes differ")

	// ErrPeerLost means that the peer ended the connection, or died.
	ErrPeerLost = exit.NewPeerReason(exit.Peer, "check the other side and copy again",
		"the connection to the peer is lost", "the connection to the %s was lost before the copy ended")

	// ErrClosed means that this side has closed the connection or the listener.
	ErrClosed = errors.New("the control channel is closed")
)

// Conn is one peer. Send, Recv and Close may be called from different goroutines.
type Conn interface {
	// Send returns when the message is in the peer's queue; a full queue waits. 1 to MaxMessage bytes, which the caller
	// may reuse afterwards. ErrPeerLost, ErrClosed, or the cause of ctx. If ctx ends the wait, the message still
	// arrives, after those sent before it and before those sent after it, unless the connection ends.
	Send(ctx context.Context, message []byte) error

	// Recv returns the next message, which is the caller's. Messages sent before the peer left are still received.
	// ErrPeerLost, ErrClosed, or the cause of ctx.
	Recv(ctx context.Context) ([]byte, error)

	// MaxMessage is the most bytes of one message.
	MaxMessage() int

	// Done is closed when the connection has ended, by either side.
	Done() <-chan struct{}

	// Close ends the connection and unblocks Send and Recv. Closing twice is harmless.
	Close() error

	// TryRecv is Recv without the wait. It looks for messages itself, and so has them sooner than this process would be
	// woken for them. Like the methods below it is safe for concurrent use.
	TryRecv() (message []byte, received bool)

	// Arrived delivers a token when TryRecv may have a message.
	Arrived() <-chan struct{}

	// SpinLimit returns how many calls of TryRecv in vain cost less than to sleep and be woken.
	SpinLimit() int
}

// FastPath is implemented by a Conn over which producers and consumers can be made. They are to be closed before it.
// The methods are the same as in doca.Connection, with the errors of Conn for its end.
type FastPath interface {
	NewConsumer(ctx context.Context, region *doca.Region, config doca.ConsumerConfig) (*doca.Consumer, error)
	NewProducer(depth int) (*doca.Producer, error)
	PeerConsumers() (ids []uint32, changed <-chan struct{})
}
