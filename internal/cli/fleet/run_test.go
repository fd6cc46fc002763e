package fleet_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/fleet"
)

// TestRun makes copies of which each takes a second: as many as permitted run at the same time, in the order of the
// list.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var ended []int
		send := func(_ context.Context, i int) time.Duration {
			started := time.Since(began)
			time.Sleep(time.Second)
			return started
		}
		fleet.Run(t.Context(), 10, 4, send, func(i int, started time.Duration) bool {
			if want := time.Duration(i/4) * time.Second; started != want {
				t.Errorf("copy %d began after %s, not %s", i, started, want)
			}
			ended = append(ended, i)
			return true
		})
		if slices.Sort(ended); !slices.Equal(ended, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("ended %v", ended)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestRunStops ends the context, or the caller's interest, while copies run: these end, and no other begins.
func TestRunStops(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := errors.New("stop")
			var ended []int
			send := func(ctx context.Context, i int) error {
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(i+1) * time.Second):
				}
				return context.Cause(ctx)
			}
			fleet.Run(ctx, 10, 3, send, func(i int, err error) bool {
				ended = append(ended, i)
				if cancelled {
					cancel(stop)
				}
				return cancelled
			})
			cancel(nil)
			if slices.Sort(ended); !slices.Equal(ended, []int{0, 1, 2}) {
				t.Errorf("cancelled %t: ended %v", cancelled, ended)
			}
		})
	}
}
