package disk

import (
	"errors"
	"io/fs"
	"strings"
)

// IsReserved reports whether a name has the form of those that transfers use for unfinished files. A tree refuses
// entries with such names, because they could be taken for its own.
func IsReserved(name string) bool {
	if !strings.HasPrefix(name, ".") {
		return false
	}
	for _, suffix := range []string{partialSuffix, journalSuffix, linkSuffix} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// checkName refuses names that could lead out of the directory, or are reserved.
func (d *Directory) checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..", strings.ContainsAny(name, "/\x00"):
		return NewError(ErrTarget, nil, "rename it in the source", "%q is not a name", name)
	case IsReserved(name):
		return NewError(ErrTarget, nil, "rename it in the source, or exclude it",
			"the name of %s is reserved for unfinished files", d.path(name))
	}
	return nil
}

// temporaryOf returns the name that an entry has until it is complete, where it needs one.
func temporaryOf(name string) string { return namesOf(name, "").link }

// nameNew gives a file that is complete its final name by calling give, which fails if the name exists. An entry that
// may be replaced is renamed over from a temporary name.
func (d *Directory) nameNew(dir Dir, name string, give func(name string) error) error {
	err := give(name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := d.prepareReplacing(dir, name, err); err != nil {
		return err
	}
	temporary := temporaryOf(name)
	if err := d.withoutStale(dir, temporary, func() error { return give(temporary) }); err != nil {
		return err
	}
	err = dir.Rename(temporary, name)
	if err != nil {
		_ = dir.Remove(temporary) // the first error is reported
	}
	return err
}

// renameNew gives an entry with a temporary name its final one.
func (d *Directory) renameNew(dir Dir, temporary, name string) error {
	err := dir.RenameIfAbsent(temporary, name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := d.prepareReplacing(dir, name, err); err != nil {
		return err
	}
	return dir.Rename(temporary, name)
}

// prepareReplacing returns an error unless an existing entry may be replaced by a file or a symlink, and keeps a file
// under another name if the tree keeps backups. exists is the error that reported it.
func (d *Directory) prepareReplacing(dir Dir, name string, exists error) error {
	found, err := dir.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // it was removed meanwhile
	case err != nil:
		return d.failed("examining", name, err)
	}
	err = InTheWay(d.path(name), found, exists)
	switch {
	case err != nil:
		return err
	case d.fresh:
		return d.collides(name, exists)
	case !d.tree.opt.Overwrite:
		return ErrorExists(d.path(name), found, exists)
	}
	if err := checkObstacle(dir, name, d.path(name)); err != nil {
		return err
	}
	if d.tree.opt.Backup && found.Mode.IsRegular() {
		_, err = backUp(dir, name, d.path(name))
	}
	return err
}

// InTheWay returns the error for what no file or symlink of a tree can replace, even if the tree may replace entries:
// directories, sockets, FIFOs and devices. path and exists are as for ErrorExists.
func InTheWay(path string, found Info, exists error) error {
	switch {
	case found.Mode.IsDir():
		return ErrorExists(path, found, exists)
	case !found.Mode.IsRegular() && found.Mode&fs.ModeSymlink == 0:
		return NewError(ErrTarget, exists, nextIfInTheWay, "cannot replace %s: it is not a regular file", path)
	}
	return nil
}

// NotADirectory returns the error for what has the name of a directory of a tree.
func NotADirectory(path string, err error) error {
	return NewError(ErrTarget, err, nextIfInTheWay,
		"cannot create the directory %s: something else has its name", path)
}

// ErrorExists returns the error for what was found at the path of an entry of a tree and may not be replaced. exists is
// the error that reported it; it may be nil.
func ErrorExists(path string, found Info, exists error) error {
	if found.Mode.IsDir() {
		return NewError(ErrTarget, exists, nextIfInTheWay, "cannot create %s: a directory has its name", path)
	}
	return NewError(ErrExists, exists, nextIfExists, "%s already exists", path)
}

// mayReplace reports whether entries may be replaced. In a directory that this transfer has created, all entries are
// its own or another process's.
func (d *Directory) mayReplace() bool { return d.tree.opt.Overwrite && !d.fresh }

// collides returns the error for a name that exists in a directory that this transfer has created. The file system may
// take two names of the source for one, for example if it ignores case.
func (d *Directory) collides(name string, exists error) error {
	return NewError(ErrExists, exists, "rename it in the source, or choose another file system",
		"%s already exists: the file system takes it for another name of the source, or another process created it",
		d.path(name))
}

// withoutStale calls a function that creates a temporary name, a second time if a killed transfer had left the name.
func (d *Directory) withoutStale(dir Dir, temporary string, create func() error) error {
	err := create()
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if found, err := dir.Stat(temporary); err == nil {
		if err := d.checkStale(found); err != nil {
			return err
		}
		if err := dir.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return create()
}

// checkStale returns an error if an entry with a temporary name cannot be of a killed transfer of this user.
func (d *Directory) checkStale(found Info) error {
	switch {
	case found.Mode.IsDir():
		return errors.New("a directory has the name of its temporary file")
	case found.UID != d.tree.self.UID && d.tree.self.UID != 0:
		return errors.New("another user's file has the name of its temporary file")
	default:
		return nil
	}
}
