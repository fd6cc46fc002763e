package native

import (
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// whileFlushing makes a call that flushes. It does not report how far it is, and may have to write what other processes
// have written, too. For some time it counts as progress.
func whileFlushing(progress *job.Progress, flush func() error) error {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(flushTick)
		defer tick.Stop()
		for range slowFlush / flushTick {
			select {
			case <-tick.C:
				progress.Touch()
			case <-stop:
				return
			}
		}
	}()
	return flush()
}
