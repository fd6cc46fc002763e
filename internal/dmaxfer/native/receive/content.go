package receive

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file is how a planner decides whether the content of a file is needed.

// planFile decides whether a file of a tree is needed.
func (p *planner) planFile(ctx context.Context, e *entry) error {
	info, found, err := p.stat(e)
	if err != nil {
		return p.results.fail(e, err)
	}
	if p.own != nil && p.t.Params.Plan.Links && found && info.Links > 1 {
		p.linked[e.path] = info.Identity // the path of a followed symlink cannot be looked up later
	}
	return p.planContent(ctx, e, info, found)
}

// planRoot decides whether the file of a transfer without a tree is needed.
func (p *planner) planRoot(ctx context.Context, e *entry) error {
	c, plan := p.t.Params.Config, &p.t.Params.Plan
	compares := e.size != job.Unknown && (plan.Overwrite || plan.Compare)
	if c.File.Stream || !compares && !plan.IgnoreExisting {
		return p.files.need(ctx, e, native.ChangeNew) // what is there, if anything, fails it
	}
	info, err := c.File.FS.Stat(c.File.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannotExamine(e, err)
	}
	return p.planContent(ctx, e, info, err == nil)
}

// planContent decides by what the target has already whether the content of a file is needed.
func (p *planner) planContent(ctx context.Context, e *entry, info disk.Info, found bool) error {
	c, plan := p.t.Params.Config, &p.t.Params.Plan
	change, uncertain := p.change(e, info, found)
	if plan.Overwrite && change > native.ChangeContent {
		e.change = change
	}
	same := change == native.ChangeNone
	switch {
	case found && plan.IgnoreExisting:
		p.results.keep(e)
	case c.HideContent && (plan.Checksum || uncertain):
		return p.needNew(ctx, e, info, cmp.Or(change, native.ChangeContent))
	case uncertain, p.comparesContent(change):
		e.become(compared)
		p.results.log(e).Msg("entry compared")
		p.results.replies.answer(e, native.Answer{Kind: native.AnswerSum})
	case plan.Compare && !same:
		return p.differs(e.path)
	case same && (plan.Overwrite || plan.Tree),
		!c.HideContent && (e.change == native.ChangeMode || e.change == native.ChangeOwner):
		return p.haveContent(ctx, e, info)
	default:
		return p.needNew(ctx, e, info, change)
	}
	return nil
}

// change returns why a file is needed, as far as its content has not to be read for that. If uncertain, the content has
// to be compared.
func (p *planner) change(e *entry, info disk.Info, found bool) (change native.Change, uncertain bool) {
	switch {
	case !found:
		return native.ChangeNew, false
	case !info.Mode.IsRegular():
		return native.ChangeType, false
	case info.Size != e.size:
		return native.ChangeSize, false
	}
	change, uncertain = p.compareAttributes(e, info)
	if change == native.ChangeNone && !p.sameXattrs(e) {
		return native.ChangeXattr, false
	}
	return change, uncertain
}

// comparesContent reports whether a file that exists with the size of the source is compared by its digest; change is
// what else differs. A file with another time often has the same content. A file that may not be replaced is not needed
// then.
func (p *planner) comparesContent(change native.Change) bool {
	plan, hides := &p.t.Params.Plan, p.t.Params.Config.HideContent
	switch same := change == native.ChangeNone; {
	case !same && change <= native.ChangeContent:
		return false
	case plan.Checksum:
		return true
	case plan.Compare:
		return !same || !plan.Tree
	case plan.Overwrite:
		return change == native.ChangeTime && !hides && !plan.AllowChanging
	default:
		return !same && plan.Tree && !hides
	}
}

// needNew is need unless what the target has at the path of the file may not be replaced.
func (p *planner) needNew(ctx context.Context, e *entry, found disk.Info, change native.Change) error {
	if p.t.Params.Plan.Tree && change != native.ChangeNew {
		if err := p.mayReplace(e, found); err != nil {
			return p.results.fail(e, err)
		}
	}
	return p.files.need(ctx, e, change)
}

// haveContent answers that the content of a file is there. Attributes that differ are set, and if that fails, the file
// is needed. It is made as durable as planned: it may have been written a moment ago. Partial files that an interrupted
// transfer has left next to it are removed. seen is the file when its content was compared.
func (p *planner) haveContent(ctx context.Context, e *entry, seen disk.Info) error {
	c, in, updates := p.t.Params.Config, e.directory, e.change != native.ChangeNone
	if updates && (!p.sameXattrs(e) || p.whileFlushing(func() error { return p.setAttributes(e, seen) }) != nil) {
		return p.needNew(ctx, e, seen, e.change)
	}
	if e.depth == 0 {
		if err := p.whileFlushing(func() error { return p.flushFound(e, updates) }); err != nil {
			return err
		}
		if !p.t.Params.Plan.DryRun {
			disk.RemoveLeftovers(c.File.FS, c.File.Name)
		}
		p.results.rootDecided.Store(true)
	}
	if in != nil && in.of != nil {
		if in.of.FlushesFiles() && !updates { // otherwise the tree is flushed at the end
			if err := p.whileFlushing(func() error { return in.of.Flush(e.name) }); err != nil {
				return p.results.fail(e, err)
			}
		}
		in.of.RemoveLeftovers(e.name)
	}
	p.results.have(e)
	return nil
}

// flushFound flushes a file that the target has already, and its name; flushed says that its content is durable.
func (p *planner) flushFound(e *entry, flushed bool) error {
	c, durability := p.t.Params.Config, p.t.Params.Plan.Durability
	if durability == wire.DurabilityNone || !p.t.Params.Writes() {
		return nil
	}
	if flushed {
		return disk.FlushFound(nil, c.File.FS, c.File.Name, e.path, durability)
	}
	file, err := p.openOwn(e)
	if err != nil {
		return err
	}
	defer file.Close()
	return disk.FlushFound(file, c.File.FS, c.File.Name, e.path, durability)
}

// openOwn opens what the target has at the path of a file.
func (p *planner) openOwn(e *entry) (file disk.File, err error) {
	switch {
	case e.directory == nil:
		file, err = p.t.Params.Config.File.FS.Open(p.t.Params.Config.File.Name)
	case e.directory.of != nil:
		return e.directory.of.Open(e.name)
	default:
		file, err = e.directory.seen.Open(e.name, true)
	}
	if err != nil {
		return nil, disk.NewError(disk.ErrTarget, err, "make it readable for this user", "cannot read %s: %s", e.path,
			disk.Reason(err))
	}
	return file, nil
}

// flushTree makes durable what is staged and named. It may be called while the planner runs, once there is a tree, by
// what keeps the tree from being closed: a lane, or a job of packs.
func (p *planner) flushTree() error { return p.whileFlushing(p.tree.Sync) }

// whileFlushing makes a call that flushes, which may have to write what other processes have written, too.
func (p *planner) whileFlushing(flush func() error) error {
	return p.t.Params.Config.Progress.TouchDuring(role.SlowFlush, flush)
}
