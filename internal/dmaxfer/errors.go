package dmaxfer

import (
	"errors"
	"fmt"
)

// What an Error of this package is about; errors.Is finds it.
var (
	// ErrSource is a source that is missing, unreadable, or no regular file.
	ErrSource = errors.New("source")

	// ErrSourceChanged is a source that changed or vanished while it was copied.
	ErrSourceChanged = errors.New("source changed")

	// ErrTarget is a target that cannot be created, filled or made durable.
	ErrTarget = errors.New("target")

	// ErrIdle is a copy, or a peer, that made no progress for the idle timeout.
	ErrIdle = errors.New("no progress")

	// ErrSettings is a chunk or depth that the device cannot do.
	ErrSettings = errors.New("settings")

	// ErrCapability is a device that cannot do what its side has to do.
	ErrCapability = errors.New("capability")

	// ErrCopy is a DMA engine that failed in the middle of the copy, most likely because the host's memory was no longer there.
	ErrCopy = errors.New("copy")

	// ErrHostFailed is a host that failed after the DPU had reported success: it could not save what it received, or
	// found that what it sent had changed.
	ErrHostFailed = errors.New("the host failed after the copy")
)

// Error is a failed copy: one sentence of cause, one of what to do about it.
type Error struct {
	Kind  error  // one of the Err variables
	Cause string // "cannot read /srv/image: permission denied"
	Next  string // "make it readable for this user"
	Err   error  // underneath; may be nil
}

// Error is cause and next step.
func (e *Error) Error() string { return e.Cause + ": " + e.Next }

// Unwrap gives errors.Is the kind and what is underneath.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

func failure(kind, err error, next, cause string, args ...any) *Error {
	return &Error{Kind: kind, Cause: fmt.Sprintf(cause, args...), Next: next, Err: err}
}
