package job

import (
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// Limiters are bandwidth limits, in bytes per second. A transfer keeps all of them, and may share each with other
// transfers, which get their chunks in the order in which they ask for them. Any goroutine may use them.
type Limiters []*rate.Limiter

// With returns the limiters and one more for this transfer alone, with a burst of one chunk; both arguments are in
// bytes, a bandwidth of 0 is no limit.
func (l Limiters) With(bandwidth, chunk int64) Limiters {
	if bandwidth <= 0 {
		return l
	}
	return append(slices.Clip(l), rate.NewLimiter(rate.Limit(bandwidth), int(chunk)))
}

// Slowest returns the lowest limit, in bytes per second; 0 if there is none.
func (l Limiters) Slowest() (limit int64) {
	for _, each := range l {
		if each.Limit() == rate.Inf {
			continue
		}
		if own := max(int64(each.Limit()), 1); limit == 0 || own < limit {
			limit = own
		}
	}
	return limit
}

// Pace returns a function that waits until all limiters permit a chunk of so many bytes, or until its context ends; nil
// without limiters. Waiting for a bandwidth limit is progress, however long it takes: touch is called at each interval.
func (l Limiters) Pace(interval time.Duration, touch func()) func(ctx context.Context, length int64) error {
	if len(l) == 0 {
		return nil
	}
	return func(ctx context.Context, length int64) error {
		reserved, left := l.reserve(length)
		for ; left > 0; left -= interval {
			select {
			case <-time.After(min(left, interval)):
				touch()
			case <-ctx.Done():
				for _, r := range slices.Backward(reserved) {
					r.Cancel() // for the other transfers
				}
				return context.Cause(ctx)
			}
		}
		return nil
	}
}

// reserve takes a chunk from all limiters, and returns how long it has to wait. It does not look ahead to a deadline,
// as the limiter's own wait does, since that is not yet the cause of anything.
func (l Limiters) reserve(length int64) (reserved []*rate.Reservation, delay time.Duration) {
	now := time.Now()
	for _, each := range l {
		if each.Limit() == rate.Inf {
			continue
		}
		for left := length; left > 0; { // a limiter refuses what exceeds its burst
			part := min(left, max(int64(each.Burst()), 1))
			r := each.ReserveN(now, int(part))
			reserved, delay = append(reserved, r), max(delay, r.DelayFrom(now))
			left -= part
		}
	}
	return reserved, delay
}
