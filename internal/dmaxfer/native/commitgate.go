package native

import (
	"context"
	"errors"
	"sync"
)

// commitGate lets lanes and jobs of a receiver commit files until halt is called, so that a receiver which gives up can
// report everything that it has committed. Any goroutine of the transfer uses it.
type commitGate struct {
	mu      sync.Mutex
	running int           // lanes and jobs that are committing files
	halted  bool          // nothing may be committed any more
	idle    chan struct{} // closed when halted and nothing is being committed
}

// errHalted ends what would commit files after halt.
var errHalted = errors.New("the transfer was given up")

func newCommitGate() *commitGate { return &commitGate{idle: make(chan struct{})} }

// begin reports whether a lane or a job may commit files. If so it calls end when their results are in the outbox.
func (g *commitGate) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.halted {
		return false
	}
	g.running++
	return true
}

func (g *commitGate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 && g.halted {
		close(g.idle)
	}
}

// halt has nothing more committed, and waits for what is just being committed. It is called once.
func (g *commitGate) halt(ctx context.Context) error {
	g.mu.Lock()
	g.halted = true
	if g.running == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return errors.New("a file is still being committed")
	}
}
