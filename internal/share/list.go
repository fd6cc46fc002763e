package share

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Entry is a file, directory or symlink of a share.
type Entry struct {
	Kind     wire.EntryKind // but EntryHardLink; EntrySpecial with All only
	Depth    int            // 0 for what was asked for
	Path     string         // below what was asked for; empty at depth 0
	Mode     uint32         // permission bits, and the sticky bit of a directory
	Modified disk.Timestamp
	Size     int64  // bytes of a file; 0 for anything else
	Link     string // the text of a symlink
	File     uint64 // a number that all names of a file or directory have, and hardly another one
	Mounted  bool   // something is mounted on this directory, which is below the share; with All only
}

// ListOptions say what List lists.
type ListOptions struct {
	Recursive bool // what is below directories of the listed one, too
	All       bool // sockets, FIFOs and devices, too, and which directories are mount points
}

// Name returns the last component of the path.
func (e *Entry) Name() string { return e.Path[strings.LastIndexByte(e.Path, '/')+1:] }

// Stat returns the entry at a path as CleanPath returns it. A symlink at its end is returned itself, unless a slash
// follows it. Only All of the options has a meaning. It fails with ErrDenied unless the access allows Read. Other
// errors are a *disk.Error.
func (o *Opened) Stat(path string, options ListOptions) (Entry, error) {
	if err := o.allow(Read, "list"); err != nil {
		return Entry{}, err
	}
	entry, err := o.stat(path, options.All)
	if err != nil {
		return Entry{}, cannotList(path, err)
	}
	return entry, nil
}

func (o *Opened) stat(path string, all bool) (Entry, error) {
	parent, name := disk.Split(path)
	if name == "" {
		info, err := o.root.Stat(orSelf(path))
		if err == nil && !info.Mode.IsDir() {
			err = unix.ENOTDIR
		}
		return entryOf(wire.EntryDirectory, &info), err
	}
	in, err := o.root.OpenDir(parent)
	if err != nil {
		return Entry{}, err
	}
	defer in.Close()
	info, err := in.Stat(name)
	switch {
	case err != nil:
		return Entry{}, err
	case info.Mode.IsDir():
		entry := entryOf(wire.EntryDirectory, &info)
		entry.Mounted = all && errors.Is(in.Obstacle(name), disk.ErrMountPoint)
		return entry, nil
	case info.Mode.IsRegular():
		return entryOf(wire.EntryFile, &info), nil
	case info.Mode&fs.ModeSymlink != 0:
		link, err := in.ReadLink(name)
		entry := entryOf(wire.EntrySymlink, &link.Info)
		entry.Link = link.Text
		return entry, err
	case all:
		return entryOf(wire.EntrySpecial, &info), nil
	}
	return Entry{}, errNotListed
}

var errNotListed = errors.New("it is neither a file, a directory nor a symlink")

// List calls each for the entry at a path as CleanPath returns it. If that is a directory, or a symlink to a directory
// of the share, it then calls each for every entry in it, or with Recursive also for those below, depth first and
// sorted bytewise by component. Symlinks are listed as themselves. Unfinished files of interrupted copies are left out,
// and without All sockets, FIFOs and devices. It fails with ErrDenied unless the access allows Read. An error of each,
// or of ctx, ends the listing and is returned. Entries that cannot be read are left out, with everything below them,
// and the first *disk.Error about that is returned after everything else. If the path itself cannot be read, each is
// not called.
func (o *Opened) List(ctx context.Context, path string, options ListOptions, each func(Entry) error) error {
	if err := o.allow(Read, "list"); err != nil {
		return err
	}
	info, err := o.root.Stat(orSelf(path))
	if err == nil && info.Mode.IsDir() {
		return o.listDirectory(ctx, orSelf(path), options, each)
	}
	entry, err := o.stat(path, options.All) // also finds a dangling symlink
	if err != nil {
		return cannotList(path, err)
	}
	return each(entry)
}

func (o *Opened) listDirectory(ctx context.Context, path string, opt ListOptions, each func(Entry) error) error {
	w, err := tree.Open(o.root, path, tree.Options{Shallow: !opt.Recursive, SkipLeftovers: true, All: opt.All})
	if err != nil {
		return err
	}
	defer w.Close()
	var incomplete error
	for ctx.Err() == nil {
		found, err := w.Next()
		if errors.Is(err, io.EOF) {
			return incomplete
		}
		if err != nil {
			return err
		}
		found.Release()
		switch {
		case found.Err == nil:
			err = each(fromTree(&found))
		case found.Depth == 0:
			err = found.Err
		case incomplete == nil && !errors.Is(found.Err, fs.ErrNotExist): // it was removed meanwhile
			incomplete = found.Err
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func fromTree(found *tree.Entry) Entry {
	entry := entryOf(found.Kind, &found.Info)
	entry.Depth, entry.Path, entry.Link, entry.Mounted = found.Depth, found.Path(), found.Link, found.Mounted
	return entry
}

func entryOf(kind wire.EntryKind, info *disk.Info) Entry {
	entry := Entry{Kind: kind, Mode: disk.ModeBits(info.Mode), Modified: info.Modified, File: info.Number()}
	if kind == wire.EntryFile {
		entry.Size = info.Size
	}
	return entry
}

func cannotList(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return disk.NewError(disk.ErrSource, err, "check the path", "%s does not exist", orSelf(path))
	}
	return disk.CannotStat(orSelf(path), err)
}
