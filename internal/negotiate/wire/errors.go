package wire

import (
	"errors"
	"fmt"
)

// The reasons for the end of a session. Every error of a session is an *Error that wraps one of them, or
// what a protocol adds to them.
var (
	// ErrWordsDiffer is a pair of sides with different Words; one may have none.
	ErrWordsDiffer    = &Reason{code: AbortRefused, text: "the other side was given another word, or none"}
	ErrBothHaveFile   = errors.New("both the host and the DPU have the file")
	ErrNeitherHasFile = errors.New("neither the host nor the DPU has the file")
	// ErrKindMismatch is a file on one side and a directory on the other.
	ErrKindMismatch = errors.New("one side has a file, the other a directory")
	// ErrTreeStream is a directory on one side and a stream on the other.
	ErrTreeStream = errors.New("a directory cannot be copied from or to a stream")
	// ErrNoPath is a pair of sides without a common path: one cannot or will not use DMA, and no other path suits both.
	ErrNoPath = DetailedReason(AbortDevice,
		"leave out --path on both sides, and see what dma-copy devices lists there",
		"the two sides have no data path in common")
	ErrTooLarge   = errors.New("too large")
	ErrMalformed  = errors.New("malformed message")
	ErrOutOfOrder = errors.New("out of order")

	// ErrPeerRefused is the DPU's STATUS(0) instead of its DIRECTION. The reference protocol has no reason codes, so
	// the text lists the possible ones.
	ErrPeerRefused = errors.New(
		"the DPU refused: both or neither side has the file, or its size is more than the DPU takes")
	// ErrPeerFailed is a STATUS(0) at any other time.
	ErrPeerFailed = &Reason{
		code: AbortFailure, hint: "see its error message",
		text: "the peer reported a failure", ofPeer: "the %s reported a failure",
	}
	// ErrPeerLost is the end of the connection before the transfer's end.
	ErrPeerLost = &Reason{
		code: AbortPeer, hint: "check the other side and copy again",
		text:   "the connection was lost before the copy ended",
		ofPeer: "the connection to the %s was lost before the copy ended",
	}
	// ErrDisagreement is a DPU's answer that contradicts the host's knowledge of which side has the file.
	ErrDisagreement = errors.New("host and DPU disagree about who has the file")
	// ErrAborted is this side's own Finish(false) or Abort. In Cancelling it becomes the error of the sender when the
	// outcome of every entry is known.
	ErrAborted = errors.New("aborted on this side")

	// ErrVersion is a peer that speaks the native protocol, but no common version of it.
	ErrVersion = DetailedReason(AbortProtocol,
		"run releases of dma-copy with a common protocol version on both sides",
		"no common version of the native protocol")
	// ErrNeedsNative is a directory, a stream, whose length is not known in advance, or a side without DMA, with a peer
	// that speaks the reference protocol only.
	ErrNeedsNative = &Reason{
		code: AbortProtocol,
		text: "a directory, a stream or a copy without DMA needs the native protocol, which the peer does not support",
	}
	// ErrEmptyFile is an empty file with a peer that is not known to be a dma-copy.
	ErrEmptyFile = &Reason{code: AbortProtocol, text: "the file is empty, which doca_dma_copy cannot copy"}
	// ErrOutcomeUnknown is a sender that lost the receiver before the results of entries that it had sent completely.
	ErrOutcomeUnknown = &Reason{
		code: AbortPeer, hint: "compare both files (dma-copy verify)",
		text:   "transfer outcome unknown: the receiver did not confirm the commit",
		ofPeer: "transfer outcome unknown: the %s did not confirm the commit",
	}
)

// Error is a failure of a session or a codec.
type Error struct {
	State   fmt.Stringer // of the session, in which it happened; nil without a session
	Message Type         // received or to be sent; 0 if there was none, or it was too short
	Err     error        // the reason
	Detail  string       // may be empty
}

// Error returns one sentence. It contains numbers and escaped text of the peer's input only.
func (e *Error) Error() string {
	text := "negotiation"
	if e.State != nil {
		text += " in state " + e.State.String()
	}
	if e.Message != 0 {
		text += " at " + e.Message.String()
	}
	text += ": " + e.Err.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the reason, for errors.Is.
func (e *Error) Unwrap() error { return e.Err }

// IsViolation reports whether an error is about a message that the peer must not have sent.
func IsViolation(err error) bool {
	return errors.Is(err, ErrMalformed) || errors.Is(err, ErrOutOfOrder) || errors.Is(err, ErrTooLarge)
}

// Malformed returns an ErrMalformed with a detail.
func Malformed(t Type, format string, args ...any) *Error {
	return &Error{Message: t, Err: ErrMalformed, Detail: fmt.Sprintf(format, args...)}
}

// TooLarge returns an ErrTooLarge; what is the beginning of a sentence that goes on with a number of bytes.
func TooLarge(t Type, what string, got, limit uint64) *Error {
	return &Error{Message: t, Err: ErrTooLarge, Detail: fmt.Sprintf("%s %d bytes, limit %d", what, got, limit)}
}

// AsError returns an error of a protocol as an *Error.
func AsError(err error) *Error {
	if failure, is := errors.AsType[*Error](err); is {
		return failure
	}
	return &Error{Err: err}
}

// FirstError returns the first error that is not nil.
func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// OutOfOrder returns an ErrOutOfOrder.
func OutOfOrder(t Type) *Error { return &Error{Message: t, Err: ErrOutOfOrder} }

// WrongTurn returns an ErrOutOfOrder with a detail.
func WrongTurn(t Type, format string, args ...any) *Error {
	return &Error{Message: t, Err: ErrOutOfOrder, Detail: fmt.Sprintf(format, args...)}
}
