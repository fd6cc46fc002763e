package job

import (
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// NotConfirmed is the log line of a receiver that has committed without a confirmation.
const NotConfirmed = "target committed, but the sender did not confirm"

// OutcomeUnknown returns the error of a sender that gives up when the receiver may be about to commit.
func OutcomeUnknown(receiver wire.Side, err error) error {
	return NewError(wire.ErrOutcomeUnknown, nil, "compare both files (dma-copy verify)",
		"transfer outcome unknown: the %s did not confirm the commit: %v", receiver, err)
}

// RenameHung returns the error of a receiver whose file system does not report whether the target has its final name.
func RenameHung(path string, why error) error {
	return NewError(ErrIdle, why, "compare both files (dma-copy verify)",
		"transfer outcome unknown: the final rename of %s did not return (%v)", path, why)
}

// Unconfirmed returns, for the summary, how the sender of a committed file failed to confirm.
func Unconfirmed(err error, sender wire.Side) string {
	if MayFollowLoss(err) || errors.Is(err, wire.ErrPeerLost) {
		return fmt.Sprintf("the %s disconnected without confirming", sender)
	}
	return fmt.Sprintf("the %s did not confirm", sender)
}

// ErrPerhapsLost is in an error that a peer which is gone can cause, and something else as well.
var ErrPerhapsLost = errors.New("perhaps the peer is gone")

// MayFollowLoss reports whether an error can be the consequence of a peer that is gone.
func MayFollowLoss(err error) bool {
	for _, sign := range []error{comch.ErrPeerLost, ErrPerhapsLost, doca.CodeIOFailed, doca.CodeDriver} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// Stalled returns the error of a transfer without progress.
func Stalled(idle time.Duration) error {
	return NewError(ErrIdle, nil, "check the device and the disk, or raise --idle-timeout",
		"timeout: the copy made no progress for %s", idle)
}
