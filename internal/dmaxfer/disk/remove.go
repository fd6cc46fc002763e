package disk

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// RemoveBeneath removes an empty directory, or anything that is no directory, by its path below a directory. No
// component of the path may be "", "." or "..", and only the last one a symlink, which is removed itself. Mount points
// stay, and the partial file or journal that a running transfer uses. Errors are an ErrTarget, or ErrBusy for such a
// file; they wrap fs.ErrNotExist if there is nothing at the path, unix.ENOTEMPTY and ErrMountPoint.
func RemoveBeneath(base Dir, path string) error {
	return explainRemoval(path, removeBeneath(base, path, removeEntry))
}

// RemoveExtra is RemoveBeneath also for a user who may not write to a directory of their own: it gets the right for as
// long as the removal takes.
func RemoveExtra(base Dir, path string) error {
	return explainRemoval(path, removeBeneath(base, path, mayGetRights(removeEntry)))
}

// SetAsideExtra is RemoveExtra, except that a file, a symlink or a directory that is not empty is not removed but
// renamed like a backup.
func SetAsideExtra(base Dir, path string) error {
	return explainRemoval(path, removeBeneath(base, path, mayGetRights(setEntryAside)))
}

func mayGetRights(remove func(in Dir, name string) error) func(in Dir, name string) error {
	return func(in Dir, name string) error {
		err := remove(in, name)
		if !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return withRights(in, err, func() error { return remove(in, name) })
	}
}

// withRights makes a call that has failed for want of permission again, after it has given the owner of a directory the
// right to change it, if that is possible. The mode is the open directory's, even if it is moved meanwhile.
func withRights(in Dir, failed error, call func() error) error {
	const mayChange = 0o300
	info, err := in.Info()
	if err != nil || info.Mode.Perm()&mayChange == mayChange {
		return failed
	}
	mode := ModeBits(info.Mode)
	if in.SetMode(mode|mayChange) != nil {
		return failed
	}
	return cmp.Or(call(), in.SetMode(mode))
}

// RemoveFileBeneath is RemoveBeneath for anything but a directory: for that its error wraps unix.EISDIR.
func RemoveFileBeneath(base Dir, path string) error {
	return explainRemoval(path, removeBeneath(base, path, removeFile))
}

func explainRemoval(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrLocked):
		return NewError(ErrBusy, err, "wait until the copy has ended",
			"cannot remove %s: another process is receiving it", path)
	case errors.Is(err, unix.EISDIR):
		return NewError(ErrTarget, err, "use -r to remove it with its content", "%s is a directory", path)
	case errors.Is(err, unix.ENOTEMPTY):
		return NewError(ErrTarget, err, "look for unfinished files in it, whose names begin with a dot",
			"cannot remove directory %s: %s", path, Reason(err))
	case errors.Is(err, ErrMountPoint):
		return NewError(ErrTarget, err, "unmount it first", "cannot remove %s: %s", path, err)
	case errors.Is(err, ErrImmutable), errors.Is(err, ErrAppendOnly):
		return NewError(ErrTarget, err, "remove that attribute first (chattr)", "cannot remove %s: %s", path, err)
	default:
		return NewError(ErrTarget, err, "check its permissions, and that no other process changes the directory",
			"cannot remove %s: %s", path, Reason(err))
	}
}

func removeBeneath(base Dir, path string, remove func(in Dir, name string) error) error {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." {
			return ErrOutside
		}
	}
	in, name := base, path
	if cut := strings.LastIndexByte(path, '/'); cut >= 0 {
		opened, err := base.OpenBeneath(path[:cut])
		if err != nil {
			return err
		}
		defer opened.Close()
		in, name = opened, path[cut+1:]
	}
	return remove(in, name)
}

func removeEntry(in Dir, name string) error {
	return removeAs(in, name, Dir.RemoveDir, Dir.Remove)
}

func removeFile(in Dir, name string) error {
	return removeAs(in, name, func(Dir, string) error { return unix.EISDIR }, Dir.Remove)
}

func setEntryAside(in Dir, name string) error { return removeAs(in, name, setDirAside, setAside) }

// removeAs removes an entry of a directory by what it is. A FIFO, socket or device has no content that remove could
// keep.
func removeAs(in Dir, name string, removeDir, remove func(Dir, string) error) error {
	found, err := in.Stat(name)
	if err == nil {
		err = in.Obstacle(name)
	}
	switch {
	case err != nil:
		return err
	case found.Mode.IsDir():
		return removeDir(in, name)
	case found.Mode&fs.ModeSymlink != 0:
		return remove(in, name)
	case !found.Mode.IsRegular():
		return in.Remove(name)
	case IsLeftover(name):
		return removeLeftover(in, name)
	default:
		return remove(in, name)
	}
}

// removeLeftover removes a partial file or a journal while it holds the lock of the partial file.
func removeLeftover(in Dir, name string) error {
	partial := name
	if stem, isJournal := strings.CutSuffix(name, journalSuffix); isJournal {
		partial = stem + partialSuffix
	}
	file, err := in.Open(partial, true)
	if errors.Is(err, fs.ErrNotExist) {
		return in.Remove(name)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Lock(); err != nil {
		return err
	}
	return in.Remove(name)
}
