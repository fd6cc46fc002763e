package disk

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// maxOpenDirectories is the number of directories of a tree that stay open while no call uses them.
const maxOpenDirectories = 64

// Hold adds a reference. Release must follow.
func (d *Directory) Hold() {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	d.refs++
}

// Release removes a reference. After the last one the directory must not be used.
func (d *Directory) Release() {
	t := d.tree
	t.mu.Lock()
	var closed []Dir
	for ; d != nil; d = d.parent {
		if d.refs--; d.refs > 0 || d.parent == nil {
			break
		}
		if d.dir != nil {
			closed = append(closed, t.shut(d))
		}
	}
	t.mu.Unlock()
	closeAll(closed)
}

// shut takes the handle of a directory that no call uses. The caller has locked mu, and closes the handle after it has
// unlocked it, because that may take long.
func (t *Tree) shut(d *Directory) Dir {
	dir := d.dir
	d.dir = nil
	t.idle.Remove(d.idle)
	d.idle = nil
	t.open--
	return dir
}

func closeAll(handles []Dir) {
	for _, dir := range handles {
		_ = dir.Close() // was only read
	}
}

// with calls a function with the directory's handle, which stays open meanwhile.
func (d *Directory) with(call func(Dir) error) error {
	dir, err := d.use()
	if err != nil {
		return err
	}
	defer d.unuse()
	return call(dir)
}

// use returns the directory's handle. It stays open until unuse.
func (d *Directory) use() (Dir, error) {
	if dir := d.take(); dir != nil {
		return dir, nil
	}
	d.opening.Lock()
	defer d.opening.Unlock()
	if dir := d.take(); dir != nil {
		return dir, nil
	}
	dir, err := d.reopen()
	if err != nil {
		return nil, err
	}
	d.adopt(dir)
	return dir, nil
}

// take returns the handle if it is open, and marks it as used.
func (d *Directory) take() Dir {
	t := d.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.dir == nil {
		return nil
	}
	if d.idle != nil {
		t.idle.Remove(d.idle)
		d.idle = nil
	}
	d.users++
	return d.dir
}

func (d *Directory) unuse() {
	t := d.tree
	t.mu.Lock()
	var closed []Dir
	if d.users--; d.users == 0 {
		d.idle = t.idle.PushBack(d)
		closed = t.shutIdle()
	}
	t.mu.Unlock()
	closeAll(closed)
}

// adopt stores a new handle, which the caller uses.
func (d *Directory) adopt(dir Dir) {
	t := d.tree
	t.mu.Lock()
	d.dir, d.users = dir, d.users+1
	t.open++
	closed := t.shutIdle()
	t.mu.Unlock()
	closeAll(closed)
}

// shutIdle takes the least recently used handles while there are too many, as shut does.
func (t *Tree) shutIdle() (closed []Dir) {
	for t.open > maxOpenDirectories && t.idle.Len() > 0 {
		closed = append(closed, t.shut(t.idle.Front().Value.(*Directory)))
	}
	return closed
}

// reopen opens the directory again from the nearest one above that is open. The path between has no symlinks, and it
// must lead to the same directory as before, as far as the file system's inode numbers are those of its directories.
func (d *Directory) reopen() (Dir, error) {
	var names []string
	var from Dir
	above := d
	for ; from == nil; from = above.take() {
		if above.parent == nil {
			return nil, d.replaced(fs.ErrClosed) // the root is open until the tree is closed
		}
		names = append(names, above.name)
		above = above.parent
	}
	defer above.unuse()
	slices.Reverse(names)
	dir, err := from.OpenBeneath(strings.Join(names, "/"))
	if err != nil {
		return nil, d.replaced(err)
	}
	info, err := dir.Info()
	if err == nil && !info.SameFile(d.was) && dir.IsLocal() {
		err = errReplaced
	}
	if err != nil {
		_ = dir.Close() // was only read
		return nil, d.replaced(err)
	}
	return dir, nil
}

var errReplaced = errors.New("it is another directory")

// replaced returns the error for a directory that cannot be opened a second time.
func (d *Directory) replaced(err error) error {
	return NewError(ErrChanged, err, "copy again when no other process changes the target",
		"cannot open %s again: %s", d.shown(""), Reason(err))
}
