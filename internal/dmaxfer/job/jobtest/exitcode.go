package jobtest

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// SomeFailed is the code of a transfer of which only some entries have failed.
const SomeFailed negotiate.AbortCode = 12

// ExitCode returns the code with which the program ends after a transfer that ended with err, in tests that do not use
// the program.
func ExitCode(err error) int {
	if aborted, is := errors.AsType[*negotiate.PeerAborted](err); is {
		return int(aborted.Code)
	}
	if _, is := errors.AsType[*job.Defect](err); is {
		return int(negotiate.AbortFailure)
	}
	for _, class := range []struct {
		is   error
		code negotiate.AbortCode
	}{
		{job.ErrSomeFailed, SomeFailed},
		{job.ErrLimit, negotiate.AbortLimit},
		{job.ErrCapability, negotiate.AbortDevice},
		{job.ErrDigest, negotiate.AbortDigest},
		{job.ErrSourceChanged, negotiate.AbortSourceChanged},
		{job.ErrSource, negotiate.AbortSource},
		{job.ErrTarget, negotiate.AbortTarget},
		{negotiate.ErrOutcomeUnknown, negotiate.AbortPeer},
		{negotiate.ErrPeerLost, negotiate.AbortPeer},
		{comch.ErrPeerLost, negotiate.AbortPeer},
		{job.ErrIdle, negotiate.AbortPeer},
		{job.ErrHung, negotiate.AbortPeer},
	} {
		if errors.Is(err, class.is) {
			return int(class.code)
		}
	}
	if _, is := errors.AsType[*negotiate.Error](err); is {
		return int(negotiate.AbortProtocol)
	}
	if _, is := errors.AsType[*doca.Error](err); is {
		return int(negotiate.AbortDevice)
	}
	return int(negotiate.AbortFailure)
}
