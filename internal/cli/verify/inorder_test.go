package verify

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// numbers returns a function that returns the numbers below n, and then end.
func numbers(n int, end error) func() (int, error) {
	next := 0
	return func() (int, error) {
		if next == n {
			return 0, end
		}
		next++
		return next - 1, nil
	}
}

// Results are passed on in order, although later ones are there first, and several are computed at once.
func TestResultsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		var running, most atomic.Int32
		work := func(_ context.Context, i int) int {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Duration(1+i*7%13) * time.Millisecond)
			return 2 * i
		}
		var got []int
		err := inOrder(t.Context(), numbers(n, io.EOF), work, func(i, result int) error {
			got = append(got, result-i)
			return nil
		})
		if want, _ := collectAll(numbers(n, io.EOF)); err != nil || !slices.Equal(got, want) {
			t.Errorf("error %v, %d results: %v", err, len(got), got)
		}
		if most.Load() > maxWorkers {
			t.Errorf("%d at once, want at most %d", most.Load(), maxWorkers)
		}
	})
}

func collectAll(next func() (int, error)) (all []int, err error) {
	for {
		i, err := next()
		if err != nil {
			return all, err
		}
		all = append(all, i)
	}
}

// The first error in the order of the files is returned, after the results before it.
func TestErrorsAreInOrder(t *testing.T) {
	failed := errors.New("failed")
	nothing := func(context.Context, int) int { return 0 }
	results := 0
	count := func(int, int) error {
		results++
		return nil
	}
	if err := inOrder(t.Context(), numbers(100, failed), nothing, count); err != failed || results != 100 {
		t.Errorf("error %v after %d results", err, results)
	}
	refuse := func(i, _ int) error {
		if i == 50 {
			return failed
		}
		return nil
	}
	if err := inOrder(t.Context(), numbers(100_000, io.EOF), nothing, refuse); err != failed {
		t.Errorf("error %v", err)
	}
}

func TestInOrderIsInterrupted(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	wait := func(ctx context.Context, _ int) int {
		stop(stopped)
		<-ctx.Done()
		return 0
	}
	err := inOrder(ctx, numbers(100, io.EOF), wait, func(int, int) error { return nil })
	if err != stopped {
		t.Errorf("error %v", err)
	}
}
