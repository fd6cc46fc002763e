package service

import (
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The kinds of errors of this package, besides the errors of packages job, comch, secure and negotiate; errors.Is finds
// them.
var (
	// ErrRefused means that the daemon does not let a peer do what it asks for: its key is not trusted, or has no
	// right.
	ErrRefused = exit.NewReason(exit.Refused, "", "refused")

	// ErrDraining means that the daemon ends, and takes no more requests.
	ErrDraining = exit.NewReason(exit.Peer, "start it again", "the daemon is shutting down")

	// ErrTurnedAway means that the daemon ended the connection before it had sent anything.
	ErrTurnedAway = exit.NewReason(exit.Peer,
		"too many others may be connecting, or it is shutting down: raise --wait, or see its log",
		"the daemon closed the connection without sending anything")

	// ErrBusy means that a command on the DPU has waited in vain for others to end: there are names for a few commands
	// at a time, protocol.CommandNames.
	ErrBusy = exit.NewReason(exit.Peer, "raise --wait",
		"timeout: the daemon served other commands until the end of --wait")
)

// codeOf returns the exit code for an error, for the peer.
func codeOf(err error) wire.AbortCode { return wire.AbortCode(exit.Code(err)) }
