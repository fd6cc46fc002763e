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
	defer t.mu.Unlock()
	for ; d != nil; d = d.parent {
		if d.refs--; d.refs > 0 || d.parent == nil {
			return
		}
		t.shut(d)
	}
}

// shut closes the handle of a directory that no call uses.
func (t *Tree) shut(d *Directory) {
	if d.dir == nil {
		return
	}
	_ = d.dir.Close() // was only read
	d.dir = nil
	t.idle.Remove(d.idle)
	d.idle = nil
	t.open--
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
	defer t.mu.Unlock()
	if d.users--; d.users == 0 {
		d.idle = t.idle.PushBack(d)
		t.closeIdle()
	}
}

// adopt stores a new handle, which the caller uses.
func (d *Directory) adopt(dir Dir) {
	t := d.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	d.dir, d.users = dir, d.users+1
	t.open++
	t.closeIdle()
}

// closeIdle closes the least recently used handles while there are too many.
func (t *Tree) closeIdle() {
	for t.open > maxOpenDirectories && t.idle.Len() > 0 {
		t.shut(t.idle.Front().Value.(*Directory))
	}
}

// reopen opens the directory again from the nearest one above that is open. The path between has no symlinks, and it
// must lead to the same directory as before.
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
	if err == nil && !info.SameFile(d.was) {
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
