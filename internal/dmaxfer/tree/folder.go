package tree

import (
	"errors"
	"io/fs"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// maxOpenFolders is how many directories of one tree stay open. Each call that is using another one adds to it.
const maxOpenFolders = 64

// Folder is a directory of the source tree. It counts its references: who keeps one calls Hold, and Release when done.
// Its methods may be called concurrently. Only some folders are open at a time. The others are opened again when they
// are used, from the root, component by component and without following symlinks.
type Folder struct {
	open   *openFolders
	parent *Folder // nil for the root
	name   string  // in the parent
	is     disk.Identity

	// These are protected by open.mu.
	refs  int
	dir   disk.Dir // nil while the folder is closed
	users int      // calls that use dir
	used  uint64   // when dir was last used, as a count of uses
}

// openFolders are the open directories of one tree.
type openFolders struct {
	mu    sync.Mutex
	limit int
	list  []*Folder
	uses  uint64
}

// newRoot returns the folder of an open root directory, with one reference.
func newRoot(dir disk.Dir, is disk.Identity, limit int) *Folder {
	root := &Folder{open: &openFolders{limit: limit}, is: is, refs: 1, dir: dir}
	root.open.list = []*Folder{root}
	return root
}

// enter opens a directory in this folder and returns it with one reference.
func (f *Folder) enter(name string) (*Folder, error) {
	dir, err := f.acquire()
	if err != nil {
		return nil, err
	}
	defer f.release()
	opened, err := dir.OpenChild(name)
	if err != nil {
		return nil, err
	}
	info, err := opened.Info()
	if err != nil {
		_ = opened.Close() // was only read
		return nil, err
	}
	f.Hold()
	child := &Folder{open: f.open, parent: f, name: name, is: info.Identity, refs: 1}
	child.adopt(opened)
	child.release()
	return child, nil
}

// acquire returns the open directory. The caller calls release when it no longer uses it.
func (f *Folder) acquire() (disk.Dir, error) {
	f.open.mu.Lock()
	if f.dir != nil {
		f.use()
		f.open.mu.Unlock()
		return f.dir, nil
	}
	f.open.mu.Unlock()
	opened, err := f.reopen()
	if err != nil {
		return nil, err
	}
	return f.adopt(opened), nil
}

// use counts one user. The caller has locked open.mu.
func (f *Folder) use() {
	f.open.uses++
	f.users, f.used = f.users+1, f.open.uses
}

// reopen opens the directory beneath its parent, which it opens first if necessary.
func (f *Folder) reopen() (disk.Dir, error) {
	parent, err := f.parent.acquire()
	if err != nil {
		return nil, err
	}
	defer f.parent.release()
	opened, err := parent.OpenChild(f.name)
	if err != nil {
		return nil, err
	}
	info, err := opened.Info()
	if err == nil && !info.SameFile(f.is) {
		err = errReplaced
	}
	if err != nil {
		_ = opened.Close() // was only read
		return nil, err
	}
	return opened, nil
}

// errReplaced is the error of reopen for another directory than the one that the walk found.
var errReplaced = errors.New("replaced")

// adopt makes an open directory that of the folder, unless another call was faster, and counts one user.
func (f *Folder) adopt(opened disk.Dir) disk.Dir {
	f.open.mu.Lock()
	surplus := opened
	if f.dir == nil {
		f.dir = opened
		f.open.list = append(f.open.list, f)
		surplus = nil
	}
	f.use()
	adopted := f.dir
	old := f.open.evict()
	f.open.mu.Unlock()
	for _, dir := range append(old, surplus) {
		if dir != nil {
			_ = dir.Close() // was only read
		}
	}
	return adopted
}

// evict takes the directories that were not used for the longest time from those that stay open. The root and those in
// use stay. The caller has locked mu, and closes them.
func (o *openFolders) evict() (closed []disk.Dir) {
	for len(o.list) > o.limit {
		var oldest *Folder
		for _, f := range o.list {
			if f.parent != nil && f.users == 0 && (oldest == nil || f.used < oldest.used) {
				oldest = f
			}
		}
		if oldest == nil {
			break
		}
		closed = append(closed, o.remove(oldest))
	}
	return closed
}

// remove takes a folder from the open ones. The caller has locked mu, and closes the returned directory.
func (o *openFolders) remove(f *Folder) disk.Dir {
	i := slices.Index(o.list, f)
	o.list[i] = o.list[len(o.list)-1]
	o.list = slices.Delete(o.list, len(o.list)-1, len(o.list))
	dir := f.dir
	f.dir = nil
	return dir
}

// release ends the use that acquire or adopt began.
func (f *Folder) release() {
	f.open.mu.Lock()
	f.users--
	f.open.mu.Unlock()
}

// Hold adds a reference.
func (f *Folder) Hold() {
	f.open.mu.Lock()
	defer f.open.mu.Unlock()
	f.refs++
}

// Release removes a reference. The folder is closed with the last one, and must not be used afterwards.
func (f *Folder) Release() {
	for f != nil {
		f.open.mu.Lock()
		f.refs--
		last := f.refs == 0
		var dir disk.Dir
		if last && f.dir != nil {
			dir = f.open.remove(f)
		}
		f.open.mu.Unlock()
		if dir != nil {
			_ = dir.Close() // was only read
		}
		if !last {
			return
		}
		f = f.parent
	}
}

// Open opens a regular file of the folder, never through a symlink. found is what the walk found there; if it is no
// longer that file the error is an ErrSourceChanged. path is for messages. All errors are a *disk.Error.
func (f *Folder) Open(name string, found disk.Identity, path string) (*disk.Source, error) {
	dir, err := f.acquire()
	if err != nil {
		return nil, cannotRead(path, err)
	}
	defer f.release()
	file, err := dir.Open(name, true)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	info, err := file.Info()
	if err == nil && info.Mode.IsRegular() && info.SameFile(found) {
		return disk.NewSource(file, info), nil
	}
	_ = file.Close() // was not read
	if err != nil {
		return nil, disk.CannotStat(path, err)
	}
	return nil, changed(path, "was replaced", nil)
}

// cannotRead returns the error for an entry that was there and cannot be opened.
func cannotRead(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return changed(path, "was removed", err)
	case errors.Is(err, errReplaced),
		errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENXIO):
		return changed(path, "was replaced", nil)
	default:
		return disk.NewError(disk.ErrSource, err, "make it readable for this user, or exclude it",
			"cannot read %s: %s", path, disk.Reason(err))
	}
}

func changed(path, how string, err error) error {
	return disk.NewError(disk.ErrSourceChanged, err, "copy again when no other process changes the tree",
		"%s %s during the copy", path, how)
}
