package doca

import (
	"errors"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// submitAny retries a submission that is refused although nothing is in flight: the device may be busy, and then
// ErrQueueFull would tell the caller to reap without anything to reap. A device that accepts nothing within drainTime
// is an error. Implements: DOCA_ERROR_AGAIN of doca_task_submit.
func submitAny(submit func() (int, error), inflight func() int) (int, error) {
	var giveUp time.Time
	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		n, err := submit()
		if n > 0 || inflight() > 0 || !errors.Is(err, ErrQueueFull) {
			return n, err
		}
		if giveUp.IsZero() {
			giveUp = time.Now().Add(drainTime)
		} else if time.Now().After(giveUp) {
			detail := "the device is idle but accepts no task"
			return 0, &Error{Op: "doca_task_submit", Code: cabi.TimeOut, Detail: detail}
		}
		time.Sleep(pause)
	}
}

// awaitIdle polls a context that was requested to stop until it is idle, and reports whether it is before giveUp. It
// polls at growing intervals, because the end of a context must not depend on a notification that may itself fail.
func awaitIdle(giveUp time.Time, idle, poll func() (moved bool)) bool {
	pause := minRetryPause
	for !idle() {
		if poll() {
			pause = minRetryPause
			continue
		}
		if time.Now().After(giveUp) {
			return false
		}
		time.Sleep(pause)
		pause = min(2*pause, maxRetryPause)
	}
	return true
}
