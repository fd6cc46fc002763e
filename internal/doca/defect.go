package doca

import (
	"fmt"
	"runtime/debug"
)

// defect is the error for a panic in the goroutine of an endpoint, which works for all connections of the endpoint. It
// ends those that it may concern, and not the process.
type defect struct {
	value any
	stack []byte
}

// Error implements error.
func (d *defect) Error() string { return fmt.Sprintf("internal error: %v", d.value) }

// Panic returns the value and the stack.
func (d *defect) Panic() (value any, stack []byte) { return d.value, d.stack }

// protect makes a call, and turns a panic of it into an error.
func protect(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &defect{value, debug.Stack()}
		}
	}()
	return call()
}
