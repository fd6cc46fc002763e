package wire

import (
	"errors"
	"fmt"
)

// Reason is a reason for the end of a session, with the program's exit code and the user's next step.
type Reason struct {
	code     AbortCode
	hint     string // empty: none
	text     string
	ofPeer   string // text for the user, with %s for the other side; empty: the text of the error around it
	detailed bool   // text for the user is this one, with the detail of the Error
}

// DetailedReason returns a Reason that the user sees with the detail of its Error, and without the rest.
func DetailedReason(code AbortCode, hint, text string) *Reason {
	return &Reason{code: code, hint: hint, text: text, detailed: true}
}

// Error returns the text.
func (r *Reason) Error() string { return r.text }

// ExitCode returns the code with which the program ends.
func (r *Reason) ExitCode() int { return int(r.code) }

// Hint returns the user's next step; empty: none.
func (r *Reason) Hint() string { return r.hint }

// Reword returns the user's words for an error that wraps r and says text; peer is the other side.
func (r *Reason) Reword(text, peer string) string {
	if r.ofPeer == "" {
		return text
	}
	return fmt.Sprintf(r.ofPeer, peer)
}

// coded is implemented by reasons that know how the program ends.
type coded interface {
	error
	ExitCode() int
	Hint() string
}

// ExitCode returns the code with which the program ends.
func (e *Error) ExitCode() int {
	if reason, is := errors.AsType[coded](e.Err); is {
		return reason.ExitCode()
	}
	return int(AbortProtocol)
}

// Hint returns the user's next step: the reason's, or the state's if the reason has none; empty: none.
func (e *Error) Hint() string {
	if reason, is := errors.AsType[coded](e.Err); is {
		return reason.Hint()
	}
	if state, is := e.State.(interface{ Hint() string }); is && state.Hint() != "" {
		return state.Hint()
	}
	return "run a supported release of dma-copy or doca_dma_copy on the other side"
}

// Reword returns the user's words for an error that wraps e and says text; peer is the other side.
func (e *Error) Reword(text, peer string) string {
	reason, is := errors.AsType[*Reason](e.Err)
	switch {
	case !is:
		return text
	case reason.detailed:
		return fmt.Sprintf("%s: %s", e.Err, e.Detail)
	}
	return reason.Reword(text, peer)
}
