package disk

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxWalk bounds the work that the symlinks of a directory can cause, in components that are opened.
const maxWalk = 1 << 16

// place is where a path leads to: a directory, or something else in one.
type place struct {
	base  Dir      // not to be closed
	dir   Dir      // may be base
	names []string // of the directories from base to dir, without symlinks
	name  string   // of what is no directory; empty: the path leads to dir itself
	found Info     // of what has the name

	self  Self
	todo  string // the path that is still to be followed from dir
	links int
	steps int
}

// release closes the directory.
func (p *place) release() {
	if p.dir != p.base {
		_ = p.dir.Close() // was only read
	}
}

// take returns the directory for the caller to close.
func (p *place) take() (Dir, error) {
	if p.dir == p.base {
		return p.base.OpenDir(".")
	}
	return p.dir, nil
}

// walkBeneath follows a path below a directory in any file system, one component after the other. Each directory is
// opened from the one that contains it, never through a symlink, and for ".." again from base, so that no exchange of
// directories and symlinks leads out. Unlike openat2(2) it needs the permission to read each directory. The caller
// releases the place.
func walkBeneath(base Dir, self Self, path string) (*place, error) {
	p := &place{base: base, dir: base, self: self, todo: path}
	err := error(unix.ENOENT)
	if path != "" {
		err = p.follow(path)
	}
	for err == nil && p.todo != "" && p.name == "" {
		err = p.step()
	}
	if err == nil {
		return p, nil
	}
	p.release()
	if is, found := errors.AsType[*fs.PathError](err); found {
		err = is.Err
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: err}
}

// follow makes a path the one to be followed.
func (p *place) follow(path string) error {
	switch {
	case strings.HasPrefix(path, "/"):
		return ErrOutside
	case strings.IndexByte(path, 0) >= 0:
		return unix.EINVAL
	}
	p.todo = path
	return nil
}

// step follows one component.
func (p *place) step() error {
	name, rest, isDirectory := strings.Cut(p.todo, "/")
	p.todo = strings.TrimLeft(rest, "/")
	if p.steps++; p.steps > maxWalk {
		return unix.ELOOP
	}
	switch name {
	case ".":
		return nil
	case "..":
		return p.up()
	}
	found, err := p.dir.Stat(name)
	switch {
	case err != nil:
		return err
	case found.Mode.IsDir():
		return p.down(name)
	case found.Mode&fs.ModeSymlink != 0:
		return p.followLink(name, isDirectory)
	case isDirectory:
		return unix.ENOTDIR
	}
	p.name, p.found = name, found
	return nil
}

func (p *place) down(name string) error {
	child, err := p.dir.OpenChild(name)
	if err != nil {
		return err
	}
	p.move(child)
	p.names = append(p.names, name)
	return nil
}

func (p *place) move(to Dir) {
	p.release()
	p.dir = to
}

// up opens the directory above again by its path from base: the open one may have been moved, and its parent be
// outside.
func (p *place) up() error {
	if len(p.names) == 0 {
		return ErrOutside
	}
	p.names = slices.Delete(p.names, len(p.names)-1, len(p.names))
	p.steps += len(p.names)
	if len(p.names) == 0 {
		p.move(p.base)
		return nil
	}
	above, err := p.base.OpenBeneath(strings.Join(p.names, "/"))
	if err != nil {
		return err
	}
	p.move(above)
	return nil
}

// followLink puts the text of a symlink before the rest of the path.
func (p *place) followLink(name string, isDirectory bool) error {
	if p.links++; p.links > maxLinks {
		return unix.ELOOP
	}
	link, err := p.dir.ReadLink(name)
	if err != nil {
		return err
	}
	in, err := p.dir.Info()
	if err != nil {
		return err
	}
	if !trusted(link.Info, in, p.self) {
		return ErrUntrustedLink
	}
	text := link.Text
	if isDirectory {
		text += "/" + p.todo
	}
	return p.follow(text)
}
