package receive

import (
	"cmp"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// This file is the life of a directory:
//
//	planDirectory ─► openToWrite ─► have, or commit ─► filled ─► leave ─► setAttributes ─┬─► reported
//	              └─ lookInto, if nothing may be written                           └─► failLate

// directory is one that is being filled.
type directory struct {
	entry  *entry
	parent *directory
	of     *disk.Directory // nil: nothing may be written, or failed
	seen   disk.Dir        // stands for of where nothing may be written; nil: it does not exist
	failed error           // why nothing can be created in it
	unset  error           // why its extended attributes could not be set; it fails when it is left

	pending int // its undecided entries and directories, and its place on the stack; guarded by directories.mu
}

// planDirectory enters or creates a directory. Where that fails everything below fails, too.
func (p *planner) planDirectory(e *entry, in *directory) error {
	d := &directory{entry: e, parent: in}
	created, err := false, error(nil)
	switch {
	case in != nil && in.failed != nil:
		err = notCreated(e, in.failed)
	case e.overLimit:
		err = errHeldAttributes(e)
	case !p.t.Params.Writes():
		created, err = p.lookInto(d)
	default:
		created, err = p.openToWrite(d)
	}
	d.failed = err
	if d.of != nil { // at once, so that they are not held while the directory is filled
		d.unset = d.of.SetXattrs(e.meta.Xattrs)
	}
	p.results.limits.dropAttributes(e)
	p.stack = append(p.stack, d)
	p.results.directories.add(d)
	switch {
	case err != nil:
		return p.results.fail(e, err)
	case !created:
		p.results.have(e)
	case p.t.Params.Plan.Compare:
		return p.differs(e.path)
	case p.t.Params.Plan.DryRun:
		p.results.wouldNeed(e, cmp.Or(e.change, native.ChangeNew))
	default:
		p.results.commit(e)
	}
	return nil
}

// openToWrite opens a directory to write into it.
func (p *planner) openToWrite(d *directory) (created bool, err error) {
	if d.parent != nil {
		d.of, created, err = d.parent.of.Enter(d.entry.name, true)
		return created, err
	}
	c, plan := p.t.Params.Config, &p.t.Params.Plan
	p.tree, err = disk.OpenTree(c.File.FS, c.File.Name, disk.TreeOptions{
		Overwrite: plan.Overwrite, Deletes: c.Mirror != nil, Backup: c.Backup, Durability: plan.Durability,
		Preserve: disk.Preserve{
			Mode: true, Times: true, Owner: plan.Owner, Xattrs: plan.XAttr, Privileged: plan.Privileged,
		},
	})
	if err != nil {
		return false, err
	}
	d.of = p.tree.Root()
	if sentence := p.tree.Renamed(); sentence != "" {
		p.t.Stats.Notify(job.Warned{Text: sentence})
	}
	return d.of.Fresh(), nil
}

// lookInto opens a directory to look at what is in it. In a comparison a followed symlink can stand for one below the
// root, which is not opened: the planner has a list of what this side would send.
func (p *planner) lookInto(d *directory) (absent bool, err error) {
	switch {
	case d.parent == nil:
		d.seen, err = p.t.Params.Config.File.FS.OpenDir(p.t.Params.Config.File.Name)
	case d.parent.seen != nil:
		d.seen, err = d.parent.seen.OpenBeneath(d.entry.name)
	}
	own := d.entry.own
	switch {
	case own != nil && (err == nil || d.parent != nil && noDirectory(err)):
		return !own.Info.Mode.IsDir(), own.Err
	case p.t.Params.Plan.DryRun && d.parent != nil && noDirectory(err):
		d.entry.change = native.ChangeType
		return true, p.unlessRemoved(disk.NotADirectory(d.entry.path, err))
	case errors.Is(err, fs.ErrNotExist), p.t.Params.Plan.Compare && noDirectory(err), d.seen == nil && err == nil:
		return true, nil
	case err != nil:
		return false, disk.CannotCreate(d.entry.path, err)
	}
	return false, nil
}

// noDirectory reports whether an entry could not be opened as a directory because it is something else.
func noDirectory(err error) bool { return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) }

// leave removes one of what a directory waits for. After the last one it gets its final mode and times; then the one
// above it may be left.
func (s *directories) leave(d *directory) {
	for d != nil && s.isLast(d) {
		s.setAttributes(d)
		s.close(d)
		if d.parent == nil {
			s.rootLeft()
		}
		d = d.parent
	}
}

func (s *directories) isLast(d *directory) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.pending--
	return d.pending == 0
}

// setAttributes gives a directory its final mode and times, and reports its outcome.
func (s *directories) setAttributes(d *directory) {
	if d.of == nil {
		return // nothing is written, or it has failed before; it has been reported
	}
	err := d.of.Leave(d.entry.meta)
	if d.unset != nil {
		err = d.unset
	}
	if err != nil {
		s.failLate(d.entry, err)
		return
	}
	s.t.Stats.Report(job.FileDone{Path: d.entry.path, Kind: d.entry.kind, Action: d.entry.action})
}

// failLate reports a directory whose attributes cannot be set after its content has been received.
func (s *directories) failLate(e *entry, err error) {
	if !s.t.Params.Tolerant() {
		s.t.Link.Post(role.FailWith(err))
		return
	}
	s.replies.failed(failure{e.number, err, true})
	s.t.Stats.FailedLate(e.number, e.path, err)
}

// close closes a directory that has been left.
func (s *directories) close(d *directory) {
	d.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, d)
}

// notCreated returns the error for an entry whose directory has failed.
func notCreated(e *entry, failed error) error {
	return disk.NewError(disk.ErrTarget, failed, "see the failure of the directory",
		"cannot create %s: its directory could not be created", e.path)
}

// errHeldAttributes returns the error for an entry whose extended attributes this side has not held.
func errHeldAttributes(e *entry) error {
	return job.NewError(job.ErrLimit, nil, "leave xattr out of --preserve",
		"cannot create %s: the extended attributes of directories that are not created yet exceed %s",
		e.path, quantity.Bytes(role.MaxAttributes))
}
