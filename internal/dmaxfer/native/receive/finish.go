package receive

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	weighted "golang.org/x/sync/semaphore"
)

// finisher ends a transfer when everything is decided and neither a lane nor a job is at work:
//
//	FINISH ─► lanes ended ─► all decided, all directories left ─► tree closed ─► FINISHED
//
// The owner of the transfer uses it, and calls check whenever one of these may have come true. A transfer that was
// given up does not end so.
type finisher struct {
	t           *role.Transfer
	replies     *replies
	directories *directories
	packs       *packs
	gate        *commitGate
	closeTree   func() error // makes durable what is not yet

	finishing  bool // nothing will be announced any more
	lanesEnded bool
	concluding bool // everything is decided
}

// check flushes what is not durable yet of a tree, in a job, and reports the end of the transfer, if that has come. An
// interruption does not keep the sender from learning what has been committed.
func (f *finisher) check(ctx context.Context) error {
	if !f.finishing || !f.lanesEnded || f.concluding || !f.directories.allLeft() || f.packs.staging.isFlushing() {
		return nil
	}
	if f.t.Session.State() != native.Finishing || f.gate.halted.Load() {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err := f.replies.flush(ctx); err != nil {
		return err
	}
	if !f.t.Session.Settled() {
		return nil // until the sender has confirmed which entries have failed
	}
	f.concluding = true
	if !f.t.Params.Plan.Tree {
		return f.sendFinished(ctx)
	}
	f.t.Link.Run(ctx, func(context.Context) role.Call {
		if err := f.closeTree(); err != nil {
			return role.FailWith(err)
		}
		return func(ctx context.Context) error { return f.sendFinished(context.WithoutCancel(ctx)) }
	})
	return nil
}

func (f *finisher) sendFinished(ctx context.Context) error {
	if err := f.replies.flush(ctx); err != nil {
		return err
	}
	durability := f.t.Params.Durability()
	f.t.Params.Config.Progress.Enter(job.Concluding)
	message, err := f.t.Session.Finished(f.t.Message, durability, f.t.Stats.Transport())
	if err != nil {
		return err
	}
	f.t.Stats.Done(durability)
	return f.t.Link.Send(ctx, message)
}

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
