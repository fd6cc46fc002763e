package tree

import (
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// maxLinks is the number of symlinks that are followed one after the other, as in the kernel.
const maxLinks = 40

var (
	errOutside = errors.New("outside the tree")
	errLoop    = errors.New("symlink loop")
)

// target is what a symlink points to.
type target struct {
	folder *disk.Folder // the directory itself, or the one that contains a file; with one reference
	name   string       // of the file; empty for a directory
	info   disk.Info
}

// resolve follows the text of a symlink in a folder, one component after the other and never out of the tree. Errors
// are errOutside or those of the disk.
func resolve(from *disk.Folder, text string) (target, error) {
	from.Hold()
	r := &resolver{at: from, todo: text}
	for r.todo != "" {
		name, err := r.step()
		if err == nil && name == "" {
			continue
		}
		if err != nil {
			r.at.Release()
			return target{}, err
		}
		return target{folder: r.at, name: name, info: r.found}, nil
	}
	dir, err := r.at.Use()
	if err == nil {
		r.found, err = dir.Info()
		r.at.Unuse()
	}
	if err != nil {
		r.at.Release()
		return target{}, err
	}
	return target{folder: r.at, info: r.found}, nil
}

// resolver is the state of resolve: a directory, and the path that is still to be followed from there.
type resolver struct {
	at    *disk.Folder
	todo  string
	links int
	found disk.Info
}

// step follows one component. It returns the name of a file, which is the end.
func (r *resolver) step() (file string, err error) {
	if strings.HasPrefix(r.todo, "/") {
		return "", errOutside
	}
	name, rest, more := strings.Cut(r.todo, "/")
	rest = strings.TrimLeft(rest, "/")
	r.todo = rest
	switch name {
	case ".":
		return "", nil
	case "..":
		return "", r.up()
	}
	dir, err := r.at.Use()
	if err != nil {
		return "", err
	}
	defer r.at.Unuse()
	if r.found, err = dir.Stat(name); err != nil {
		return "", err
	}
	switch mode := r.found.Mode; {
	case mode.IsDir():
		return "", r.down(name)
	case mode&fs.ModeSymlink != 0:
		return "", r.follow(dir, name, more)
	case more:
		return "", unix.ENOTDIR
	}
	return name, nil
}

func (r *resolver) up() error {
	if r.at.Parent() == nil {
		return errOutside
	}
	r.move(r.at.Parent())
	return nil
}

// move goes to a folder and takes a reference to it.
func (r *resolver) move(to *disk.Folder) {
	to.Hold()
	r.at.Release()
	r.at = to
}

func (r *resolver) down(name string) error {
	child, err := r.at.Enter(name)
	if err != nil {
		return err
	}
	r.move(child)
	child.Release()
	return nil
}

// follow replaces a symlink by its text, which more of the path follows.
func (r *resolver) follow(dir disk.Dir, name string, more bool) error {
	if r.links++; r.links > maxLinks {
		return unix.ELOOP
	}
	link, err := dir.ReadLink(name)
	if err != nil {
		return err
	}
	rest := r.todo
	r.todo = link.Text
	if more {
		r.todo += "/" + rest
	}
	return nil
}

// cannotFollow returns the error for a symlink at path with this text.
func cannotFollow(path, text string, err error) error {
	switch {
	case errors.Is(err, errOutside):
		return disk.NewError(disk.ErrSource, err, "copy it as a symlink, or exclude it",
			"symlink %s points out of the tree, to %s", path, text)
	case errors.Is(err, errLoop), errors.Is(err, unix.ELOOP):
		return disk.NewError(disk.ErrSource, err, "copy it as a symlink, or exclude it",
			"symlink loop: %s points to %s", path, text)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return disk.NewError(disk.ErrSource, err, "fix or remove it, or copy it as a symlink",
			"dangling symlink: %s points to %s", path, text)
	default:
		return cannotRead(path, err)
	}
}
