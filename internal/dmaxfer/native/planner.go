package native

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// planner decides in one job what a receiver needs of the entries, in their order, and creates everything but files.
// The entries between a directory and the next one of its depth are below it:
//
//	stack[0] the root ─► stack[1] ... ─► stack[n], in which entries of depth n+1 are created
//
// A directory gets its final mode and times when it is no longer on the stack and all of its entries are decided.
//
// The owner of the transfer calls add and close, and closes the tree when the job that calls run has returned. That job
// uses everything else, except that the job of a digestComparison may call need, haveContent and openOwn.
type planner struct {
	*outcomes
	chunks *chunkStore
	tree   *disk.Tree // nil: the target is a file, or nothing may be written
	own    *ownTree   // in a comparison of trees
	stack  []*directory
	prober disk.Prober
	wake   chan struct{} // delivers a token when there is something in queue, or closed has been set

	mu     sync.Mutex
	queue  []*arriving
	closed bool // nothing will be added
}

func newPlanner(o *outcomes, chunks *chunkStore) *planner {
	return &planner{outcomes: o, chunks: chunks, wake: make(chan struct{}, 1)}
}

// add queues entries.
func (p *planner) add(entries []*arriving) {
	if len(entries) == 0 {
		return
	}
	p.mu.Lock()
	p.queue = append(p.queue, entries...)
	p.mu.Unlock()
	p.signal()
}

// close says that nothing follows.
func (p *planner) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.signal()
}

func (p *planner) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run plans entries until nothing follows. An error ends the transfer.
func (p *planner) run(ctx context.Context) error {
	var batch []*arriving
	for {
		p.mu.Lock()
		p.queue, batch = batch[:0], p.queue
		closed := p.closed
		p.mu.Unlock()
		for _, e := range batch {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := p.plan(ctx, e); err != nil {
				return err
			}
			p.terms.config.Progress.Touch()
		}
		p.replies.hurry()
		if len(batch) > 0 {
			continue
		}
		if closed {
			if err := p.passOwn(ctx, nil); err != nil {
				return err
			}
			p.unwind(0)
			return nil
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unwind takes the directories from the stack that are no longer filled, so that it has the given depth.
func (p *planner) unwind(depth int) {
	for len(p.stack) > depth {
		last := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		p.leave(last)
	}
}

// plan decides about one entry.
func (p *planner) plan(ctx context.Context, e *arriving) error {
	p.unwind(e.depth)
	in := (*directory)(nil)
	if e.depth > 0 {
		in = p.stack[e.depth-1]
		e.path = e.name
		if e.depth > 1 {
			e.path = in.entry.path + "/" + e.name
		}
	} else if e.kind == negotiate.EntryFile {
		e.path = p.terms.config.File.Path
	}
	p.debug(e).Int64("bytes", e.size).Msg("entry planned")
	if e.directory = in; in != nil {
		p.directories.await(in)
	}
	if err := p.passOwn(ctx, e); err != nil {
		return err
	}
	if e.kind == negotiate.EntryDirectory {
		return p.planDirectory(e, in)
	}
	if e.kind == negotiate.EntrySymlink { // which has no user attributes
		e.meta.Xattrs = nil
		p.open.releaseAttributes(e)
	}
	switch {
	case in != nil && in.failed != nil:
		return p.fail(e, notCreated(e, in.failed))
	case e.overLimit:
		return p.fail(e, errHeldAttributes(e))
	case e.kind == negotiate.EntrySymlink:
		return p.planSymlink(e)
	case e.kind == negotiate.EntryHardLink:
		return p.planLink(e)
	case in == nil:
		return p.planRoot(ctx, e)
	}
	return p.planFile(ctx, e)
}

// stat returns the Info of what an entry would replace, or is compared with; found is false if there is nothing.
func (p *planner) stat(e *arriving) (info disk.Info, found bool, err error) {
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

// cannotExamine returns the error for something in the place of an entry, unless err is a *disk.Error already.
func cannotExamine(e *arriving, err error) error {
	if _, is := errors.AsType[*disk.Error](err); is {
		return err
	}
	return disk.NewError(disk.ErrTarget, err, "check the path and its permissions",
		"cannot examine %s: %s", e.path, disk.Reason(err))
}

func (p *planner) planSymlink(e *arriving) error {
	change, found, err := p.linkChange(e)
	plan, refused := &p.terms.plan, error(nil)
	if found != nil {
		refused = p.mayReplace(e, *found)
	}
	switch {
	case err != nil:
		return p.fail(e, err)
	case found != nil && plan.IgnoreExisting:
		p.keep(e)
	case change == negotiate.ChangeNone:
		p.have(e)
	case plan.Compare:
		return p.differs(e.path)
	case refused != nil:
		return p.fail(e, refused)
	case plan.DryRun:
		p.wouldNeed(e, change)
	default:
		if err := e.directory.of.Symlink(e.name, e.link, e.meta); err != nil {
			return p.fail(e, err)
		}
		p.commit(e)
	}
	return nil
}

// linkChange returns why a symlink is needed, and what the target has in its place; nil: nothing. Time and owner count
// only if it may be replaced for them, or if the peer is not to learn whether it guesses a text.
func (p *planner) linkChange(e *arriving) (negotiate.Change, *disk.Info, error) {
	if e.own != nil {
		if !p.isLink(e.path, e.link) {
			return negotiate.ChangeContent, &e.own.Info, nil
		}
		return negotiate.ChangeNone, &e.own.Info, nil
	}
	info, found, err := p.stat(e)
	if err != nil || !found {
		return negotiate.ChangeNew, nil, err
	}
	if info.Mode&fs.ModeSymlink == 0 {
		return negotiate.ChangeType, &info, nil
	}
	var link disk.Link
	if e.directory.of != nil {
		link, err = e.directory.of.ReadLink(e.name)
	} else {
		link, err = e.directory.seen.ReadLink(e.name)
	}
	if err != nil {
		return 0, nil, cannotExamine(e, err)
	}
	switch exact := p.terms.plan.Overwrite || p.terms.config.HideContent; {
	case link.Text != e.link:
		return negotiate.ChangeContent, &info, nil
	case !exact || p.sameLinkAttributes(e, link.Info):
		return negotiate.ChangeNone, &info, nil
	case link.Modified != e.meta.Modified:
		return negotiate.ChangeTime, &info, nil
	default:
		return negotiate.ChangeOwner, &info, nil
	}
}

// planLink makes a hard link, at once or when the file that it is another name of has been committed. In a dry run it
// looks for what the target has in its place.
func (p *planner) planLink(e *arriving) error {
	plan := &p.terms.plan
	if plan.Compare {
		return p.compareLink(e)
	}
	if !plan.DryRun && !plan.IgnoreExisting {
		return p.makeLink(e)
	}
	info, found, err := p.stat(e)
	switch {
	case err != nil:
		return p.fail(e, err)
	case found && plan.IgnoreExisting:
		p.keep(e)
		return nil
	case !plan.DryRun:
	case !found:
		e.change = negotiate.ChangeNew
	case p.isNameOf(e.link, info):
	default:
		if err := p.mayReplace(e, info); err != nil {
			return p.fail(e, err)
		}
		e.change = negotiate.ChangeContent
		if !info.Mode.IsRegular() {
			e.change = negotiate.ChangeType
		}
	}
	return p.makeLink(e)
}

// mayReplace returns an error unless a file or a symlink of a tree may take the place of what was found.
func (p *planner) mayReplace(e *arriving, found disk.Info) error {
	if err := p.unlessRemoved(disk.InTheWay(e.path, found, nil)); err != nil {
		return err
	}
	if !p.terms.plan.Overwrite {
		return disk.ErrorExists(e.path, found, nil)
	}
	return nil
}

// unlessRemoved returns the error for what is in the way of an entry, but nil in the dry run of a sync that removes
// such things before it copies again.
func (p *planner) unlessRemoved(inTheWay error) error {
	if p.terms.plan.DryRun && p.terms.config.Mirror != nil {
		return nil
	}
	return inTheWay
}

// isNameOf reports whether there is the same file at a path below the root, which is looked into.
func (p *planner) isNameOf(path string, file disk.Info) bool {
	found, err := p.statPath(path)
	return err == nil && found.SameFile(file.Identity)
}

// planFile decides whether a file of a tree is needed.
func (p *planner) planFile(ctx context.Context, e *arriving) error {
	info, found, err := p.stat(e)
	if err != nil {
		return p.fail(e, err)
	}
	return p.planContent(ctx, e, info, found)
}

// planRoot decides whether the file of a transfer without a tree is needed.
func (p *planner) planRoot(ctx context.Context, e *arriving) error {
	c, plan := p.terms.config, &p.terms.plan
	compares := e.size != job.Unknown && (plan.Overwrite || plan.Compare)
	if c.File.Stream || !compares && !plan.IgnoreExisting {
		return p.need(ctx, e, negotiate.ChangeNew) // what is there, if anything, fails it
	}
	info, err := c.File.FS.Stat(c.File.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannotExamine(e, err)
	}
	return p.planContent(ctx, e, info, err == nil)
}

// planContent decides by what the target has already whether the content of a file is needed.
func (p *planner) planContent(ctx context.Context, e *arriving, info disk.Info, found bool) error {
	c, plan := p.terms.config, &p.terms.plan
	change, uncertain := p.change(e, info, found)
	same := change == negotiate.ChangeNone
	switch {
	case found && plan.IgnoreExisting:
		p.keep(e)
	case c.HideContent && (plan.Checksum || uncertain):
		return p.needNew(ctx, e, info, cmp.Or(change, negotiate.ChangeContent))
	case uncertain, (same || change > negotiate.ChangeContent) && p.comparesContent(same):
		p.debug(e).Msg("entry compared")
		p.replies.answer(e, negotiate.Answer{Kind: negotiate.AnswerSum})
	case plan.Compare && !same:
		return p.differs(e.path)
	case same && (plan.Overwrite || plan.Tree):
		return p.haveContent(e)
	default:
		return p.needNew(ctx, e, info, change)
	}
	return nil
}

// change returns why a file is needed, as far as its content has not to be read for that. If uncertain, the content has
// to be compared.
func (p *planner) change(e *arriving, info disk.Info, found bool) (change negotiate.Change, uncertain bool) {
	switch {
	case !found:
		return negotiate.ChangeNew, false
	case !info.Mode.IsRegular():
		return negotiate.ChangeType, false
	case info.Size != e.size:
		return negotiate.ChangeSize, false
	}
	change, uncertain = p.compareAttributes(e, info)
	if change == negotiate.ChangeNone && !p.sameXattrs(e) {
		return negotiate.ChangeXattr, false
	}
	return change, uncertain
}

// comparesContent reports whether a file that exists with the size of the source is compared by its digest; same says
// that its time and mode are the source's, too. What may not be replaced for these is not needed with the same content.
func (p *planner) comparesContent(same bool) bool {
	plan := &p.terms.plan
	switch {
	case plan.Checksum:
		return true
	case plan.Compare:
		return !same || !plan.Tree
	default:
		return !same && plan.Tree && !plan.Overwrite && !p.terms.config.HideContent
	}
}

// needNew is need unless what the target has in place of the file may not be replaced.
func (p *planner) needNew(ctx context.Context, e *arriving, found disk.Info, change negotiate.Change) error {
	if p.terms.plan.Tree && change != negotiate.ChangeNew {
		if err := p.mayReplace(e, found); err != nil {
			return p.fail(e, err)
		}
	}
	return p.need(ctx, e, change)
}

// haveContent answers that the content of a file is there. It is made as durable as planned: it may have been written a
// moment ago. What an interrupted transfer has left beside it is removed.
func (p *planner) haveContent(e *arriving) error {
	c, in := p.terms.config, e.directory
	if e.depth == 0 {
		err := whileFlushing(c.Progress, func() error { return p.flushFound(e) })
		if err != nil {
			return err
		}
		if !p.terms.plan.DryRun {
			disk.RemoveLeftovers(c.File.FS, c.File.Name)
		}
		p.rootDecided.Store(true)
	}
	if in != nil && in.of != nil {
		if in.of.FlushesFiles() { // otherwise the tree is flushed at the end
			if err := whileFlushing(c.Progress, func() error { return in.of.Flush(e.name) }); err != nil {
				return p.fail(e, err)
			}
		}
		in.of.RemoveLeftovers(e.name)
	}
	p.outcomes.have(e)
	return nil
}

// flushFound flushes a file that the target has already, and its name.
func (p *planner) flushFound(e *arriving) error {
	plan, c := &p.terms.plan, p.terms.config
	if plan.Durability == negotiate.DurabilityNone || !p.terms.writes() {
		return nil
	}
	file, err := p.openOwn(e)
	if err != nil {
		return err
	}
	err = file.Sync()
	_ = file.Close() // was only read
	if err == nil && plan.Durability == negotiate.DurabilityFull {
		var at *disk.Location
		if at, err = disk.Locate(c.File.FS, c.File.Name); err == nil {
			err = at.Dir.Sync()
			_ = at.Dir.Close() // was only read
		}
	}
	if err != nil {
		return disk.NewError(disk.ErrTarget, err, "check the disk", "flushing %s failed: %s", e.path, disk.Reason(err))
	}
	return nil
}

// need answers that the content of a file is needed. A file that fits into one slot needs no preparation. One with
// extended attributes waits until they can be held, of which it is not known yet how many bytes they have.
func (p *planner) need(ctx context.Context, e *arriving, change negotiate.Change) error {
	if p.terms.plan.DryRun {
		p.wouldNeed(e, change)
		return nil
	}
	if e.hasAttributes {
		undecided, err := p.acquire(ctx, e, p.open.fileAttributes, negotiate.MaxMetadata, &e.attributePermits)
		if !undecided {
			return err
		}
	}
	if e.chunked {
		if undecided, err := p.acquire(ctx, e, p.open.openable, 1, &e.openPermits); !undecided {
			return err
		}
		if err := p.prepare(ctx, e); err != nil {
			return p.fail(e, err)
		}
	}
	logNeeded(p.debug(e), e.resume)
	p.account.begins(e.size, e.resume)
	p.open.expect(e)
	p.replies.answer(e, negotiate.Answer{
		Kind: negotiate.AnswerNeed, Offset: uint64(e.resume), Discarded: e.dropped,
	})
	return nil
}

// prepare opens and preallocates the target of a file that comes in chunks.
func (p *planner) prepare(ctx context.Context, e *arriving) error {
	t, err := openTarget(ctx, p.terms, e)
	if err != nil {
		return err
	}
	e.resume, e.dropped = t.resumable()
	p.chunks.expect(e, t)
	err = t.allocate(ctx)
	for _, sentence := range t.warnings() {
		p.account.notify(job.Warned{Text: sentence})
	}
	e.in.SerialWrites = !t.concurrent()
	return err
}

// flushTree makes durable what is staged and named. It may be called while the planner runs, once there is a tree, by
// what keeps the tree from being closed: a lane, or a job of the packStore.
func (p *planner) flushTree() error { return whileFlushing(p.terms.config.Progress, p.tree.Sync) }

// openOwn opens what the target has in place of a file.
func (p *planner) openOwn(e *arriving) (file disk.File, err error) {
	switch {
	case e.directory == nil:
		file, err = p.terms.config.File.FS.Open(p.terms.config.File.Name)
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

// closeTree makes durable what is not yet, and closes the tree, of which every entry has been decided.
func (p *planner) closeTree() error {
	if p.tree == nil {
		return nil
	}
	if err := p.flushTree(); err != nil {
		return err
	}
	tree := p.tree
	p.tree = nil
	if m := p.terms.config.Mirror; m != nil {
		return m.Keep(tree)
	}
	return tree.Close(true)
}

// settle closes what is open when a transfer has failed.
func (p *planner) settle() error {
	p.stack = nil
	p.closeOwn()
	if p.tree == nil {
		return nil
	}
	tree := p.tree
	p.tree = nil
	return tree.Close(false)
}
