package job

import (
	"fmt"
	"runtime/debug"
)

// Defect is a panic that has been recovered, so that it ends a transfer or a connection and not the process. It is an
// ErrHung: memory that a device may still use stays as it is, and so does the device.
type Defect struct {
	Value any
	Stack []byte
}

// Error implements error.
func (d *Defect) Error() string { return fmt.Sprintf("internal error: %v", d.Value) }

// Is implements the interface of errors.Is.
func (d *Defect) Is(target error) bool { return target == ErrHung }

// Recover is deferred. It makes a panic a *Defect in *err. A value with a stack of its own, such as the panic of a
// lane, keeps that.
func Recover(err *error) {
	switch value := recover().(type) {
	case nil:
	case interface {
		Panic() (value any, stack []byte)
	}:
		d := &Defect{}
		d.Value, d.Stack = value.Panic()
		*err = d
	default:
		*err = &Defect{value, debug.Stack()}
	}
}
