package receive

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// announce passes entries to the planner in their order. One with extended attributes waits until they have arrived.
func (r *Receiver) announce(ctx context.Context, entries []wire.Entry) error {
	p := r.t.Params
	for i := range entries {
		e := newEntry(p, &entries[i])
		r.announced += max(e.size, 0)
		if err := p.CheckSize(r.announced); err != nil {
			return err
		}
		r.entries++
		if limit := p.Config.MaxEntries; limit > 0 && r.entries > limit {
			return job.OverEntries(p.Config.File.Path, limit)
		}
		r.t.Stats.Found(e.size)
		p.Config.Mirror.Announced(e.kind, e.depth, e.name)
		r.t.Session.Attach(e.number, e)
		e.awaited = e.hasAttributes && e.kind != wire.EntryFile // a file gets them when it is needed
		r.held = append(r.held, e)
	}
	if !p.Plan.Tree {
		r.planFile(ctx)
		return nil
	}
	r.passHeld()
	r.due = true
	return r.start(ctx)
}

// planFile has the only entry of a transfer planned.
func (r *Receiver) planFile(ctx context.Context) {
	e := r.held[0]
	r.held = nil
	plan := func(ctx context.Context) error { return r.planner.plan(ctx, e) }
	r.runPlanner(ctx, plan, func(ctx context.Context) error {
		r.due = true
		return r.start(ctx)
	})
}

// passHeld passes the entries to the planner that do not wait for attributes.
func (r *Receiver) passHeld() {
	ready := 0
	for ready < len(r.held) && !r.held[ready].awaited {
		r.planner.queue <- r.held[ready]
		ready++
	}
	r.held = r.held[:copy(r.held, r.held[ready:])]
}

// addAttributes adds a fragment of the extended attributes of an entry. If a directory or symlink exceeds the
// limit they are dropped, and the planner fails it.
func (r *Receiver) addAttributes(number uint32, m native.Metadata) error {
	e := r.undecided(number)
	if e == nil {
		return nil
	}
	if m.Offset == 0 {
		e.overLimit = !r.results.limits.holdAttributes(e, int64(m.Total))
	}
	complete, err := e.addAttributes(m)
	if err != nil || !complete {
		return err
	}
	e.awaited = false
	r.passHeld()
	return nil
}
