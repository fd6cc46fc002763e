package receive

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	weighted "golang.org/x/sync/semaphore"
)

// commitGate lets lanes and jobs of a receiver commit files until halt is called, so that a receiver which gives up can
// report everything that it has committed. Any goroutine of the transfer uses it.
type commitGate struct {
	running *weighted.Weighted // has a permit for each lane or job that is committing files
	halted  atomic.Bool        // nothing may be committed any more
}

// errHalted ends what would commit files after halt.
var errHalted = errors.New("the transfer was given up")

func newCommitGate() *commitGate { return &commitGate{running: weighted.NewWeighted(math.MaxInt64)} }

// begin reports whether a lane or a job may commit files. If so it calls end when their results are in the outbox.
func (g *commitGate) begin() bool { return !g.halted.Load() && g.running.TryAcquire(1) }

func (g *commitGate) end() { g.running.Release(1) }

// halt has nothing more committed, and waits for what is just being committed. It is called once.
func (g *commitGate) halt(ctx context.Context) error {
	g.halted.Store(true)
	if g.running.Acquire(ctx, math.MaxInt64) != nil {
		return errors.New("a file is still being committed")
	}
	return nil
}
