package doca

import (
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/softdoca/abi"
)

// Error is a DOCA call that failed: Op is the DOCA function and Code its result, which errors.Is finds.
type Error = cabi.Error

// Code is a DOCA result code. Source: doca_error.h.
type Code = cabi.Status

// LoadError reports in one sentence why DOCA's libraries could not be loaded.
type LoadError = cabi.LoadError

// SoftError reports in one sentence why the software device cannot be configured: its runtime directory, its limits,
// the system.
type SoftError struct {
	Reason string
	NoProc bool // /proc is not mounted; no setting of the software device is the cause
}

func (e *SoftError) Error() string { return e.Reason }

// ExitCode implements exit.Coder.
func (e *SoftError) ExitCode() int {
	if e.NoProc {
		return exit.Device
	}
	return exit.Usage
}

// Hint implements exit.Coder.
func (e *SoftError) Hint() string {
	if e.NoProc {
		return "mount it (mount -t proc proc /proc)"
	}
	return "see DMA_COPY_SOFT_DIR and DMA_COPY_SOFT_LIMITS in the help"
}

// Codes that callers handle.
const (
	CodeAgain        = cabi.Again
	CodeIOFailed     = cabi.IOFailed
	CodeInvalidValue = cabi.InvalidValue
	CodeNotSupported = cabi.NotSupported
	CodeInUse        = cabi.InUse
	CodeBadState     = cabi.BadState
	CodeNoMemory     = cabi.NoMemory
	CodeNotConnected = cabi.NotConnected
	CodeAlreadyExist = cabi.AlreadyExist
	CodeDriver       = cabi.Driver
	CodeNotPermitted = cabi.NotPermitted
	CodeFull         = cabi.Full
	CodeShutdown     = cabi.Shutdown

	CodeTimeOut           = cabi.TimeOut
	CodeConnectionReset   = cabi.ConnectionReset
	CodeConnectionAborted = cabi.ConnectionAborted
)

var (
	// ErrNoCgo means that the program was built without cgo and has no device layer.
	ErrNoCgo = abi.ErrNoCgo

	// ErrQueueFull means that completions must be reaped before more copies are submitted. It is CodeAgain.
	ErrQueueFull error = cabi.Again

	// ErrClosed is returned by every use of a closed object.
	ErrClosed = errors.New("already closed")

	// ErrBadAddress means that a text is not a PCI address.
	ErrBadAddress = exit.NewReason(exit.Usage, "", "not a PCI address")

	// ErrHardwareRequired means that only the software device was available and the caller refused it.
	ErrHardwareRequired = exit.NewReason(exit.NotHardware, "leave out --require-hw to use the software device",
		"hardware required")

	// ErrNoServer means that no server answers under that name yet.
	ErrNoServer = errors.New("no server of that name answers")

	// ErrRefused means that the server refuses this client: CodeInvalidValue if their maximum message sizes differ,
	// CodeFull if it has its maximum of clients, CodeShutdown if it is closing. Only the software device reports it;
	// with DOCA it is ErrNoServer.
	ErrRefused = errors.New("the server refused the connection")

	// ErrDisconnected means that the other side ended the connection or died.
	ErrDisconnected = errors.New("connection lost")

	// ErrStillRunning means that the device did not stop in time; memory that it may use is kept, not freed.
	ErrStillRunning = errors.New("timeout: the device did not stop")
)

// NotFoundError reports which device or representor is missing, and which are available.
type NotFoundError struct {
	Kind      string // "device" or "representor"
	Name      string
	Available []string
}

func (e *NotFoundError) Error() string {
	if len(e.Available) == 0 {
		return fmt.Sprintf("no %s %s: there are none", e.Kind, e.Name)
	}
	return fmt.Sprintf("no %s %s: there are %s", e.Kind, e.Name, joinWords(e.Available))
}

// ExitCode implements exit.Coder.
func (e *NotFoundError) ExitCode() int { return exit.Device }

// HintDoctor is the hint where there is no device.
const HintDoctor = "run \"dma-copy doctor\" to find the cause"

// Hint implements exit.Coder.
func (e *NotFoundError) Hint() string {
	switch {
	case len(e.Available) == 0:
		return HintDoctor
	case e.Kind == "device":
		return "choose one of them with -p"
	}
	return "choose one of them with -r"
}

func joinWords(words []string) string {
	text := words[0]
	for i, w := range words[1:] {
		if i == len(words)-2 {
			text += " and " + w
		} else {
			text += ", " + w
		}
	}
	return text
}
