package verify

import (
	"context"
	"errors"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"
)

const (
	// maxWorkers is how many files are read at once: more do not make a disk faster.
	maxWorkers = 4

	// maxAhead is how many files may be read before the result of an earlier one.
	maxAhead = 64
)

// task is one file, and its result as soon as there is one.
type task[T, R any] struct {
	of     T
	err    error // of next
	result chan R
}

// inOrder calls work for what next returns, in several goroutines, and then done with the results one at a time and in
// the order of next. It ends at io.EOF of next, and otherwise with the first error of next or done, or the cause of
// ctx.
func inOrder[T, R any](
	ctx context.Context, next func() (T, error), work func(context.Context, T) R, done func(T, R) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	ordered := make(chan task[T, R], maxAhead)
	group.Go(func() error {
		defer close(ordered)
		return distribute(ctx, next, work, ordered)
	})
	group.Go(func() error { return collect(ctx, ordered, done) })
	return group.Wait()
}

// distribute has the workers read what next returns, and hands it to the collector.
func distribute[T, R any](
	ctx context.Context, next func() (T, error), work func(context.Context, T) R, ordered chan<- task[T, R],
) error {
	var workers errgroup.Group
	workers.SetLimit(min(maxWorkers, runtime.GOMAXPROCS(0)))
	defer workers.Wait()
	for {
		t := task[T, R]{result: make(chan R, 1)}
		t.of, t.err = next()
		if errors.Is(t.err, io.EOF) {
			return nil
		}
		select {
		case ordered <- t:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if t.err != nil {
			return nil // the collector returns it when all results before it are done
		}
		workers.Go(func() error {
			t.result <- work(ctx, t.of)
			return nil
		})
	}
}

func collect[T, R any](ctx context.Context, ordered <-chan task[T, R], done func(T, R) error) error {
	for t := range ordered {
		if t.err != nil {
			return t.err
		}
		select {
		case result := <-t.result:
			if err := done(t.of, result); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
