package native

import (
	"context"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// conclusion ends a transfer on the receiver when everything is decided and neither a lane nor a job is at work. Any
// goroutine of the transfer calls check, its owner everything else.
type conclusion struct {
	*outcomes
	usesTree  func() bool     // a job still uses the tree, although all of its entries may be decided
	closeTree func() error    // makes durable what is not yet
	working   context.Context // of the transfer; set before the first entry is announced

	mu         sync.Mutex
	finishing  bool // nothing will be announced any more
	lanesDone  bool
	concluding bool // everything is decided
}

// finish notes that nothing will be announced any more, except again.
func (c *conclusion) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finishing = true
}

// lanesEnded notes that no lane is at work any more.
func (c *conclusion) lanesEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lanesDone = true
}

// waits reports whether the sender has finished, and whether it waits for this side to conclude.
func (c *conclusion) waits() (finishing, concluding bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finishing, c.concluding
}

// check ends the transfer once everything is decided and neither a lane nor a job is at work. Entries come first: the
// directory of one that is undecided is not left, and no job begins to use the tree when all are decided.
func (c *conclusion) check() {
	if undecided, _, _ := c.open.counts(); undecided > 0 || !c.directories.empty() || c.usesTree() {
		return
	}
	c.mu.Lock()
	complete := c.finishing && c.lanesDone && !c.concluding
	c.concluding = c.concluding || complete
	c.mu.Unlock()
	if complete {
		c.link.post(c.conclude)
	}
}

// conclude flushes what is not durable yet of a tree, in a job, and reports the end of the transfer. An interruption
// does not keep the sender from learning what has been committed.
func (c *conclusion) conclude() error {
	if err := c.replies.flush(context.WithoutCancel(c.working)); err != nil {
		return err
	}
	if !c.session.Settled() {
		c.mu.Lock()
		c.concluding = false // until the sender has confirmed which entries have failed
		c.mu.Unlock()
		return nil
	}
	if !c.terms.plan.Tree {
		return c.sendFinished(context.WithoutCancel(c.working))
	}
	c.link.run(func() func() error {
		err := c.closeTree()
		return func() error {
			if err != nil {
				return err
			}
			return c.sendFinished(context.WithoutCancel(c.working))
		}
	})
	return nil
}

func (c *conclusion) sendFinished(ctx context.Context) error {
	if err := c.replies.flush(ctx); err != nil {
		return err
	}
	durability := c.terms.durability()
	c.terms.config.Progress.Enter(job.Concluding)
	message, err := c.session.Finished(c.message, durability, c.account.transport())
	if err != nil {
		return err
	}
	c.account.done(durability)
	return c.link.send(ctx, message)
}
