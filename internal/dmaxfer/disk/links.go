package disk

import (
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// Symlink creates a symlink with this text, or replaces a file or symlink if the tree allows it. Only owner and
// modification time of meta are used.
func (d *Directory) Symlink(name, text string, meta Metadata) error {
	dir, err := d.useFor(name)
	if err != nil {
		return err
	}
	defer d.Unuse()
	temporary := temporaryOf(name)
	err = d.withoutStale(dir, temporary, func() error { return dir.Symlink(text, temporary) })
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EPERM) {
		return NewError(ErrTarget, err, "send what it points to (--links follow), or leave it out (--links skip)",
			"cannot create the symlink %s: %s", d.path(name), Reason(err))
	}
	if err != nil {
		return d.cannotCreate(name, err)
	}
	err = d.setLinkAttributes(dir, temporary, name, meta)
	if err == nil {
		err = d.renameNew(dir, temporary, name)
	}
	if err != nil {
		_ = dir.Remove(temporary) // the first error is reported
		return d.cannotCreate(name, err)
	}
	return d.changed()
}

// setLinkAttributes leaves the time as it is where the time of symlinks cannot be set.
func (d *Directory) setLinkAttributes(dir Dir, temporary, name string, meta Metadata) error {
	keep := d.tree.opt.Preserve
	if (keep.Owner || keep.Times) && !d.system.setsLinks(dir) {
		if keep.Owner {
			return cannotKeep(d.path(name), "its owner", nextIfNoOwner, errors.ErrUnsupported)
		}
		return nil
	}
	if keep.Owner {
		if err := dir.SetLinkOwner(temporary, meta.UID, meta.GID); err != nil {
			return cannotKeep(d.path(name), "its owner", nextIfNoOwner, err)
		}
	}
	if keep.Times {
		if err := dir.SetLinkModified(temporary, meta.Modified); err != nil {
			return d.failed("setting the time of", name, err)
		}
	}
	return nil
}

// setsLinks reports whether times and owners of symlinks can be set in the file system, which dir is a directory of.
func (s *system) setsLinks(dir Dir) bool {
	s.links.Do(func() { s.hasLinkTimes = setsLinks(dir) })
	return s.hasLinkTimes
}

// Link creates another name of a regular file, which is named by its path below the tree's root. An existing file or
// symlink is replaced if the tree allows it.
func (d *Directory) Link(name, target string) error {
	if err := d.checkName(name); err != nil {
		return err
	}
	for component := range strings.SplitSeq(target, "/") {
		if err := d.checkName(component); err != nil {
			return err
		}
	}
	err := d.tree.root.Do(func(root Dir) error {
		return Beneath(root, target, func(from Dir, base string) error { return d.linkFrom(from, base, name) })
	})
	if _, is := errors.AsType[*Error](err); err != nil && !is {
		return NewError(kindOfWrite(err), err, "receive it as a file of its own (leave links out of --preserve)",
			"cannot make %s a hard link to %s: %s", d.path(name), target, Reason(err))
	}
	return err
}

// Beneath calls a function with the directory that contains a path below dir, and the last name of the path. It follows
// no symlink. It returns the errors of Dir.OpenBeneath and of the function.
func Beneath(dir Dir, path string, call func(in Dir, name string) error) error {
	parent, name := Split(path)
	if parent == "." {
		return call(dir, name)
	}
	in, err := dir.OpenBeneath(strings.TrimSuffix(parent, "/"))
	if err != nil {
		return err
	}
	defer in.Close()
	return call(in, name)
}

// linkFrom does nothing if the name is already one of the file: a rename between two names of it would have no effect.
func (d *Directory) linkFrom(from Dir, base, name string) error {
	found, err := from.Stat(base)
	if err != nil {
		return err
	}
	if !found.Mode.IsRegular() {
		return errNotRegular
	}
	to, err := d.use()
	if err != nil {
		return err
	}
	defer d.Unuse()
	is, err := to.Stat(name)
	if err == nil && is.SameFile(found.Identity) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.nameNew(to, name, func(name string) error { return from.LinkTo(base, to, name) }); err != nil {
		return err
	}
	return d.changed()
}
