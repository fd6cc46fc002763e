package disk

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// rootDir is a directory of a Root. It refuses names that cannot be one entry's, and changes if the Root is read-only.
type rootDir struct {
	Dir  // of the file system below
	root *Root
	in   string      // a path that led to it from the root; empty for the root
	left atomic.Bool // it is closed
}

// newDir returns a directory that has been opened below the root.
func (r *Root) newDir(opened Dir, in string) (Dir, error) {
	if err := r.users.enter(); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &rootDir{Dir: opened, root: r, in: in}, nil
}

func (d *rootDir) Close() error {
	err := d.Dir.Close()
	if d.left.CompareAndSwap(false, true) {
		err = errors.Join(err, d.root.users.leave())
	}
	return err
}

// check refuses a name for a call that only reads.
func (d *rootDir) check(op, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return &fs.PathError{Op: op, Path: name, Err: ErrOutside}
	}
	return nil
}

// mayChange refuses any change of a read-only Root.
func (d *rootDir) mayChange(op, name string) error {
	if d.root.readOnly {
		return &fs.PathError{Op: op, Path: name, Err: unix.EROFS}
	}
	return nil
}

// checkChange refuses a name for a call that changes the directory or the entry.
func (d *rootDir) checkChange(op, name string) error {
	if err := d.mayChange(op, name); err != nil {
		return err
	}
	return d.check(op, name)
}

// change makes a call that changes the directory or the entry of a name.
func (d *rootDir) change(op, name string, call func() error) error {
	if err := d.checkChange(op, name); err != nil {
		return err
	}
	return call()
}

func (d *rootDir) changeTwo(op, from, to string, call func(from, to string) error) error {
	if err := d.checkChange(op, from); err != nil {
		return err
	}
	return d.change(op, to, func() error { return call(from, to) })
}

// below returns the path of a directory below this one.
func (d *rootDir) below(path string) string {
	if d.in == "" {
		return path
	}
	return d.in + "/" + path
}

func (d *rootDir) OpenDir(path string) (Dir, error) {
	if path == "." {
		return d.wrap(d.in, func() (Dir, error) { return d.Dir.OpenDir(".") })
	}
	return d.root.openDir(d.Dir, d.in, path)
}

func (d *rootDir) OpenBeneath(path string) (Dir, error) {
	return d.wrap(d.below(path), func() (Dir, error) { return d.Dir.OpenBeneath(path) })
}

func (d *rootDir) wrap(in string, open func() (Dir, error)) (Dir, error) {
	opened, err := open()
	if err != nil {
		return nil, err
	}
	return d.root.newDir(opened, in)
}

func (d *rootDir) Open(name string, readOnly bool) (File, error) {
	err := d.check("open", name)
	if err == nil && !readOnly {
		err = d.mayChange("open", name)
	}
	if err != nil {
		return nil, err
	}
	return d.Dir.Open(name, readOnly)
}

func (d *rootDir) Stat(name string) (Info, error) {
	if name == "." {
		return d.Dir.Info()
	}
	if err := d.check("stat", name); err != nil {
		return Info{}, err
	}
	return d.Dir.Stat(name)
}

func (d *rootDir) Obstacle(name string) error {
	if name != "." && d.check("stat", name) != nil {
		return nil
	}
	return d.Dir.Obstacle(name)
}

func (d *rootDir) ReadLink(name string) (Link, error) {
	if err := d.check("readlink", name); err != nil {
		return Link{}, err
	}
	return d.Dir.ReadLink(name)
}

func (d *rootDir) MayCreate() error {
	if err := d.mayChange("access", "."); err != nil {
		return err
	}
	return d.Dir.MayCreate()
}

func (d *rootDir) Create(name string) (File, error) {
	if err := d.checkChange("create", name); err != nil {
		return nil, err
	}
	return d.Dir.Create(name)
}

func (d *rootDir) CreateUnnamed(shown string, permissions uint32, early bool) (File, error) {
	if err := d.mayChange("create", shown); err != nil {
		return nil, err
	}
	return d.Dir.CreateUnnamed(shown, permissions, early)
}

func (d *rootDir) GiveName(file File, name string) error {
	return d.change("link", name, func() error { return d.Dir.GiveName(file, name) })
}

// LinkTo makes a link in a directory of a Root only: another one could be anywhere.
func (d *rootDir) LinkTo(name string, in Dir, as string) error {
	if err := d.check("link", name); err != nil {
		return err
	}
	to, is := in.(*rootDir)
	if !is {
		return &fs.PathError{Op: "link", Path: as, Err: unix.EXDEV}
	}
	if err := to.checkChange("link", as); err != nil {
		return err
	}
	return d.Dir.LinkTo(name, to.Dir, as)
}

func (d *rootDir) Rename(from, to string) error {
	return d.changeTwo("rename", from, to, d.Dir.Rename)
}

func (d *rootDir) RenameIfAbsent(from, to string) error {
	return d.changeTwo("rename", from, to, d.Dir.RenameIfAbsent)
}

func (d *rootDir) Link(from, to string) error { return d.changeTwo("link", from, to, d.Dir.Link) }

func (d *rootDir) Remove(name string) error {
	return d.change("unlink", name, func() error { return d.Dir.Remove(name) })
}

func (d *rootDir) MakeDir(name string, permissions uint32) error {
	return d.change("mkdir", name, func() error { return d.Dir.MakeDir(name, permissions) })
}

func (d *rootDir) RemoveDir(name string) error {
	return d.change("rmdir", name, func() error { return d.Dir.RemoveDir(name) })
}

func (d *rootDir) Symlink(text, name string) error {
	return d.change("symlink", name, func() error { return d.Dir.Symlink(text, name) })
}

func (d *rootDir) SetLinkModified(name string, at Timestamp) error {
	return d.change("utimes", name, func() error { return d.Dir.SetLinkModified(name, at) })
}

func (d *rootDir) SetLinkOwner(name string, uid, gid uint32) error {
	return d.change("chown", name, func() error { return d.Dir.SetLinkOwner(name, uid, gid) })
}

// keepsAttributes reports whether this is the directory of the Root, or returns why it may not be changed.
func (d *rootDir) keepsAttributes(op string) (bool, error) {
	if err := d.mayChange(op, "."); err != nil {
		return false, err
	}
	if d.root.inner {
		return false, nil
	}
	is, err := d.Dir.Info()
	if err != nil {
		return false, err
	}
	root, err := d.root.dir.Info()
	return err == nil && root.SameFile(is.Identity), err
}

// setAttribute makes a call that sets an attribute of the directory, unless it is the Root's own.
func (d *rootDir) setAttribute(op string, call func() error) error {
	if keeps, err := d.keepsAttributes(op); keeps || err != nil {
		return err
	}
	return call()
}

func (d *rootDir) SetMode(mode uint32) error {
	return d.setAttribute("chmod", func() error { return d.Dir.SetMode(mode) })
}

func (d *rootDir) SetOwner(uid, gid uint32) error {
	return d.setAttribute("chown", func() error { return d.Dir.SetOwner(uid, gid) })
}

func (d *rootDir) SetModified(at Timestamp) error {
	return d.setAttribute("utimes", func() error { return d.Dir.SetModified(at) })
}

func (d *rootDir) SetXattr(attribute Xattr) error {
	return d.setAttribute("setxattr", func() error { return d.Dir.SetXattr(attribute) })
}

func (d *rootDir) RemoveXattr(name string) error {
	return d.setAttribute("removexattr", func() error { return d.Dir.RemoveXattr(name) })
}
