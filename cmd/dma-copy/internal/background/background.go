// Package background runs what a command does beside its work, such as showing progress, and ends it in time.
package background

import "os"

// Run runs a function in a goroutine. stop, which is to be called once, tells it to return by closing quit, and waits
// until it has.
func Run(function func(quit <-chan struct{})) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		function(quit)
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// Answer calls answer, in a goroutine, for each signal of asked, until stop is called as for Run. A nil channel never
// asks.
func Answer(asked <-chan os.Signal, answer func()) (stop func()) {
	return Run(func(quit <-chan struct{}) {
		for {
			select {
			case <-asked:
				answer()
			case <-quit:
				return
			}
		}
	})
}
