package receive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file is how a planner compares trees that both sides have and neither overwrites. Which of them counts is
// not known, so one that has more than the other differs as well.

// ownTree lists what the receiver of a comparison has, in the order of the sender's entries.
type ownTree struct {
	walk  *tree.Walk
	next  *tree.Entry              // nil at the end
	files map[string]disk.Identity // of the files so far that have several names, by path
}

// openOwn opens the tree that this side would send. Symlinks that it would follow are compared as what they point to.
// What it would leave out is compared only if the sender has it.
func openOwn(c *role.Config) (*ownTree, error) {
	walk, err := tree.Open(c.File.FS, c.File.Name, tree.Options{
		Links: c.Links, Filter: c.Filter, Only: c.FilesFrom, SkipLeftovers: c.SkipLeftovers,
	})
	if err != nil {
		return nil, err
	}
	return &ownTree{walk: walk, files: make(map[string]disk.Identity)}, nil
}

// add notes a file to which a hard link may follow. The path of a followed symlink cannot be looked up later.
func (o *ownTree) add(path string, info disk.Info) {
	if info.Links > 1 {
		o.files[path] = info.Identity
	}
}

// advance finds the next entry.
func (o *ownTree) advance() error {
	found, err := o.walk.Next()
	switch {
	case errors.Is(err, io.EOF):
		o.next = nil
	case err != nil:
		return err
	default:
		o.next = &found
	}
	return nil
}

// before reports whether a path comes before another one in a tree, where the content of a directory follows it.
func before(path, other string) bool {
	return strings.ReplaceAll(path, "/", "\x00") < strings.ReplaceAll(other, "/", "\x00")
}

// passOwn finds what this side has in place of e. It returns an error if there is an entry before e, or any more if e
// is nil, that the sender does not have.
func (p *planner) passOwn(ctx context.Context, e *entry) (err error) {
	if !p.t.Params.Plan.Compare || !p.t.Params.Plan.Tree {
		return nil
	}
	if p.own == nil {
		if p.own, err = openOwn(p.t.Params.Config); err != nil {
			return err
		}
		if err = p.own.advance(); err != nil {
			return err
		}
	}
	if p.own.next == nil || e != nil && before(e.path, p.own.next.Path()) {
		return nil // planning e finds that it is not there
	}
	if e == nil || p.own.next.Path() != e.path {
		return p.differs(p.own.next.Path())
	}
	if !e.compareWith(p.own.next) {
		p.own.next.Release() // e has been decided
	}
	p.own.next = nil
	p.t.Params.Config.Progress.Touch()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.own.advance()
}

func (p *planner) closeOwn() {
	if p.own == nil {
		return
	}
	if p.own.next != nil {
		p.own.next.Release()
	}
	p.own.walk.Close()
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
	if (!found || !info.SameFile(p.own.files[e.link])) && !p.results.links.hasFailed(e.link) {
		return p.differs(e.path)
	}
	return p.results.makeLink(e)
}

// statPath returns the Info of a path below the root, following no symlink.
func (p *planner) statPath(path string) (info disk.Info, err error) {
	err = p.atPath(path, func(in disk.Dir, name string) error {
		info, err = in.Stat(name)
		return err
	})
	return info, err
}

// isLink reports whether there is a symlink of this text at a path below the root. A side that follows symlinks may
// have received it as one.
func (p *planner) isLink(path, text string) bool {
	return p.atPath(path, func(in disk.Dir, name string) error {
		link, err := in.ReadLink(name)
		if err == nil && link.Text != text {
			err = fs.ErrNotExist
		}
		return err
	}) == nil
}

// atPath calls a function with the directory that contains a path below the root, and the last name of the path.
func (p *planner) atPath(path string, call func(in disk.Dir, name string) error) error {
	dir := p.stack[0].seen
	for {
		name, rest, below := strings.Cut(path, "/")
		if !below {
			return call(dir, name)
		}
		child, err := dir.OpenBeneath(name)
		if err != nil {
			return err
		}
		defer child.Close()
		dir, path = child, rest
	}
}
