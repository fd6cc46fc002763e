package receive

import (
	"io/fs"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file is how a planner compares trees that both sides have and neither overwrites. Which of them counts is
// not known, so one that has more than the other differs as well.

// passOwn finds what this side has at the path of e, in the tree that it would send: symlinks that it would follow are
// compared as what they point to, and what it would leave out only if the sender has it. It returns an error if there
// is an entry before e, or any more if e is nil, that the sender does not have.
func (p *planner) passOwn(e *entry) (err error) {
	c := p.t.Params.Config
	if !p.t.Params.Plan.Compare || !p.t.Params.Plan.Tree {
		return nil
	}
	if p.own == nil {
		p.own, err = tree.OpenCursor(c.File.FS, c.File.Name, tree.Options{
			Links: c.Links, Filter: c.Filter, Scope: c.Scope, Only: c.FilesFrom, SkipLeftovers: c.SkipLeftovers,
		})
		if err != nil {
			return err
		}
	}
	var own *tree.Entry
	if e == nil {
		own, err = p.own.Next()
	} else {
		own, err = p.own.UpTo(e.path)
	}
	if err != nil || own == nil {
		return err // planning e finds that it is not there
	}
	if e == nil || own.Path() != e.path {
		own.Release()
		return p.differs(own.Path())
	}
	if !e.compareWith(own) {
		own.Release() // e has been decided
	}
	c.Progress.Touch()
	return nil
}

// differs ends a comparison; path is what differs below the root.
func (p *planner) differs(path string) error {
	c := p.t.Params.Config
	switch {
	case c.Pair != nil:
		return c.Pair.Differ()
	case !p.t.Params.Plan.Tree:
		return job.NewError(job.ErrSource, wire.ErrBothHaveFile,
			"use --overwrite on the side whose file may be replaced",
			"both sides have %s, and they differ", c.File.Path)
	case path == "":
		return job.NewError(job.ErrSource, wire.ErrBothHaveFile, job.NextIfBothDirectories,
			"both sides have the directory %s, and they differ", c.File.Path)
	}
	return job.NewError(job.ErrSource, wire.ErrBothHaveFile, job.NextIfBothDirectories,
		"both sides have the directory %s, and they differ at %s", c.File.Path, path)
}

// compareLink compares a hard link: here, too, both names belong to one file, which is compared under its first name.
func (p *planner) compareLink(e *entry) error {
	info, found, err := p.stat(e)
	if err != nil {
		return p.results.fail(e, err)
	}
	if (!found || !info.SameFile(p.linked[e.link])) && !p.results.links.hasFailed(e.link) {
		return p.differs(e.path)
	}
	return p.results.makeLink(e)
}

// isLink reports whether there is a symlink of this text at a path below the root. A side that follows symlinks may
// have received it as one.
func (p *planner) isLink(path, text string) bool {
	return disk.Beneath(p.stack[0].seen, path, func(in disk.Dir, name string) error {
		link, err := in.ReadLink(name)
		if err == nil && link.Text != text {
			err = fs.ErrNotExist
		}
		return err
	}) == nil
}
