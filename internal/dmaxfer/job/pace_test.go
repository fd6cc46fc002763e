package job

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// paceOf returns how a lane of a transfer waits for its limiters.
func paceOf(limiters ...*rate.Limiter) func(context.Context, int64) error {
	return Limiters(limiters).Pace(LongestPulse, func() {})
}

// Transfers that share a limiter get the same share of it, and all of it together, however long their chunks are.
func TestSharedLimiterIsFair(t *testing.T) {
	const bandwidth, seconds = 1 << 20, 20
	for _, burst := range []int{64 << 10, 4 << 10} {
		synctest.Test(t, func(t *testing.T) {
			shared := rate.NewLimiter(bandwidth, burst)
			ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
			defer cancel()
			var moved [4]int64
			var transfers sync.WaitGroup
			for i := range moved {
				pace := paceOf(shared, rate.NewLimiter(rate.Inf, 0))
				transfers.Go(func() {
					for pace(ctx, 64<<10) == nil {
						moved[i] += 64 << 10
					}
				})
			}
			transfers.Wait()
			total := int64(0)
			for i, bytes := range moved {
				total += bytes
				if share := int64(bandwidth * seconds / len(moved)); bytes < share*9/10 || bytes > share*11/10 {
					t.Errorf("transfer %d of %d got %d bytes, want about %d", i, len(moved), bytes, share)
				}
			}
			if want := int64(bandwidth * seconds); total < want*95/100 || total > want*105/100 {
				t.Errorf("together they got %d bytes, want about %d", total, want)
			}
		})
	}
}

// Of several limiters the slowest counts, and an interruption ends the wait with its cause.
func TestLimitersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := rate.NewLimiter(1<<20, 1<<20), rate.NewLimiter(4<<10, 4<<10)
		pace := paceOf(fast, slow)
		began := time.Now()
		for range 3 {
			if err := pace(t.Context(), 4<<10); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("three chunks took %s, want two seconds, since the first is free", took)
		}
		late := errors.New("late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		if err := pace(ctx, 64<<10); !errors.Is(err, late) {
			t.Errorf("an interrupted wait: %v", err)
		}
		began = time.Now()
		if err := pace(t.Context(), 4<<10); err != nil || time.Since(began) > time.Second {
			t.Errorf("after a transfer that was interrupted, another one waits %s: %v", time.Since(began), err)
		}
	})
	if paceOf() != nil {
		t.Error("a transfer without a limit waits")
	}
}
