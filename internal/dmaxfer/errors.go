package dmaxfer

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// What an Error of this package is about; errors.Is finds it.
var (
	// ErrSource is a source that is missing, unreadable, or no regular file.
	ErrSource = disk.ErrSource

	// ErrSourceChanged is a source that changed or vanished while it was copied.
	ErrSourceChanged = disk.ErrSourceChanged

	// ErrTarget is a target that cannot be created, filled or made durable.
	ErrTarget = disk.ErrTarget

	// ErrIdle is a copy, or a peer, that made no progress for the idle timeout.
	ErrIdle = errors.New("no progress")

	// ErrSettings is a chunk or depth that the device cannot do, or something else that does not go with what was asked for.
	ErrSettings = errors.New("settings")

	// ErrCapability is a device that cannot do what its side has to do.
	ErrCapability = errors.New("capability")

	// ErrCopy is a DMA engine that failed in the middle of the copy, most likely because the host's memory was no longer there.
	ErrCopy = errors.New("copy")

	// ErrHostFailed is a host that failed after the DPU had reported success: it could not save what it received, or
	// found that what it sent had changed.
	ErrHostFailed = errors.New("the host failed after the copy")

	// ErrDigest is content that is not what it should be: what arrived is not what was sent, or not what was expected.
	ErrDigest = errors.New("digest")

	// ErrLimit is a file, or a copy, that is more than the user allows.
	ErrLimit = errors.New("limit")
)

// Error is a failed copy: one sentence of cause, one of what to do about it.
type Error = disk.Error

func failure(kind, err error, next, cause string, args ...any) *Error {
	return disk.NewError(kind, err, next, cause, args...)
}
