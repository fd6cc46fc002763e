package doca

import "time"

// drainTime is how long a Close waits for the device to let go of memory.
const drainTime = 10 * time.Second

// awaitIdle polls a context that was told to stop until it is idle, and reports whether it is within drainTime. It looks
// again and again, ever more seldom: the end of a context must not depend on a notification that may itself fail.
func awaitIdle(idle, poll func() (moved bool)) bool {
	giveUp, pause := time.Now().Add(drainTime), minRetryPause
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
