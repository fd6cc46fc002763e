package jobtest

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// SomeFailed is the code of a transfer of which only some entries have failed.
const SomeFailed wire.AbortCode = 12

// ExitCode returns the code with which the program ends after a transfer that ended with err, in tests that do not use
// the program.
func ExitCode(err error) int {
	if aborted, is := errors.AsType[*native.PeerAborted](err); is {
		return int(aborted.Code)
	}
	if _, is := errors.AsType[*job.Defect](err); is {
		return int(wire.AbortFailure)
	}
	for _, class := range []struct {
		is   error
		code wire.AbortCode
	}{
		{job.ErrSomeFailed, SomeFailed},
		{job.ErrLimit, wire.AbortLimit},
		{job.ErrCapability, wire.AbortDevice},
		{job.ErrDigest, wire.AbortDigest},
		{job.ErrSourceChanged, wire.AbortSourceChanged},
		{job.ErrSource, wire.AbortSource},
		{job.ErrTarget, wire.AbortTarget},
		{wire.ErrOutcomeUnknown, wire.AbortPeer},
		{wire.ErrPeerLost, wire.AbortPeer},
		{comch.ErrPeerLost, wire.AbortPeer},
		{job.ErrIdle, wire.AbortPeer},
		{job.ErrHung, wire.AbortPeer},
	} {
		if errors.Is(err, class.is) {
			return int(class.code)
		}
	}
	if _, is := errors.AsType[*wire.Error](err); is {
		return int(wire.AbortProtocol)
	}
	if _, is := errors.AsType[*doca.Error](err); is {
		return int(wire.AbortDevice)
	}
	return int(wire.AbortFailure)
}
