package job

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/dma-copy/dma-copy/internal/exit"
)

// Defect is a panic that has been recovered, so that it ends a transfer or a connection and not the process. It is an
// ErrHung: memory that a device may still use stays as it is, and so does the device.
type Defect struct {
	Value any
	Stack []byte
}

// Error implements error.
func (d *Defect) Error() string { return fmt.Sprintf("internal error: %v", d.Value) }

// ExitCode implements exit.Coder.
func (d *Defect) ExitCode() int { return exit.Failure }

// Hint implements exit.Coder.
func (d *Defect) Hint() string { return "report it, with what follows" }

// Is implements the interface of errors.Is.
func (d *Defect) Is(target error) bool { return target == ErrHung }

// recovered is a panic recovered by a package that does not know Defect, such as a lane's.
type recovered interface {
	error
	Panic() (value any, stack []byte)
}

// defectOf returns the first of several panics, each recovered by the next goroutine, which then panicked with it.
func defectOf(r recovered) *Defect {
	d := &Defect{}
	for d.Value = r; ; {
		cause, is := d.Value.(recovered)
		if !is {
			return d
		}
		d.Value, d.Stack = cause.Panic()
	}
}

// Recover is deferred. It makes a panic a *Defect in *err. A value with a stack of its own, such as the panic of a
// lane, keeps that.
func Recover(err *error) {
	switch value := recover().(type) {
	case nil:
	case recovered:
		*err = defectOf(value)
	default:
		*err = &Defect{value, debug.Stack()}
	}
}

// DefectIn returns the panic that an error is, or wraps, also one of a driver; nil: none.
func DefectIn(err error) *Defect {
	if d, is := errors.AsType[*Defect](err); is {
		return d
	}
	if r, is := errors.AsType[recovered](err); is {
		return defectOf(r)
	}
	return nil
}
