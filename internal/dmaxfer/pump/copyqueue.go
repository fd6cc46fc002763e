package pump

import (
	"context"
	"fmt"
)

// copyQueue hands one lane's copies to its engine. Without an engine it is empty.
type copyQueue struct {
	engine  Engine // nil: the lane needs none
	stages  *Stages
	waiting []Move  // not accepted by the engine yet
	ended   []Moved // reused by poll and reap
}

// newCopyQueue returns a queue for up to depth copies. poll and reap return at most atOnce of them.
func newCopyQueue(engine Engine, stages *Stages, depth, atOnce int) copyQueue {
	return copyQueue{engine: engine, stages: stages, waiting: make([]Move, 0, depth), ended: make([]Moved, atOnce)}
}

func (q *copyQueue) add(m Move) { q.waiting = append(q.waiting, m) }

// last returns the copy that was added last. It must still be waiting.
func (q *copyQueue) last() *Move { return &q.waiting[len(q.waiting)-1] }

// submit passes on as many copies as the engine accepts.
func (q *copyQueue) submit() error {
	if len(q.waiting) == 0 {
		return nil
	}
	watch := q.stages.start()
	accepted, err := q.engine.Submit(q.waiting)
	watch.charge(Copying)
	q.waiting = q.waiting[:copy(q.waiting, q.waiting[accepted:])]
	return err
}

// poll returns copies that have ended, valid until the next call of poll or reap.
func (q *copyQueue) poll() []Moved {
	if q.engine == nil {
		return nil
	}
	return q.ended[:q.engine.Poll(q.ended)]
}

// reap waits for the end of at least one copy and returns like poll.
func (q *copyQueue) reap(ctx context.Context) ([]Moved, error) {
	watch := q.stages.start()
	defer watch.charge(Copying)
	n, err := q.engine.Reap(ctx, q.ended)
	return q.ended[:n], err
}

func (q *copyQueue) inFlight() int {
	if q.engine == nil {
		return 0
	}
	return q.engine.Inflight()
}

func moveFailed(u *Unit, err error) error { return fmt.Errorf("copying %s: %w", u, err) }
