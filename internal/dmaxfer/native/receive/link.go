package receive

import (
	"cmp"
	"io/fs"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// This file is the life of a symlink and of a hard link, which the planner makes at once, or when the file is decided
// that a hard link is another name of:
//
//	planSymlink ─────────────────────────────────► have, or commit
//	planLink ─► makeLink ─┬──────────► hardLink ─► linked: have, or commit
//	                      └─ waiting ───┘

func (p *planner) planSymlink(e *entry) error {
	change, found, err := p.linkChange(e)
	plan, refused := &p.t.Params.Plan, error(nil)
	if found != nil {
		refused = p.mayReplace(e, *found)
	}
	switch {
	case err != nil:
		return p.results.fail(e, err)
	case found != nil && plan.IgnoreExisting:
		p.results.keep(e)
	case change == native.ChangeNone:
		p.results.have(e)
	case plan.Compare:
		return p.differs(e.path)
	case refused != nil:
		return p.results.fail(e, refused)
	case plan.DryRun:
		p.results.wouldNeed(e, change)
	default:
		if err := e.directory.of.Symlink(e.name, e.link, e.meta); err != nil {
			return p.results.fail(e, err)
		}
		p.results.commit(e)
	}
	return nil
}

// linkChange returns why a symlink is needed, and what the target has in its place; nil: nothing. Time and owner count
// only if it may be replaced for them, or if the peer is not to learn whether it guesses a text.
func (p *planner) linkChange(e *entry) (native.Change, *disk.Info, error) {
	if e.own != nil {
		if !p.isLink(e.path, e.link) {
			return native.ChangeContent, &e.own.Info, nil
		}
		return native.ChangeNone, &e.own.Info, nil
	}
	info, found, err := p.stat(e)
	if err != nil || !found {
		return native.ChangeNew, nil, err
	}
	if info.Mode&fs.ModeSymlink == 0 {
		return native.ChangeType, &info, nil
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
	switch exact := p.t.Params.Plan.Overwrite || p.t.Params.Config.HideContent; {
	case link.Text != e.link:
		return native.ChangeContent, &info, nil
	case !exact || p.sameLinkAttributes(e, link.Info):
		return native.ChangeNone, &info, nil
	case link.Modified != e.meta.Modified:
		return native.ChangeTime, &info, nil
	default:
		return native.ChangeOwner, &info, nil
	}
}

// planLink makes a hard link, at once or when the file that it is another name of has been committed. In a dry run it
// looks for what the target has in its place.
func (p *planner) planLink(e *entry) error {
	plan := &p.t.Params.Plan
	if plan.Compare {
		return p.compareLink(e)
	}
	if !plan.DryRun && !plan.IgnoreExisting {
		return p.results.makeLink(e)
	}
	info, found, err := p.stat(e)
	switch {
	case err != nil:
		return p.results.fail(e, err)
	case found && plan.IgnoreExisting:
		p.results.keep(e)
		return nil
	case !plan.DryRun:
	case !found:
		e.change = native.ChangeNew
	case p.isNameOf(e.link, info):
	default:
		if err := p.mayReplace(e, info); err != nil {
			return p.results.fail(e, err)
		}
		e.change = native.ChangeContent
		if !info.Mode.IsRegular() {
			e.change = native.ChangeType
		}
	}
	return p.results.makeLink(e)
}

// isNameOf reports whether there is the same file at a path below the root, which is looked into.
func (p *planner) isNameOf(path string, file disk.Info) bool {
	return disk.Beneath(p.stack[0].seen, path, func(in disk.Dir, name string) error {
		found, err := in.Stat(name)
		if err == nil && !found.SameFile(file.Identity) {
			err = fs.ErrNotExist
		}
		return err
	}) == nil
}

// makeLink makes a hard link, at once or when the file that it is another name of is decided. In a dry run it would; in
// a comparison the link is there. It fails with that file, in whose place the target may have another one.
func (r *results) makeLink(l *entry) error {
	waits, failed := r.links.awaitFile(l)
	switch {
	case waits:
		return nil
	case failed:
		return r.linked(l, job.Failed, r.errFileFailed(l))
	}
	action, err := r.hardLink(l)
	return r.linked(l, action, err)
}

// hardLink makes a hard link, or would make it in a dry run, and returns whether the target had it already. A file that
// is needed is replaced, and then what was another name of it is another file.
func (r *results) hardLink(l *entry) (job.Action, error) {
	in := l.directory.of
	switch {
	case r.t.Params.Plan.Compare:
		return job.Unchanged, nil
	case r.t.Params.Plan.DryRun && l.change == native.ChangeNone && !r.links.wouldMake(l.link):
		return job.Unchanged, nil
	case r.t.Params.Plan.DryRun:
		return job.WouldCopy, nil
	case in.Fresh():
		return job.Copied, in.Link(l.name, l.link)
	}
	before, absent := in.Stat(l.name)
	if err := in.Link(l.name, l.link); err != nil {
		return job.Failed, err
	}
	if after, err := in.Stat(l.name); absent == nil && err == nil && after.SameFile(before.Identity) {
		return job.Unchanged, nil
	}
	return job.Copied, nil
}

// linked reports a hard link that has been made, or why it has not.
func (r *results) linked(l *entry, action job.Action, err error) error {
	if err != nil {
		l.change = native.ChangeNone
		return r.fail(l, err)
	}
	switch action {
	case job.Unchanged:
		r.have(l)
	case job.WouldCopy:
		r.wouldNeed(l, cmp.Or(l.change, native.ChangeContent))
	default:
		r.commit(l)
	}
	return nil
}

func (r *results) errFileFailed(l *entry) error {
	if r.t.Params.Plan.Compare {
		return disk.NewError(disk.ErrTarget, nil, "compare that file first, or leave links out of --preserve",
			"cannot compare %s: it is another name of %s, which was not compared", l.path, l.link)
	}
	return disk.NewError(disk.ErrTarget, nil, "copy that file first, or leave links out of --preserve",
		"cannot create %s: it is another name of %s, which was not copied", l.path, l.link)
}
