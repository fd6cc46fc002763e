package disk

import (
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// RemoveBeneath removes a file, a symlink or an empty directory by its path below a directory, of which no component
// may be "", "." or "..", and only the last one a symlink, which is removed itself. Anything else stays: the directory
// itself, sockets, FIFOs and devices, and the partial file or journal that a running transfer uses. Errors are an
// ErrTarget: ErrBusy for the last ones; they wrap fs.ErrNotExist if there is nothing at the path, and unix.ENOTEMPTY.
func RemoveBeneath(base Dir, path string) error {
	return explainRemoval(path, removeBeneath(base, path, Dir.RemoveDir))
}

// RemoveFileBeneath is RemoveBeneath for anything but a directory: for that its error wraps unix.EISDIR.
func RemoveFileBeneath(base Dir, path string) error {
	return explainRemoval(path, removeBeneath(base, path, func(Dir, string) error { return unix.EISDIR }))
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
		return NewError(ErrTarget, err,
			"look for unfinished files in it, whose names begin with a dot, and for sockets",
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

func removeBeneath(base Dir, path string, removeDir func(Dir, string) error) error {
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
		return in.Remove(name)
	case !found.Mode.IsRegular():
		return errNotRemovable
	case IsLeftover(name):
		return removeLeftover(in, name)
	default:
		return in.Remove(name)
	}
}

var errNotRemovable = errors.New("it is neither a file, a symlink nor a directory")

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
