package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// maxBackups is how many backups of a file there may be beside it.
const maxBackups = 10_000

// backupName returns the name of a backup, numbered from 1: NAME~, NAME~2~, NAME~3~ and so on. A name that would be
// too long with that loses its last characters.
func backupName(name string, number int) string {
	suffix := "~"
	if number > 1 {
		suffix = fmt.Sprintf("~%d~", number)
	}
	for len(name)+len(suffix) > unix.NAME_MAX {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name + suffix
}

// withBackupName calls a function with one name of a backup after the other while it fails with fs.ErrExist.
func withBackupName(name string, call func(backup string) error) error {
	err := error(fs.ErrExist)
	for number := 1; errors.Is(err, fs.ErrExist) && number <= maxBackups; number++ {
		err = call(backupName(name, number))
	}
	return err
}

// backUp gives a file that is about to be replaced the first name of a backup that nothing has, and reports whether
// there is a file. It replaces nothing: a file named like a backup may be one of the source. path is for messages.
func backUp(dir Dir, name, path string) (found bool, err error) {
	err = withBackupName(name, func(backup string) error {
		err := dir.Link(name, backup)
		if errors.Is(err, fs.ErrExist) && isSame(dir, name, backup) {
			return nil // from a transfer that was killed before it had replaced the file
		}
		return err
	})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrExist):
		return true, NewError(ErrTarget, err, "remove some", "cannot back up %s: it has %d backups", path, maxBackups)
	}
	return true, NewError(kindOfWrite(err), err, "leave out --backup, or choose a file system with hard links",
		"cannot back up %s as %s~: %s", path, name, Reason(err))
}

// setAside renames an entry to the first name of a backup that nothing has.
func setAside(in Dir, name string) error {
	return withBackupName(name, func(backup string) error { return in.RenameIfAbsent(name, backup) })
}

// setDirAside renames a directory with all that is in it. An empty one is removed: there is nothing to keep.
func setDirAside(in Dir, name string) error {
	err := in.RemoveDir(name)
	if errors.Is(err, unix.ENOTEMPTY) {
		err = setAside(in, name)
	}
	return err
}

// isSame reports whether two names belong to one file.
func isSame(dir Dir, name, other string) bool {
	one, err := dir.Stat(name)
	if err != nil {
		return false
	}
	two, err := dir.Stat(other)
	return err == nil && two.SameFile(one.Identity)
}
