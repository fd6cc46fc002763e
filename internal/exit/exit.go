// Package exit defines the exit codes of the program, and errors that carry one together with a hint.
//
// An error of a command says itself with which code the program ends and what the user can do next. This package must
// not know commands, nor the errors of libraries; those are mapped to codes by package report. Only main exits.
package exit

import (
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
