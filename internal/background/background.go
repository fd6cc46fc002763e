// Package background runs what a command does in addition to its work, such as showing progress, and ends it in time.
package background

import (
	"os"
	"time"
)

// Answer calls answer, in a goroutine, for each signal of asked, until stop is called, which is to be done once, and
// which waits for a call that runs. A nil channel never asks.
func Answer(asked <-chan os.Signal, answer func()) (stop func()) { return Watch(0, nil, asked, answer) }

// Watch is Answer that also calls tick at an interval, unless that is 0.
func Watch(interval time.Duration, tick func(), asked <-chan os.Signal, answer func()) (stop func()) {
	var ticks <-chan time.Time
	if interval > 0 {
		ticks = time.Tick(interval)
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticks:
				tick()
			case <-asked:
				answer()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}
