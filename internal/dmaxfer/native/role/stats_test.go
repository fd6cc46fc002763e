package role

import (
	"io"
	"sync"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/rs/zerolog"
)

// loggedCopying calls a function when a transfer logs that data is about to move.
type loggedCopying func()

// Run implements zerolog.Hook.
func (l loggedCopying) Run(_ *zerolog.Event, _ zerolog.Level, message string) {
	if message == "copying" {
		l()
	}
}

// The planner of a receiver and the opening of its window are goroutines of their own. Whichever is last, the progress
// has the size of the file when the transfer says that data is about to move.
func TestSizeIsKnownBeforeDataMoves(t *testing.T) {
	const size, resumed = 100, 7
	for range 2000 {
		progress, said := &job.Progress{}, 0
		log := zerolog.New(io.Discard).Hook(loggedCopying(func() {
			said++
			if s := progress.Sample(); s.Phase != job.Moving || s.Total != size || s.Resumed != resumed {
				t.Errorf("phase %s, %d bytes, of which %d were there", s.Phase, s.Total, s.Resumed)
			}
		}))
		s := NewStats(NewParams(&Config{Options: Options{Progress: progress, Log: log}}))
		var both sync.WaitGroup
		both.Go(func() { s.Begins(size, resumed) })
		both.Go(func() { s.WindowOpened("") })
		both.Wait()
		if said != 1 || t.Failed() {
			t.Fatalf("said %d times", said)
		}
	}
}
