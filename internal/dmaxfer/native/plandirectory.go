package native

import (
	"cmp"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// This file is how a planner creates or compares directories.

// notCreated returns the error for an entry whose directory has failed.
func notCreated(e *arriving, failed error) error {
	return disk.NewError(disk.ErrTarget, failed, "see the failure of the directory",
		"cannot create %s: its directory could not be created", e.path)
}

// planDirectory enters or creates a directory. Where that fails everything below fails, too.
func (p *planner) planDirectory(e *arriving, in *directory) error {
	d := &directory{entry: e, parent: in}
	created, err := false, error(nil)
	switch {
	case in != nil && in.failed != nil:
		err = notCreated(e, in.failed)
	case e.overLimit:
		err = errHeldAttributes(e)
	case !p.terms.writes():
		created, err = p.lookInto(d)
	default:
		created, err = p.enter(d)
	}
	d.failed = err
	p.applyAttributes(d)
	p.stack = append(p.stack, d)
	p.directories.enter(d)
	switch {
	case err != nil:
		return p.fail(e, err)
	case !created:
		p.have(e)
	case p.terms.plan.Compare:
		return p.differs(e.path)
	case p.terms.plan.DryRun:
		p.wouldNeed(e, cmp.Or(e.change, negotiate.ChangeNew))
	default:
		p.commit(e)
	}
	return nil
}

// errHeldAttributes returns the error for an entry whose extended attributes this side has not held.
func errHeldAttributes(e *arriving) error {
	return job.NewError(job.ErrLimit, nil, "leave xattr out of --preserve",
		"cannot create %s: the extended attributes of directories that are not created yet exceed %s",
		e.path, quantity.Bytes(maxAttributes))
}

// applyAttributes sets the extended attributes of a directory when it has been entered, so that they are not held while
// it is filled. A failure is reported when it is left, like one of its mode or times.
func (p *planner) applyAttributes(d *directory) {
	if d.of != nil {
		d.unset = d.of.SetXattrs(d.entry.meta.Xattrs)
	}
	d.entry.meta.Xattrs = nil
	p.open.releaseAttributes(d.entry)
}

// enter opens a directory to write into it.
func (p *planner) enter(d *directory) (created bool, err error) {
	if d.parent != nil {
		d.of, created, err = d.parent.of.Enter(d.entry.name, true)
		return created, err
	}
	c, plan := p.terms.config, &p.terms.plan
	p.tree, err = disk.OpenTree(c.File.FS, c.File.Name, disk.TreeOptions{
		Overwrite: plan.Overwrite, Deletes: c.Mirror != nil, Backup: c.Backup, Durability: plan.Durability,
		Preserve: disk.Preserve{Mode: true, Times: true, Owner: plan.Owner, Xattrs: plan.XAttr},
	})
	if err != nil {
		return false, err
	}
	d.of = p.tree.Root()
	if sentence := p.tree.Renamed(); sentence != "" {
		p.account.notify(job.Warned{Text: sentence})
	}
	return d.of.Fresh(), nil
}

// lookInto opens a directory to look at what is in it. In a comparison a followed symlink can stand for one below the
// root, which is not opened: the planner has a list of what this side would send.
func (p *planner) lookInto(d *directory) (absent bool, err error) {
	switch {
	case d.parent == nil:
		d.seen, err = p.terms.config.File.FS.OpenDir(p.terms.config.File.Name)
	case d.parent.seen != nil:
		d.seen, err = d.parent.seen.OpenBeneath(d.entry.name)
	}
	own := d.entry.own
	switch {
	case own != nil && (err == nil || d.parent != nil && noDirectory(err)):
		return !own.Info.Mode.IsDir(), own.Err
	case p.terms.plan.DryRun && d.parent != nil && noDirectory(err):
		d.entry.change = negotiate.ChangeType
		return true, p.unlessRemoved(disk.NotADirectory(d.entry.path, err))
	case errors.Is(err, fs.ErrNotExist), p.terms.plan.Compare && noDirectory(err), d.seen == nil && err == nil:
		return true, nil
	case err != nil:
		return false, disk.CannotCreate(d.entry.path, err)
	}
	return false, nil
}

// noDirectory reports whether an entry could not be opened as a directory because it is something else.
func noDirectory(err error) bool { return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) }
