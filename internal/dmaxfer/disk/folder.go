package disk

import (
	"container/list"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// Folder is a directory of a tree that is sent or received. It is reference counted: who keeps one calls Hold, and
// Release when done. Only some handles of a tree are open at a time. Others are closed when they have not been used for
// the longest time, and opened again when they are needed, so that many folders may be held. Its methods may be called
// concurrently.
type Folder struct {
	open   *openFolders
	parent *Folder  // held; nil: the root
	name   string   // in parent
	was    Identity // only device and inode are used; zero: they may change

	opening sync.Mutex // held while its handle is opened

	// The following are guarded by open.mu.
	refs  int
	users int // calls that use dir
	dir   Dir // nil: closed
	idle  *list.Element
}

// openFolders are the open handles of a tree.
type openFolders struct {
	limit int // of those that stay open while no call uses them

	mu    sync.Mutex
	count int
	idle  list.List // of *Folder: those that no call uses, the least recently used first
}

// NewFolder returns the folder of an open root with one reference. The root stays open until the last Release, and
// limit handles in all while no call uses them.
func NewFolder(root Dir, is Identity, limit int) *Folder {
	return &Folder{open: &openFolders{limit: limit, count: 1}, was: is, refs: 1, users: 1, dir: root}
}

// Enter opens a directory of this name and returns it with one reference.
func (f *Folder) Enter(name string) (*Folder, error) {
	dir, err := f.Use()
	if err != nil {
		return nil, err
	}
	defer f.Unuse()
	opened, err := dir.OpenBeneath(name)
	if err != nil {
		return nil, err
	}
	info, err := opened.Info()
	if err != nil {
		_ = opened.Close() // was only read
		return nil, err
	}
	child := f.child(name)
	child.was = info.Identity
	child.adopt(opened)
	child.Unuse()
	return child, nil
}

// child returns the folder of this name without a handle, with one reference.
func (f *Folder) child(name string) *Folder {
	f.Hold()
	return &Folder{open: f.open, parent: f, name: name, refs: 1}
}

// Identity returns device and inode of the directory.
func (f *Folder) Identity() Identity { return f.was }

// Path returns the path below the root, empty for the root.
func (f *Folder) Path() string {
	var names []string
	for ; f.parent != nil; f = f.parent {
		names = append(names, f.name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// Hold adds a reference. Release must follow.
func (f *Folder) Hold() {
	f.open.mu.Lock()
	defer f.open.mu.Unlock()
	f.refs++
}

// Release removes a reference. After the last one the folder must not be used.
func (f *Folder) Release() {
	open := f.open
	open.mu.Lock()
	var closed []Dir
	for ; f != nil; f = f.parent {
		if f.refs--; f.refs > 0 {
			break
		}
		if f.dir != nil {
			closed = append(closed, f.shut())
		}
	}
	open.mu.Unlock()
	closeAll(closed)
}

// shut takes the handle of a folder that no call uses. The caller has locked open.mu, and closes the handle after it
// has unlocked it, because that may take long.
func (f *Folder) shut() Dir {
	dir := f.dir
	f.dir = nil
	if f.idle != nil {
		f.open.idle.Remove(f.idle)
		f.idle = nil
	}
	f.open.count--
	return dir
}

// closeTree closes all handles of the tree whose root this is. Its folders can only be released afterwards.
func (f *Folder) closeTree() {
	f.open.mu.Lock()
	closed := f.open.shutIdle(0)
	if f.dir != nil {
		closed = append(closed, f.shut())
	}
	f.open.mu.Unlock()
	closeAll(closed)
}

func closeAll(handles []Dir) {
	for _, dir := range handles {
		_ = dir.Close() // was only read
	}
}

// Use returns the handle. It stays open until Unuse.
func (f *Folder) Use() (Dir, error) {
	if dir := f.take(); dir != nil {
		return dir, nil
	}
	f.opening.Lock()
	defer f.opening.Unlock()
	if dir := f.take(); dir != nil {
		return dir, nil
	}
	dir, err := f.reopen()
	if err != nil {
		return nil, err
	}
	f.adopt(dir)
	return dir, nil
}

// take returns the handle if it is open, and marks it as used.
func (f *Folder) take() Dir {
	f.open.mu.Lock()
	defer f.open.mu.Unlock()
	if f.dir == nil {
		return nil
	}
	if f.idle != nil {
		f.open.idle.Remove(f.idle)
		f.idle = nil
	}
	f.users++
	return f.dir
}

// Unuse ends a Use.
func (f *Folder) Unuse() {
	f.open.mu.Lock()
	var closed []Dir
	if f.users--; f.users == 0 && f.dir != nil {
		f.idle = f.open.idle.PushBack(f)
		closed = f.open.shutIdle(f.open.limit)
	}
	f.open.mu.Unlock()
	closeAll(closed)
}

// adopt stores a new handle, which the caller uses.
func (f *Folder) adopt(dir Dir) {
	f.open.mu.Lock()
	f.dir, f.users = dir, f.users+1
	f.open.count++
	closed := f.open.shutIdle(f.open.limit)
	f.open.mu.Unlock()
	closeAll(closed)
}

// shutIdle takes the least recently used handles while there are more than so many, as shut does.
func (o *openFolders) shutIdle(limit int) (closed []Dir) {
	for o.count > limit && o.idle.Len() > 0 {
		closed = append(closed, o.idle.Front().Value.(*Folder).shut())
	}
	return closed
}

// ErrReplaced is the error for another directory than the one that a Folder had before.
var ErrReplaced = errors.New("it is another directory")

// reopen opens the directory again from the nearest one above that is open. The path between has no symlinks, and it
// must lead to the same directory as before.
func (f *Folder) reopen() (Dir, error) {
	var names []string
	var from Dir
	above := f
	for ; from == nil; from = above.take() {
		if above.parent == nil {
			return nil, fs.ErrClosed // the root is open until the tree is closed
		}
		names = append(names, above.name)
		above = above.parent
	}
	defer above.Unuse()
	slices.Reverse(names)
	dir, err := from.OpenBeneath(strings.Join(names, "/"))
	if err != nil {
		return nil, err
	}
	info, err := dir.Info()
	if err == nil && f.was != (Identity{}) && !info.SameFile(f.was) {
		err = ErrReplaced
	}
	if err != nil {
		_ = dir.Close() // was only read
		return nil, err
	}
	return dir, nil
}
