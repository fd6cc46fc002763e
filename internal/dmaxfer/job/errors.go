package job

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// The kinds of an Error; errors.Is finds them.
var (
	// ErrSource means that the source is missing, unreadable, or neither a regular file nor a directory.
	ErrSource = disk.ErrSource

	// ErrSourceChanged means that the source changed or vanished during the transfer.
	ErrSourceChanged = disk.ErrSourceChanged

	// ErrTarget means that the target cannot be created, written or made durable.
	ErrTarget = disk.ErrTarget

	// ErrIdle means that the transfer, or the peer, made no progress for the idle timeout.
	ErrIdle = exit.NewReason(exit.Peer, "", "no progress")

	// ErrPeerIdle means, in an ErrIdle, that it is the peer that was silent or made no progress.
	ErrPeerIdle = errors.New("no progress of the peer")

	// ErrSettings means that an option, such as chunk or depth, is beyond the device or contradicts another one.
	ErrSettings = exit.NewReason(exit.Usage, "", "settings")

	// ErrCapability means that the device lacks a capability that its side needs.
	ErrCapability = exit.NewReason(exit.Device, "", "capability")

	// ErrOtherPath means that the window of the planned path is not within reach, as with a host whose memory the DPU
	// may not import, and that both sides can use another path instead.
	ErrOtherPath = errors.New("another path")

	// ErrCopy means that the DMA engine failed during the transfer, most likely because the host's memory is gone.
	ErrCopy = exit.NewReason(exit.Failure, "", "copy")

	// ErrHostFailed means that the host failed after the DPU had reported success: it could not save what it
	// received, or its source had changed.
	ErrHostFailed = exit.NewReason(exit.Failure, "", "the host failed after the copy")

	// ErrDigest means a digest mismatch between source and target, or with the digest that was expected.
	ErrDigest = exit.NewReason(exit.Digest, "", "digest")

	// ErrLimit means that the file or the transfer exceeds a limit that the user has set.
	ErrLimit = exit.NewReason(exit.Limit, "", "limit")
)

// Error is a failed transfer: its kind, its cause in one sentence, and what to do about it.
type Error = disk.Error

// NewError returns an Error of a kind. err, which may be nil, is what it wraps; next is what to do about it.
func NewError(kind, err error, next, cause string, args ...any) *Error {
	return disk.NewError(kind, err, next, cause, args...)
}

// CheckFileSize refuses a file whose size, in bytes, the native protocol cannot carry.
func CheckFileSize(path string, size int64) error {
	if size > wire.MaxSize {
		return NewError(ErrSource, nil, "exclude it, or split it",
			"%s is too large: %s exceeds the protocol's limit of %s",
			path, quantity.Bytes(uint64(size)), quantity.Bytes(wire.MaxSize))
	}
	return nil
}

// OverLimit returns the error for a file that is larger than --max-bytes allows. Sizes are in bytes.
func OverLimit(path string, size, limit int64) error {
	return NewError(ErrLimit, nil, "raise --max-bytes", "%s is too large: %s exceeds the limit of %s",
		path, quantity.Bytes(uint64(size)), quantity.Bytes(uint64(limit)))
}

// OverTotal returns the error for a tree whose files have more bytes than --max-bytes allows.
func OverTotal(path string, limit int64) error {
	return NewError(ErrLimit, nil, "raise --max-bytes, or exclude some",
		"the files of %s have more than %s", path, quantity.Bytes(uint64(limit)))
}

// OverEntries returns the error for a tree with more entries than --max-entries allows.
func OverEntries(path string, limit int64) error {
	return NewError(ErrLimit, nil, "raise --max-entries, or exclude some", "%s has more than %d entries", path, limit)
}

// OverHoles returns the error for a file with more bytes of holes than --max-holes allows; reader is what would read
// them, and next is another way to avoid that.
func OverHoles(path string, limit int64, reader, next string) error {
	return NewError(ErrLimit, nil, next+", or raise --max-holes",
		"%s has more than %s of holes, which %s would read as zeros", path, quantity.Bytes(uint64(limit)), reader)
}
