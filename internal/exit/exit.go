// Package exit defines the exit codes of the program, and errors that carry one together with a hint.
//
// An error says itself with which code the program ends and what the user can do next. This package must know neither
// commands nor the errors of other packages. Only main exits.
package exit

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// The exit codes. 2 is never used: it is what a crash of the Go runtime returns.
const (
	OK            = 0
	Failure       = 1 // any other failure
	Usage         = 3 // usage or configuration
	Source        = 4
	Target        = 5
	Device        = 6 // device, driver or capability missing
	Peer          = 7 // peer absent, lost or timed out; outcome unknown
	Refused       = 8 // the peer's or this side's rules forbid it: key, right, authentication
	Digest        = 9 // digest mismatch
	SourceChanged = 10
	Protocol      = 11
	SomeFailed    = 12 // some of several entries or files failed
	NotHardware   = 13 // hardware not available, and required
	Limit         = 14 // stopped by a limit that the user set
	Signal        = 128
)

// Coder is an error that determines the exit code.
type Coder interface {
	error

	// ExitCode returns one of the codes of this package, or Signal plus the number of a signal.
	ExitCode() int

	// Hint returns the next step for the user; empty if the error's text has it, or if there is none.
	Hint() string
}

// Reworder is a Coder whose text is for logs, and that has other words for the user of a side.
type Reworder interface {
	Coder

	// Reword returns the failure in the user's words. text is what an error says that wraps this one, and peer is the
	// other side.
	Reword(text, peer string) string
}

// Find returns the error that determines the exit code of a run that ended with err: a signal, or else the outermost
// Coder, the first of several. It returns nil if there is none.
func Find(err error) Coder {
	if stopped, is := errors.AsType[Interrupted](err); is {
		return stopped
	}
	if coder, is := errors.AsType[Coder](err); is {
		return coder
	}
	switch {
	case errors.Is(err, unix.EMFILE):
		return &Error{Usage, HintProcessFiles, err}
	case errors.Is(err, unix.ENFILE):
		return &Error{Usage, HintSystemFiles, err}
	}
	return nil
}

// The hints where this process, or the whole system, has used up its file descriptors.
const (
	HintProcessFiles = "raise the limit on open files (ulimit -n 1024)"
	HintSystemFiles  = "raise the system's limit on open files (sysctl fs.file-max), or close some"
)

// Code returns the exit code of a run that ended with err, which may be nil.
func Code(err error) int {
	if err == nil {
		return OK
	}
	if coder := Find(err); coder != nil {
		return coder.ExitCode()
	}
	return Failure
}

// Hint returns the next step after err, empty if the error's own text has it or if there is none.
func Hint(err error) string {
	if coder := Find(err); coder != nil {
		return coder.Hint()
	}
	return ""
}

// Reason is an error that others wrap: one reason for failures, which errors.Is finds, with the exit code and hint that
// all of them have.
type Reason struct {
	code            int
	hint            string
	text, userWords string
}

var _ Reworder = (*Reason)(nil)

// NewReason returns a Reason with the text for logs and, unless it is reworded, for the user.
func NewReason(code int, hint, text string) *Reason {
	return &Reason{code: code, hint: hint, text: text}
}

// NewPeerReason is NewReason for a failure of the other side. words are for the user, with %s for the other side.
func NewPeerReason(code int, hint, text, words string) *Reason {
	return &Reason{code, hint, text, words}
}

// Error returns the text.
func (r *Reason) Error() string { return r.text }

// ExitCode implements Coder.
func (r *Reason) ExitCode() int { return r.code }

// Hint implements Coder.
func (r *Reason) Hint() string { return r.hint }

// Reword implements Reworder.
func (r *Reason) Reword(text, peer string) string {
	if r.userWords == "" {
		return text
	}
	return fmt.Sprintf(r.userWords, peer)
}

// Error is a failure with its exit code and hint.
type Error struct {
	code int
	hint string
	err  error
}

var _ Coder = (*Error)(nil)

// Errorf returns an Error whose text is the formatted message; %w keeps a cause for errors.Is. The hint is the next
// step for the user, or empty where the message has it.
func Errorf(code int, hint, format string, args ...any) *Error {
	return &Error{code: code, hint: hint, err: fmt.Errorf(format, args...)}
}

// Usagef returns the Error of a bad flag, value, variable or parameter file. The message is one sentence with the cause
// and the next step.
func Usagef(format string, args ...any) error { return Errorf(Usage, "", format, args...) }

// Error returns the message. File names and messages of parsers may bring control characters along, so these are
// escaped.
func (e *Error) Error() string { return quote.Printable(e.err.Error()) }

// Unwrap returns the error that carries the causes.
func (e *Error) Unwrap() error { return e.err }

// ExitCode implements Coder.
func (e *Error) ExitCode() int { return e.code }

// Hint implements Coder.
func (e *Error) Hint() string { return e.hint }

// Interrupted is the cause of a context that a signal cancelled.
type Interrupted struct {
	Signal syscall.Signal // SIGINT, SIGTERM or SIGHUP
}

var _ Coder = Interrupted{}

// Error names the signal.
func (e Interrupted) Error() string { return fmt.Sprintf("stopped by %s", unix.SignalName(e.Signal)) }

// ExitCode implements Coder with the code that a shell gives a process that the signal has ended.
func (e Interrupted) ExitCode() int { return Signal + int(e.Signal) }

// Hint implements Coder.
func (e Interrupted) Hint() string { return "" }
