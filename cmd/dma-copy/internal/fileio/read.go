package fileio

import (
	"context"
	"errors"
	"io"
	"time"
)

// stopTime is how long a command that reads may take to end by itself once it is interrupted.
const stopTime = time.Second

// Interruptible runs a job that may block in a system call which nothing can interrupt, such as a read from a file
// system that does not answer. A job that goes on for stopTime after the end of ctx is left behind, and the cause of
// that end is returned.
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

var ErrTooLarge = errors.New("too large")

// ReadAtMost reads to the end. ErrTooLarge if there is more than limit bytes.
func ReadAtMost(from io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = ErrTooLarge
	}
	return text, err
}
