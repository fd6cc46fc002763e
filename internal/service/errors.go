package service

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// The kinds of errors of this package, besides those of packages job, comch, secure and negotiate; errors.Is finds
// them.
var (
	// ErrRefused means that the daemon does not let a peer do what it asks for: its key is not trusted, or has no
	// right.
	ErrRefused = errors.New("refused")

	// ErrDraining means that the daemon ends, and takes no more requests.
	ErrDraining = errors.New("the daemon is shutting down")

	// ErrTurnedAway means that the daemon ended the connection before it had sent anything.
	ErrTurnedAway = errors.New("the daemon closed the connection without sending anything")

	// ErrBusy means that a command on the DPU has waited in vain for others to end: there are names for a few commands
	// at a time, protocol.CommandNames.
	ErrBusy = errors.New("timeout: the daemon served other commands until the end of --wait")
)

// code returns the exit code for an error, for the peer and the Observer.
func (s *Server) code(err error) wire.AbortCode {
	_, untrusted := errors.AsType[*secure.UntrustedError](err)
	switch {
	case untrusted, errors.Is(err, ErrRefused), errors.Is(err, share.ErrDenied), errors.Is(err, secure.ErrRefused):
		return wire.AbortRefused
	case errors.Is(err, ErrDraining):
		return wire.AbortPeer
	case errors.Is(err, secure.ErrHandshake), errors.Is(err, secure.ErrRecord):
		return wire.AbortProtocol
	case s.config.Copy.ExitCode == nil:
		return wire.AbortFailure
	}
	return wire.AbortCode(s.config.Copy.ExitCode(err))
}
