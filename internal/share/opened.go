package share

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// ErrDenied is the error for what the access to a share does not allow.
var ErrDenied = exit.NewReason(exit.Refused, "", "not allowed")

// Opened is a share whose directory is open, so that later changes of its path have no effect. Its methods may be
// called concurrently, except for Close.
type Opened struct {
	Share
	root   *disk.Root
	remove func(in disk.Dir, path string) error
}

// Open opens the directory of a share. Its path is the operator's: symlinks in it are followed. It returns a
// *disk.Error, or the error of Share.Check.
func Open(s Share, on disk.FS) (*Opened, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	root, err := disk.OpenRoot(on, s.Path)
	if err != nil {
		return nil, err
	}
	return &Opened{Share: s, root: root, remove: disk.RemoveBeneath}, nil
}

// At returns the same share with an open directory of it instead of its own, with the same rights. It is valid until
// Close of either, and is not closed itself.
func (o *Opened) At(dir disk.Dir) *Opened { return At(o.Share, o.root, dir) }

// At returns a share of a directory that is open already. It is valid until the directory is closed, and is not closed
// itself.
func At(s Share, on disk.FS, dir disk.Dir) *Opened {
	return &Opened{Share: s, root: disk.RootAt(on, dir), remove: disk.RemoveExtra}
}

// FS returns the file system of the share: all its paths are relative to the share's directory, "." is that directory,
// and none leads out of it. It refuses changes unless the access allows Write. It is valid until Close.
func (o *Opened) FS() disk.FS {
	if !o.Access.Allows(Write) {
		return o.root.ReadOnly()
	}
	return o.root
}

// Close closes the share. Files and directories that were opened in it remain usable.
func (o *Opened) Close() error { return o.root.Close() }

// allow returns an error that wraps ErrDenied unless the access allows what is wanted. to completes "is not allowed".
func (o *Opened) allow(wanted Access, to string) error {
	if o.Access.Allows(wanted) {
		return nil
	}
	return fmt.Errorf("share %s: %w to %s (it is %s)", o.Name, ErrDenied, to, o.Access)
}

// Remover removes entries below one directory of a share. Its methods must be called one at a time.
type Remover struct {
	in     disk.Dir
	remove func(in disk.Dir, path string) error
}

// Remover returns the Remover for the directory at a path as CleanPath returns it, following symlinks as FS does. It
// fails with ErrDenied unless the access allows Write, and if existing files may not be replaced. Other errors are a
// *disk.Error.
func (o *Opened) Remover(directory string) (*Remover, error) {
	if err := o.allow(Write, "remove"); err != nil {
		return nil, err
	}
	if o.NoOverwrite {
		return nil, fmt.Errorf("share %s: %w to remove (it is %s)", o.Name, ErrDenied, optionNoOverwrite)
	}
	in, err := o.root.OpenDir(orSelf(directory))
	if err != nil {
		return nil, disk.CannotStat(directory, err)
	}
	return &Remover{in: in, remove: o.remove}, nil
}

// Remove is disk.RemoveBeneath for a path below the Remover's directory, or disk.RemoveExtra in one of At.
func (r *Remover) Remove(path string) error { return r.remove(r.in, path) }

// RemoveFile is disk.RemoveFileBeneath.
func (r *Remover) RemoveFile(path string) error { return disk.RemoveFileBeneath(r.in, path) }

// SetAside is disk.SetAsideExtra.
func (r *Remover) SetAside(path string) error { return disk.SetAsideExtra(r.in, path) }

// Close closes the directory.
func (r *Remover) Close() error { return r.in.Close() }

// MakeDir creates a directory at a path as CleanPath returns it, which is not the share itself, and makes it durable.
// With parents it may exist, and directories above it that are missing are created, too. It fails with ErrDenied unless
// the access allows Write. Other errors are an ErrTarget.
func (o *Opened) MakeDir(path string, parents bool) error {
	if err := o.allow(Write, "create directories"); err != nil {
		return err
	}
	if parents {
		if err := disk.MakeAbove(o.root, path); err != nil {
			return disk.NewError(disk.ErrTarget, err, "check the path and its permissions",
				"cannot create the directory of %s: %s", path, disk.Reason(err))
		}
	}
	info, err := o.root.Stat(path)
	switch {
	case err == nil && parents && info.Mode.IsDir():
		return nil
	case err == nil:
		return disk.NewError(disk.ErrTarget, fs.ErrExist, "choose another name", "%s exists", path)
	case errors.Is(err, fs.ErrNotExist):
		err = disk.MakeDir(o.root, path)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return disk.NewError(disk.ErrTarget, err, "use -p to create it, too",
			"cannot create %s: the directory above it does not exist, or it is a dangling symlink", path)
	}
	return disk.CannotCreate(path, err)
}

// orSelf returns the path of a share's directory in its file system.
func orSelf(path string) string {
	if path == "" {
		return "."
	}
	return path
}
