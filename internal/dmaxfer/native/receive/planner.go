package receive

import (
	"context"
	"errors"
	"io/fs"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// planner decides in one job what a receiver needs of the entries, in their order, and creates everything but files.
// The entries between a directory and the next one of its depth are below it:
//
//	stack[0] the root ─► stack[1] ... ─► stack[n], in which entries of depth n+1 are created
//
// A directory gets its final mode and times when it is no longer on the stack and all of its entries are decided.
//
// The owner of the transfer fills queue and closes it, and closes the tree when the job that calls run has returned.
// That job uses everything else, except that a job of digests may call needNew, haveContent and openOwn.
type planner struct {
	t       *role.Transfer
	results *results
	files   *files
	queue   chan *entry // has room for all undecided entries; closed when nothing follows
	tree    *disk.Tree  // nil: the target is a file, or nothing may be written
	stack   []*directory
	prober  disk.Prober

	// The following are for a comparison of trees.
	own    *tree.WalkCursor         // what this side has
	linked map[string]disk.Identity // its files so far that have several names, by path
}

func newPlanner(t *role.Transfer, r *results, f *files) *planner {
	return &planner{
		t: t, results: r, files: f, queue: make(chan *entry, native.MaxOpen), linked: make(map[string]disk.Identity),
	}
}

// run plans entries until nothing follows. An error ends the transfer.
func (p *planner) run(ctx context.Context) error {
	for {
		if len(p.queue) == 0 {
			p.results.replies.requestFlush()
		}
		var e *entry
		more := false
		select {
		case e, more = <-p.queue:
		case <-ctx.Done():
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !more:
			return p.end()
		}
		if err := p.plan(ctx, e); err != nil {
			return err
		}
		p.t.Params.Config.Progress.Touch()
	}
}

// end follows the last entry.
func (p *planner) end() error {
	if err := p.passOwn(nil); err != nil {
		return err
	}
	p.unwind(0)
	p.results.replies.requestFlush()
	return nil
}

// unwind takes the directories from the stack that are no longer filled, so that it has the given depth.
func (p *planner) unwind(depth int) {
	for len(p.stack) > depth {
		last := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		p.results.directories.leave(last)
	}
}

// plan decides about one entry.
func (p *planner) plan(ctx context.Context, e *entry) error {
	p.unwind(e.depth)
	in, path := (*directory)(nil), e.path
	if e.depth > 0 {
		in, path = p.stack[e.depth-1], e.name
		if e.depth > 1 {
			path = in.entry.path + "/" + e.name
		}
		p.results.directories.await(in)
	}
	e.plan(path, in)
	p.results.links.plan(e)
	p.results.log(e).Int64("bytes", e.size).Msg("entry planned")
	if err := p.passOwn(e); err != nil {
		return err
	}
	if e.kind == wire.EntryDirectory {
		return p.planDirectory(e, in)
	}
	if e.kind == wire.EntrySymlink { // which has no user attributes
		p.results.limits.dropAttributes(e)
	}
	switch {
	case in != nil && in.failed != nil:
		return p.results.fail(e, notCreated(e, in.failed))
	case e.overLimit:
		return p.results.fail(e, errHeldAttributes(e))
	case e.kind == wire.EntrySymlink:
		return p.planSymlink(e)
	case e.kind == wire.EntryHardLink:
		return p.planLink(e)
	case in == nil:
		return p.planRoot(ctx, e)
	}
	return p.planFile(ctx, e)
}

// stat returns the Info of what an entry would replace, or is compared with; found is false if there is nothing.
func (p *planner) stat(e *entry) (info disk.Info, found bool, err error) {
	switch d := e.directory; {
	case e.own != nil:
		return e.own.Info, true, e.own.Err
	case d.of != nil && d.of.Fresh(), d.of == nil && d.seen == nil:
		return disk.Info{}, false, nil
	case d.of != nil:
		info, err = d.of.Stat(e.name)
	default:
		info, err = d.seen.Stat(e.name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return disk.Info{}, false, nil
	}
	if err != nil {
		return disk.Info{}, false, cannotExamine(e, err)
	}
	return info, true, nil
}

// cannotExamine returns the error for something at the path of an entry, unless err is a *disk.Error already.
func cannotExamine(e *entry, err error) error {
	if _, is := errors.AsType[*disk.Error](err); is {
		return err
	}
	return disk.NewError(disk.ErrTarget, err, "check the path and its permissions",
		"cannot examine %s: %s", e.path, disk.Reason(err))
}

// mayReplace returns an error unless a file or a symlink of a tree may take the place of what was found.
func (p *planner) mayReplace(e *entry, found disk.Info) error {
	if err := p.unlessRemoved(disk.InTheWay(e.path, found, nil)); err != nil {
		return err
	}
	if !p.t.Params.Plan.Overwrite {
		return disk.ErrorExists(e.path, found, nil)
	}
	return nil
}

// unlessRemoved returns the error for what is in the way of an entry, but nil in the dry run of a sync that removes
// such things before it copies again.
func (p *planner) unlessRemoved(inTheWay error) error {
	if p.t.Params.Plan.DryRun && p.t.Params.Config.Mirror != nil {
		return nil
	}
	return inTheWay
}

// closeTree makes durable what is not yet, and closes the tree. All of its entries have been decided.
func (p *planner) closeTree() error {
	if p.tree == nil {
		return nil
	}
	if err := p.flushTree(); err != nil {
		return err
	}
	tree := p.tree
	p.tree = nil
	if m := p.t.Params.Config.Mirror; m != nil {
		return m.Keep(tree)
	}
	return tree.Close(true)
}

// closeFailed closes what is open when a transfer has failed.
func (p *planner) closeFailed() error {
	p.stack = nil
	if p.own != nil {
		p.own.Close()
	}
	if p.tree == nil {
		return nil
	}
	tree := p.tree
	p.tree = nil
	return tree.Close(false)
}
