package native

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// planner decides in one job what a receiver needs of the entries, in their order, and creates everything but files.
// The entries between a directory and the next one of its depth are below it:
//
//	stack[0] the root ─► stack[1] ... ─► stack[n], in which entries of depth n+1 are created
//
// A directory gets its final mode and times when it is no longer on the stack and all of its entries are decided.
type planner struct {
	receiver *receiver
	tree     *disk.Tree // nil: the target is a file, or nothing may be written
	own      *ownTree   // in a comparison of trees
	stack    []*directory
	wake     chan struct{} // delivers a token when there is something in queue, or closed has been set

	mu     sync.Mutex
	queue  []*arriving
	closed bool // nothing will be added
	sums   []summed
}

// directory is one that is being filled.
type directory struct {
	entry  *arriving
	parent *directory
	of     *disk.Directory // nil: nothing may be written, or failed
	seen   disk.Dir        // in place of it, where nothing may be written; nil: it does not exist
	failed error           // why nothing can be created in it

	pending int // its undecided entries and directories, and its place on the stack; guarded by receiver.mu
}

// summed is a file whose content is compared with a digest of the sender's.
type summed struct {
	entry *arriving
	sum   digest.Sum
}

func newPlanner(r *receiver) *planner { return &planner{receiver: r, wake: make(chan struct{}, 1)} }

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
			p.receiver.terms.config.Progress.Touch()
		}
		p.receiver.hurry()
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
		p.receiver.leave(last)
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
		e.path = p.receiver.terms.config.File.Path
	}
	open := p.receiver.place(e, in)
	if err := p.passOwn(ctx, e); err != nil {
		return err
	}
	if e.kind == negotiate.EntryDirectory {
		return p.planDirectory(e, in, open)
	}
	switch {
	case !open:
		return nil // the sender has withdrawn it
	case in != nil && in.failed != nil:
		return p.receiver.fail(e, notCreated(e, in.failed))
	case e.kind == negotiate.EntrySymlink:
		return p.planSymlink(e)
	case e.kind == negotiate.EntryHardLink:
		return p.planLink(e)
	case in == nil:
		return p.planRoot(ctx, e)
	}
	return p.planFile(ctx, e)
}

// notCreated returns the error for an entry whose directory has failed.
func notCreated(e *arriving, failed error) error {
	return disk.NewError(disk.ErrTarget, failed, "see the failure of the directory",
		"cannot create %s: its directory could not be created", e.path)
}

// planDirectory enters or creates a directory. Where that fails everything below fails, too.
func (p *planner) planDirectory(e *arriving, in *directory, open bool) error {
	d := &directory{entry: e, parent: in}
	created, err := false, error(nil)
	switch {
	case in != nil && in.failed != nil:
		err = notCreated(e, in.failed)
	case !open:
		err = errWithdrawn
	case !p.receiver.terms.writes():
		created, err = p.lookInto(d)
	default:
		created, err = p.enter(d)
	}
	d.failed = err
	p.stack = append(p.stack, d)
	p.receiver.entered(d)
	switch {
	case !open:
		return nil
	case err != nil:
		return p.receiver.fail(e, err)
	case created && p.receiver.terms.plan.Compare:
		return p.differs(e.path)
	}
	p.receiver.commitAs(p.action(created), e)
	return nil
}

var errWithdrawn = errors.New("the sender could not send it")

// action returns what has been done about a directory or a symlink.
func (p *planner) action(created bool) job.Action {
	switch {
	case !created:
		return job.Unchanged
	case p.receiver.terms.plan.DryRun:
		return job.WouldCopy
	default:
		return job.Copied
	}
}

// enter opens a directory to write into it.
func (p *planner) enter(d *directory) (created bool, err error) {
	if d.parent != nil {
		d.of, created, err = d.parent.of.Enter(d.entry.name, true)
		return created, err
	}
	c, plan := p.receiver.terms.config, &p.receiver.terms.plan
	p.tree, err = disk.OpenTree(c.File.FS, c.File.Name, disk.TreeOptions{
		Overwrite: plan.Overwrite, Durability: plan.Durability,
		Preserve: disk.Preserve{Mode: true, Times: true, Owner: plan.Owner, Xattrs: plan.XAttr},
	})
	if err != nil {
		return false, err
	}
	d.of = p.tree.Root()
	if sentence := p.tree.Renamed(); sentence != "" {
		p.receiver.account.notify(job.Warned{Text: sentence})
	}
	return d.of.Fresh(), nil
}

// lookInto opens a directory to compare what is in it.
func (p *planner) lookInto(d *directory) (absent bool, err error) {
	switch {
	case d.parent == nil:
		d.seen, err = p.receiver.terms.config.File.FS.OpenDir(p.receiver.terms.config.File.Name)
	case d.parent.seen == nil:
		return true, nil
	default:
		d.seen, err = d.parent.seen.OpenChild(d.entry.name)
	}
	if errors.Is(err, fs.ErrNotExist) || p.receiver.terms.plan.Compare && noDirectory(err) {
		return true, nil
	}
	if err != nil {
		return false, disk.CannotCreate(d.entry.path, err)
	}
	return false, nil
}

// stat returns the Info of what an entry would replace; found is false if there is nothing.
func (p *planner) stat(e *arriving) (info disk.Info, found bool, err error) {
	switch d := e.directory; {
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
	same, err := p.sameLink(e)
	switch {
	case err != nil:
		return p.receiver.fail(e, err)
	case !same && p.receiver.terms.plan.Compare:
		return p.differs(e.path)
	case !same && p.receiver.terms.writes():
		err = e.directory.of.Symlink(e.name, e.link, e.meta)
	}
	if err != nil {
		return p.receiver.fail(e, err)
	}
	p.receiver.commitAs(p.action(!same), e)
	return nil
}

// sameLink reports whether the target has the symlink already.
func (p *planner) sameLink(e *arriving) (bool, error) {
	info, found, err := p.stat(e)
	if err != nil || !found || info.Mode&fs.ModeSymlink == 0 {
		return false, err
	}
	var link disk.Link
	if e.directory.of != nil {
		link, err = e.directory.of.ReadLink(e.name)
	} else {
		link, err = e.directory.seen.ReadLink(e.name)
	}
	if err != nil {
		return false, cannotExamine(e, err)
	}
	return link.Text == e.link, nil
}

// planLink makes a hard link, at once or when the file that it is another name of has been committed.
func (p *planner) planLink(e *arriving) error {
	switch {
	case p.receiver.terms.plan.Compare:
		return p.compareLink(e)
	case p.receiver.terms.plan.DryRun:
		p.receiver.commitAs(job.WouldCopy, e)
		return nil
	}
	return p.receiver.makeLink(e)
}

// planFile decides whether a file of a tree is needed.
func (p *planner) planFile(ctx context.Context, e *arriving) error {
	info, found, err := p.stat(e)
	if err != nil {
		return p.receiver.fail(e, err)
	}
	return p.planContent(ctx, e, info, found)
}

// planRoot decides whether the file of a transfer without a tree is needed.
func (p *planner) planRoot(ctx context.Context, e *arriving) error {
	c := p.receiver.terms.config
	if e.size == job.Unknown || c.File.Stream {
		return p.need(ctx, e)
	}
	info, err := c.File.FS.Stat(c.File.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannotExamine(e, err)
	}
	return p.planContent(ctx, e, info, err == nil)
}

// planContent decides by what the target has already whether the content of a file is needed.
func (p *planner) planContent(ctx context.Context, e *arriving, info disk.Info, found bool) error {
	plan := &p.receiver.terms.plan
	sameSize := found && info.Mode.IsRegular() && info.Size == e.size
	same := sameSize && info.Modified == e.meta.Modified && p.sameAttributes(e, info)
	switch {
	case sameSize && (plan.Checksum || plan.Compare && (!same || !plan.Tree)):
		p.answer(e, negotiate.AnswerSum, 0)
	case plan.Compare && !same:
		return p.differs(e.path)
	case same && (plan.Overwrite || plan.Tree):
		return p.have(e)
	default:
		return p.need(ctx, e)
	}
	return nil
}

// sameAttributes reports whether a file of the same content needs not be replaced for its attributes.
func (p *planner) sameAttributes(e *arriving, info disk.Info) bool {
	plan := &p.receiver.terms.plan
	if plan.Owner && (info.UID != e.meta.UID || info.GID != e.meta.GID) {
		return false
	}
	return uint32(info.Mode.Perm()) == e.meta.Mode&0o777
}

// have answers that the content of a file is there. The only file of a transfer is made as durable as planned: it may
// have been written a moment ago. A tree is flushed at the end.
func (p *planner) have(e *arriving) error {
	if e.depth == 0 {
		if err := p.receiver.whileFlushing(func() error { return p.flushFound(e) }); err != nil {
			return err
		}
		p.receiver.setRoot(unneeded)
	}
	p.receiver.have(e)
	return nil
}

// flushFound flushes a file that the target has already, and its name.
func (p *planner) flushFound(e *arriving) error {
	plan, c := &p.receiver.terms.plan, p.receiver.terms.config
	if plan.Durability == negotiate.DurabilityNone || !p.receiver.terms.writes() {
		return nil
	}
	file, err := p.openFile(e)
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

// need answers that the content of a file is needed. A file that fits into one slot needs no preparation.
func (p *planner) need(ctx context.Context, e *arriving) error {
	r := p.receiver
	if r.terms.plan.DryRun {
		if r.claim(e) {
			p.answer(e, negotiate.AnswerNeed, 0)
			r.decided(e, job.WouldCopy, nil)
		}
		return nil
	}
	if e.chunked {
		if err := p.prepare(ctx, e); err != nil {
			return r.fail(e, err)
		}
	}
	r.account.begins(e.size, e.resume)
	r.expect(e)
	p.answer(e, negotiate.AnswerNeed, uint64(e.resume))
	return nil
}

// prepare opens and preallocates the target of a file that comes in chunks.
func (p *planner) prepare(ctx context.Context, e *arriving) error {
	t, err := openTarget(ctx, p.receiver.terms, e)
	if err != nil {
		return err
	}
	e.resume = t.resumable()
	p.receiver.expectChunks(e, t)
	err = t.allocate(ctx)
	for _, sentence := range t.warnings() {
		p.receiver.account.notify(job.Warned{Text: sentence})
	}
	e.in.SerialWrites = !t.concurrent()
	return err
}

func (p *planner) answer(e *arriving, kind negotiate.AnswerKind, offset uint64) {
	p.receiver.box.Add(pump.Reply{Other: negotiate.Answer{Entry: e.number, Kind: kind, Offset: offset}})
}

// compare compares the content of a file with a digest of the sender's, in a job and after those before it.
func (p *planner) compare(ctx context.Context, e *arriving, sum digest.Sum) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := summed{e, sum}
	if p.sums = append(p.sums, first); len(p.sums) == 1 {
		p.receiver.link.run(func() func() error {
			for next, more := first, true; more; next, more = p.nextSum() {
				if err := p.compareSum(ctx, next); err != nil {
					return failWith(err)
				}
			}
			return nothing
		})
	}
}

// nextSum removes the file that has been compared, and returns the one after it.
func (p *planner) nextSum() (next summed, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sums = p.sums[1:]; len(p.sums) == 0 {
		return summed{}, false
	}
	return p.sums[0], true
}

func (p *planner) compareSum(ctx context.Context, s summed) error {
	defer p.receiver.hurry()
	own, err := p.sum(ctx, s.entry, s.sum.Algorithm())
	if err == nil && s.entry.depth == 0 && own == s.sum {
		err = p.receiver.terms.checkContent(s.entry.size, own)
		p.receiver.account.content(s.entry.size, own)
	}
	switch {
	case err != nil:
		return p.receiver.fail(s.entry, err)
	case own == s.sum:
		return p.have(s.entry)
	case p.receiver.terms.plan.Compare:
		return p.differs(s.entry.path)
	}
	return p.need(ctx, s.entry)
}

// sum computes the digest of what the target has in place of a file.
func (p *planner) sum(ctx context.Context, e *arriving, a digest.Algorithm) (digest.Sum, error) {
	file, err := p.openFile(e)
	if err != nil {
		return digest.Sum{}, err
	}
	defer file.Close()
	sum, _, err := digest.Of(ctx, a, touchingReader{file, p.receiver.terms.config.Progress})
	if err != nil && ctx.Err() == nil {
		err = disk.NewError(disk.ErrTarget, err, "check the disk", "reading %s failed: %s", e.path, disk.Reason(err))
	}
	return sum, err
}

func (p *planner) openFile(e *arriving) (file disk.File, err error) {
	switch {
	case e.directory == nil:
		file, err = p.receiver.terms.config.File.FS.Open(p.receiver.terms.config.File.Name)
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

// touchingReader reports the progress of reading a file.
type touchingReader struct {
	file     disk.File
	progress *job.Progress
}

// Read implements io.Reader.
func (t touchingReader) Read(b []byte) (int, error) {
	t.progress.Touch()
	return t.file.Read(b)
}

// summing returns how many bytes this side and the sender may have to read for digests.
func (p *planner) summing() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	bytes := int64(0)
	for _, s := range p.sums {
		bytes += s.entry.size
	}
	return bytes
}

// closeTree makes durable what is not yet, and closes the tree. If whole, nothing remains for a later transfer.
func (p *planner) closeTree(whole bool) error {
	if p.tree == nil {
		return nil
	}
	if err := p.receiver.flushTree(); err != nil {
		return err
	}
	tree := p.tree
	p.tree = nil
	return tree.Close(whole)
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

func (d *directory) close() {
	if d.seen != nil {
		_ = d.seen.Close() // was only read
		d.seen = nil
	}
	if d.of != nil && d.parent != nil {
		d.of.Release()
		d.of = nil
	}
}
