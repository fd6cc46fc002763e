package doca

import (
	"errors"
	"testing"
)

// A caller that gives a command up as lost must not repeat what run has done.
func TestResultCountsAlthoughRunHasEnded(t *testing.T) {
	e := &endpoint{finished: make(chan struct{})}
	close(e.finished)
	want := errors.New("the result")
	for range 100 {
		result := make(chan error, 1)
		result <- want
		if err := e.await(result, ErrClosed); err != want {
			t.Fatalf("got %v", err)
		}
	}
	if err := e.await(make(chan error), ErrClosed); err != ErrClosed {
		t.Errorf("without a result: %v", err)
	}
}
