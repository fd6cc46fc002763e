package disk

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// maxWalk bounds the work that the symlinks of a directory can cause, in components that are opened.
const maxWalk = 1 << 16

// Resolved is what a path leads to: a directory, or something else in one.
type Resolved struct {
	Folder *Folder // the directory itself, or the one that contains what has the name; with one reference
	Name   string  // of what is no directory; empty: the path leads to Folder itself
	Found  Info
}

// Resolve follows a path from a folder, one component after the other and never out of the tree. Each directory is
// opened from the one that contains it, never through a symlink, and ".." leads back to that, so that no exchange of
// directories and symlinks leads out. Unlike openat2(2) it needs the permission to read each directory. trusts decides
// which symlinks of a directory are followed; nil: all. A path that leads out fails with ErrOutside.
func Resolve(from *Folder, path string, trusts func(link, in Info) bool) (Resolved, error) {
	from.Hold()
	r := &resolver{Resolved: Resolved{Folder: from}, trusts: trusts}
	err := r.follow(path)
	for err == nil && r.todo != "" && r.Name == "" {
		err = r.step()
	}
	if err == nil && r.Name == "" {
		err = r.lookAtFolder()
	}
	if err != nil {
		r.Folder.Release()
		return Resolved{}, err
	}
	return r.Resolved, nil
}

// resolver is the state of Resolve.
type resolver struct {
	Resolved
	trusts func(link, in Info) bool
	todo   string // the path that is still to be followed from the folder
	links  int
	steps  int
}

// follow makes a path the one to be followed.
func (r *resolver) follow(path string) error {
	switch {
	case strings.HasPrefix(path, "/"):
		return ErrOutside
	case strings.IndexByte(path, 0) >= 0:
		return unix.EINVAL
	}
	r.todo = path
	return nil
}

// step follows one component.
func (r *resolver) step() error {
	name, rest, isDirectory := strings.Cut(r.todo, "/")
	r.todo = strings.TrimLeft(rest, "/")
	if r.steps++; r.steps > maxWalk {
		return unix.ELOOP
	}
	switch name {
	case ".":
		return nil
	case "..":
		return r.up()
	}
	dir, err := r.Folder.Use()
	if err != nil {
		return err
	}
	defer r.Folder.Unuse()
	found, err := dir.Stat(name)
	switch {
	case err != nil:
		return err
	case found.Mode.IsDir():
		return r.down(name)
	case found.Mode&fs.ModeSymlink != 0:
		return r.followLink(dir, name, isDirectory)
	case isDirectory:
		return unix.ENOTDIR
	}
	r.Name, r.Found = name, found
	return nil
}

func (r *resolver) down(name string) error {
	child, err := r.Folder.Enter(name)
	if err != nil {
		return err
	}
	r.Folder.Release()
	r.Folder = child
	return nil
}

func (r *resolver) up() error {
	parent := r.Folder.parent
	if parent == nil {
		return ErrOutside
	}
	parent.Hold()
	r.Folder.Release()
	r.Folder = parent
	return nil
}

// followLink puts the text of a symlink before the rest of the path.
func (r *resolver) followLink(dir Dir, name string, isDirectory bool) error {
	if r.links++; r.links > maxLinks {
		return unix.ELOOP
	}
	link, err := dir.ReadLink(name)
	if err != nil {
		return err
	}
	in, err := dir.Info()
	if err != nil {
		return err
	}
	if r.trusts != nil && !r.trusts(link.Info, in) {
		return ErrUntrustedLink
	}
	text := link.Text
	if isDirectory {
		text += "/" + r.todo
	}
	return r.follow(text)
}

func (r *resolver) lookAtFolder() error {
	dir, err := r.Folder.Use()
	if err != nil {
		return err
	}
	defer r.Folder.Unuse()
	r.Found, err = dir.Info()
	return err
}
