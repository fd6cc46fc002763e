package filetree

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Entry is what a tree has under one path.
type Entry struct {
	Path      string // below the root, which is "."
	Mode      fs.FileMode
	Size      int64 // of a regular file
	Allocated int64 // bytes of the disk that a regular file takes
	Modified  time.Time
	Changed   time.Time // of content or metadata; no program can set it
	Link      string    // text of a symlink
	UID, GID  uint32
	Inode     uint64
	Links     uint64 // names of the inode, also outside the tree
}

// List returns the entries of a tree, the root first, and then depth first in bytewise order of the names. It follows
// no symlink.
func List(ctx context.Context, root string) (entries []Entry, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		e, err := newEntry(root, path, d)
		entries = append(entries, e)
		return err
	})
	return entries, err
}

func newEntry(root, path string, d fs.DirEntry) (e Entry, err error) {
	info, err := d.Info()
	if err != nil {
		return e, err
	}
	if e.Path, err = filepath.Rel(root, path); err != nil {
		return e, err
	}
	stat := info.Sys().(*syscall.Stat_t)
	e.Mode, e.Modified, e.Changed = info.Mode(), info.ModTime(), time.Unix(stat.Ctim.Unix())
	e.UID, e.GID, e.Inode, e.Links = stat.Uid, stat.Gid, stat.Ino, uint64(stat.Nlink)
	switch {
	case e.Mode.IsRegular():
		e.Size, e.Allocated = info.Size(), stat.Blocks*512
	case e.Mode.Type() == fs.ModeSymlink:
		e.Link, err = os.Readlink(path)
	}
	return e, err
}

// Written returns the paths of the regular files of after that before does not have in the same state: new ones, and
// those that were replaced, written to or given other metadata between the two lists.
func Written(before, after []Entry) (paths []string) {
	known := byPath(before)
	for _, e := range after {
		old, is := known[e.Path]
		if e.Mode.IsRegular() && (!is || old.Inode != e.Inode || !old.Changed.Equal(e.Changed)) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// Check returns an error unless the entries are as many as planned, and of the planned size in all.
func (t *Tree) Check(entries []Entry) error {
	var found Tree
	for _, e := range entries {
		switch {
		case e.Mode.IsRegular():
			found.Files++
			found.Bytes += e.Size
		case e.Mode.IsDir():
			found.Directories++
		default:
			found.Symlinks++
		}
	}
	found.Directories-- // the root
	if found.text() != t.text() {
		return fmt.Errorf("the tree has %s, want %s", found.text(), t.text())
	}
	return nil
}

func (t *Tree) text() string {
	return fmt.Sprintf("%d files of %d bytes, %d directories and %d symlinks",
		t.Files, t.Bytes, t.Directories, t.Symlinks)
}

func byPath(entries []Entry) map[string]Entry {
	found := make(map[string]Entry, len(entries))
	for _, e := range entries {
		found[e.Path] = e
	}
	return found
}
