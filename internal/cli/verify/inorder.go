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

// each returns a function that returns one item after the other, and then io.EOF.
func each[T any](items []T) func() (item T, err error) {
	return func() (item T, err error) {
		if len(items) == 0 {
			return item, io.EOF
		}
		item, items = items[0], items[1:]
		return item, nil
	}
}

// inOrder calls work for what next returns, in several goroutines, and then done with the results one at a time and in
// the order of next. It ends at io.EOF of next, and otherwise with the first error of next or done, or the cause of
// ctx.
func inOrder[T, R any](
	ctx context.Context, next func() (T, error), work func(context.Context, T) R, done func(T, R) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	results := make(chan chan func() error, maxAhead) // what to do with each result, in order, as soon as there is one
	group.Go(func() error {
		defer close(results)
		var workers errgroup.Group
		workers.SetLimit(min(maxWorkers, runtime.GOMAXPROCS(0)))
		defer workers.Wait()
		for {
			item, err := next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			result := make(chan func() error, 1)
			select {
			case results <- result:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if err != nil {
				result <- func() error { return err } // after the results before it
				return nil
			}
			workers.Go(func() error {
				found := work(ctx, item)
				result <- func() error { return done(item, found) }
				return nil
			})
		}
	})
	group.Go(func() error {
		for result := range results {
			select {
			case finish := <-result:
				if err := finish(); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return group.Wait()
}
