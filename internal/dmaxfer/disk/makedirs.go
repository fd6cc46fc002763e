package disk

import (
	"errors"
	"io/fs"
	"strings"
)

// MakeDirs creates the directory at a path and the missing ones above it, with mode 0777 less the umask. Symlinks to
// directories are followed as the file system follows them. If durable, each directory in which one was created is
// flushed, so that the result outlives a crash of the machine. Errors are an ErrTarget; what was created remains.
func MakeDirs(on FS, path string, durable bool) error {
	at, missing, err := openExisting(on, path)
	if err != nil {
		return CannotCreate(path, err)
	}
	for name := range strings.SplitSeq(missing, "/") {
		if name == "" {
			continue
		}
		next, err := openOrMake(at, name, durable)
		_ = at.Close() // was only read
		if err != nil {
			return CannotCreate(path, err)
		}
		at = next
	}
	_ = at.Close() // was only read
	return nil
}

// openExisting opens the lowest directory of a path that exists, and returns the rest of the path. It starts with the
// whole path, because directories above need not be readable.
func openExisting(on FS, path string) (at Dir, missing string, err error) {
	for {
		at, err = on.OpenDir(path)
		if path == "." || path == "/" || !errors.Is(err, fs.ErrNotExist) {
			return at, missing, err
		}
		above, name := Split(strings.TrimRight(path, "/"))
		missing = name + "/" + missing
		if path = strings.TrimRight(above, "/"); path == "" {
			path = "/"
		}
	}
}

// openOrMake opens a directory of this name, which it creates if there is nothing of the name.
func openOrMake(in Dir, name string, durable bool) (Dir, error) {
	opened, err := in.OpenDir(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return opened, err
	}
	if err := in.MakeDir(name, directoryMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if durable {
		if err := in.Sync(); err != nil {
			return nil, err
		}
	}
	return in.OpenChild(name)
}
