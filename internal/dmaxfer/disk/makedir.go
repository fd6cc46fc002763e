package disk

import (
	"errors"
	"io/fs"
	"strings"
)

// MakeDir creates the directory at a path, with mode 0777 less the umask, unless something of that name exists. The
// directory above it must exist; it is flushed, so that the new one outlives a crash of the machine. Errors come from
// the file system.
func MakeDir(on FS, path string) error {
	if _, err := on.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above, name := Split(strings.TrimRight(path, "/"))
	in, err := on.OpenDir(above)
	if err != nil {
		return err
	}
	err = in.MakeDir(name, directoryMode)
	if errors.Is(err, fs.ErrExist) { // another process may have just created it, or it is a dangling symlink
		_, err = on.Stat(path)
	}
	if err == nil {
		err = in.Sync()
	}
	return errors.Join(err, in.Close())
}

// MakeAbove creates the directories above a path that are missing, each as MakeDir does.
func MakeAbove(on FS, path string) error {
	above, _ := Split(strings.TrimRight(path, "/"))
	if _, err := on.Stat(above); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := MakeAbove(on, above); err != nil {
		return err
	}
	return MakeDir(on, above)
}

// FirstMissing returns the part of a path that ends with its first directory that is missing: the path itself, unless a
// directory above it does not exist.
func FirstMissing(on FS, path string) string {
	above, _ := Split(strings.TrimRight(path, "/"))
	if _, err := on.Stat(above); !errors.Is(err, fs.ErrNotExist) {
		return path
	}
	return FirstMissing(on, strings.TrimRight(above, "/"))
}
