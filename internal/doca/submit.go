package doca

import (
	"errors"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// How long to wait before trying again what was refused for no reason that anything announces.
const (
	minRetryPause = 10 * time.Microsecond
	maxRetryPause = 5 * time.Millisecond
)

// submitAny keeps ErrQueueFull from a caller who could do nothing about it: a device may be busy although nothing is in
// flight, and then there is nothing to reap. So it tries again until something was taken. A device that takes nothing
// within drainTime is an error. Implements: DOCA_ERROR_AGAIN of doca_task_submit.
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
			return 0, &Error{Op: "doca_task_submit", Code: cabi.TimeOut, Detail: "the device is idle but accepts no task"}
		}
		time.Sleep(pause)
	}
}
