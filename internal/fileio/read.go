package fileio

import (
	"context"
	"time"
)

// stopTime is how long a command that reads may take to stop once it is interrupted.
const stopTime = time.Second

// Interruptible runs a job that may block in a system call that cannot be interrupted, such as a read from a file
// system that does not answer. If the job takes longer than stopTime after the end of ctx, its goroutine is left
// behind and the cause of that end is returned.
func Interruptible(ctx context.Context, job func() error) error {
	done := make(chan error, 1)
	go func() { done <- job() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stopTime):
		return context.Cause(ctx)
	}
}
