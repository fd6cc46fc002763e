package cabi

import (
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/exit"
)

// Status is a doca_error_t.
type Status int32

// The result codes of DOCA, under DOCA's names. Codes from Authentication on exist since DOCA 2.10.
const (
	Success Status = iota
	Unknown
	NotPermitted
	InUse
	NotSupported
	Again
	InvalidValue
	NoMemory
	Initialization
	TimeOut
	Shutdown
	ConnectionReset
	ConnectionAborted
	ConnectionInProgress
	NotConnected
	NoLock
	NotFound
	IOFailed
	BadState
	UnsupportedVersion
	OperatingSystem
	Driver
	Unexpected
	AlreadyExist
	Full
	Empty
	InProgress
	TooBig
	Authentication
	BadConfig
	Skipped
)

var statusNames = [...]string{
	"DOCA_SUCCESS", "DOCA_ERROR_UNKNOWN", "DOCA_ERROR_NOT_PERMITTED", "DOCA_ERROR_IN_USE", "DOCA_ERROR_NOT_SUPPORTED",
	"DOCA_ERROR_AGAIN", "DOCA_ERROR_INVALID_VALUE", "DOCA_ERROR_NO_MEMORY", "DOCA_ERROR_INITIALIZATION",
	"DOCA_ERROR_TIME_OUT", "DOCA_ERROR_SHUTDOWN", "DOCA_ERROR_CONNECTION_RESET", "DOCA_ERROR_CONNECTION_ABORTED",
	"DOCA_ERROR_CONNECTION_INPROGRESS", "DOCA_ERROR_NOT_CONNECTED", "DOCA_ERROR_NO_LOCK", "DOCA_ERROR_NOT_FOUND",
	"DOCA_ERROR_IO_FAILED", "DOCA_ERROR_BAD_STATE", "DOCA_ERROR_UNSUPPORTED_VERSION", "DOCA_ERROR_OPERATING_SYSTEM",
	"DOCA_ERROR_DRIVER", "DOCA_ERROR_UNEXPECTED", "DOCA_ERROR_ALREADY_EXIST", "DOCA_ERROR_FULL", "DOCA_ERROR_EMPTY",
	"DOCA_ERROR_IN_PROGRESS", "DOCA_ERROR_TOO_BIG", "DOCA_ERROR_AUTHENTICATION", "DOCA_ERROR_BAD_CONFIG",
	"DOCA_ERROR_SKIPPED",
}

// Error returns the code's DOCA name. It makes a Status an error, so that errors.Is(err, cabi.Again) works on all
// errors of this package. Implements: doca_error_get_name.
func (s Status) Error() string {
	if s < 0 || int(s) >= len(statusNames) {
		return fmt.Sprintf("DOCA_ERROR_%d", int32(s))
	}
	return statusNames[s]
}

// Error is a DOCA call that failed.
type Error struct {
	Op     string // the DOCA function, "doca_mmap_start"
	Code   Status
	Detail string // the driver's explanation beyond the code; often empty
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("%s: %s", e.Op, e.Code)
	}
	return fmt.Sprintf("%s: %s: %s", e.Op, e.Code, e.Detail)
}

// Unwrap returns the code, so that errors.Is finds it.
func (e *Error) Unwrap() error { return e.Code }

// ExitCode implements exit.Coder.
func (e *Error) ExitCode() int { return exit.Device }

// Hint implements exit.Coder.
func (e *Error) Hint() string {
	if e.Code == AlreadyExist {
		return "raise --wait, or stop it"
	}
	return "check the device and the other side's error message"
}

// Reword implements exit.Reworder: an error around AlreadyExist names what exists.
func (e *Error) Reword(text, _ string) string {
	if e.Code == AlreadyExist {
		return strings.Replace(text, ": "+e.Error(), "", 1)
	}
	return text
}

// LoadError reports in one sentence why DOCA's libraries could not be loaded.
type LoadError struct{ Reason string }

func (e *LoadError) Error() string { return e.Reason }

// ExitCode implements exit.Coder.
func (e *LoadError) ExitCode() int { return exit.Device }

// Hint implements exit.Coder.
func (e *LoadError) Hint() string { return "install DOCA's runtime libraries, or use --driver soft" }
