package doca

import "testing"

// What the endpoint has done just before its end is not asked for again: a second time would free what is freed.
func TestAwaitKnowsWhatWasDoneBeforeTheEnd(t *testing.T) {
	e := &endpoint{finished: make(chan struct{})}
	close(e.finished)
	for range 100 {
		result := make(chan error, 1)
		result <- nil
		if err := e.await(result); err != nil {
			t.Fatalf("a command that was run answers: %v", err)
		}
	}
	if err := e.await(make(chan error)); err != ErrClosed {
		t.Errorf("a command that was not run answers: %v", err)
	}
}
