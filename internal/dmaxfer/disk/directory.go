package disk

import (
	"errors"
	"io/fs"
	"iter"

	"golang.org/x/sys/unix"
)

const (
	// privateDirectory is the mode of a directory that is being filled.
	privateDirectory = 0o700

	// directoryMode is the mode of a new directory, less the umask, if the source's mode is not preserved.
	directoryMode = 0o777
)

// maxOpenDirectories is the number of directories of a tree that stay open while no call uses them.
const maxOpenDirectories = 64

// Directory is a directory of a Tree. Enter returns it held once.
type Directory struct {
	*Folder
	tree   *Tree
	fresh  bool    // this transfer has created it
	mode   *uint32 // to restore in Leave: it was made writable; nil: it was
	system *system
}

// path returns the path of a name below the root.
func (d *Directory) path(name string) string { return Join(d.Path(), name) }

// title returns the path of the directory itself for messages; the root's is its own path.
func (d *Directory) title() string {
	if d.parent == nil {
		return d.tree.path
	}
	return d.Path()
}

// shown returns the path of a name, or of the directory if it is empty, for messages.
func (d *Directory) shown(name string) string {
	if name == "" {
		return d.title()
	}
	return d.path(name)
}

// Fresh reports whether this transfer has created the directory.
func (d *Directory) Fresh() bool { return d.fresh }

// use returns the directory's handle. It stays open until Unuse.
func (d *Directory) use() (Dir, error) {
	dir, err := d.Use()
	if err != nil {
		return nil, NewError(ErrChanged, err, "copy again when no other process changes the target",
			"cannot open %s again: %s", d.shown(""), Reason(err))
	}
	return dir, nil
}

// begin prepares a directory that was just opened for being filled.
func (d *Directory) begin(dir Dir) error {
	info, err := dir.Info()
	if err != nil {
		return d.failed("examining", "", err)
	}
	if d.parent == nil || dir.IsLocal() { // elsewhere an inode number may change
		d.was = info.Identity
	}
	if d.system, err = d.tree.systemOf(dir, info.Device); err != nil {
		return d.failed("examining", "", err)
	}
	mode := ModeBits(info.Mode)
	if d.fresh || mode&privateDirectory == privateDirectory || info.UID != d.tree.self.UID || info.UID == 0 {
		return nil
	}
	if err := dir.SetMode(mode | privateDirectory); err != nil {
		return d.failed("setting the mode of", "", err)
	}
	d.mode = &mode
	return nil
}

// Enter returns the directory of this name, held. If it is absent it is created with mode 0700, which Leave replaces;
// unless create is set, that fails with fs.ErrNotExist. created reports whether it was. Anything else of this name is
// an error.
func (d *Directory) Enter(name string, create bool) (child *Directory, created bool, err error) {
	if err := d.checkName(name); err != nil {
		return nil, false, err
	}
	dir, created, err := d.openChild(name, create)
	if err != nil {
		return nil, false, err
	}
	child = &Directory{Folder: d.child(name), tree: d.tree, fresh: created}
	if err := child.begin(dir); err != nil {
		_ = dir.Close() // was only read
		child.Release()
		return nil, created, err
	}
	child.adopt(dir)
	child.Unuse()
	if created {
		err = errors.Join(d.changed(), child.changed())
	}
	if err != nil {
		child.Release()
		return nil, created, err
	}
	return child, created, nil
}

func (d *Directory) openChild(name string, create bool) (dir Dir, created bool, err error) {
	in, err := d.use()
	if err != nil {
		return nil, false, err
	}
	defer d.Unuse()
	if create {
		err = in.MakeDir(name, privateDirectory)
		created = err == nil
	}
	exists := err
	if err == nil || errors.Is(err, fs.ErrExist) {
		dir, err = in.OpenBeneath(name)
	}
	switch {
	case err == nil && d.fresh && exists != nil:
		_ = dir.Close() // is not used
		return nil, false, d.collides(name, exists)
	case err == nil:
		return dir, created, nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, false, NotADirectory(d.path(name), err)
	default:
		return nil, created, d.cannotCreate(name, err)
	}
}

const nextIfInTheWay = "rename or remove it in the target"

// SetXattrs sets extended attributes if the transfer preserves them; nil: none. If entries of the directory may be
// replaced, it removes others that are preserved. It is called before Leave, which makes them as durable as planned.
func (d *Directory) SetXattrs(attributes iter.Seq[Xattr]) error {
	keep := d.tree.opt.Preserve
	removes := d.mayReplace() || keep.Privileged && d.fresh
	if !keep.Xattrs || attributes == nil && !removes {
		return nil
	}
	if attributes == nil {
		attributes = func(func(Xattr) bool) {}
	}
	return d.Do(func(dir Dir) error {
		if err := setXattrs(dir, d.title, keep, attributes); err != nil || !removes {
			return err
		}
		return removeOtherXattrs(dir, d.title, keep, attributes)
	})
}

// Leave gives the directory its final mode, and owner and modification time as the transfer preserves them. It must be
// called after everything in it is committed. A directory that existed keeps its mode unless modes are preserved.
func (d *Directory) Leave(meta Metadata) error {
	dir, err := d.use()
	if err != nil {
		return err
	}
	defer d.Unuse()
	finish := func() error {
		return setAttributes(dir, d.title, d.tree.opt.Preserve, meta, d.finalMode(meta))
	}
	if d.flushesNames() {
		return d.tree.flusher.leave(d, dir, finish)
	}
	return finish()
}

// finalMode returns nil if the mode stays as it is.
func (d *Directory) finalMode(meta Metadata) *uint32 {
	switch {
	case d.tree.opt.Preserve.Mode:
		return new(meta.Mode & 0o1777)
	case d.fresh:
		return new(directoryMode &^ d.tree.self.Umask)
	default:
		return d.mode
	}
}

// Stat returns the Info of an entry, of a symlink itself. It fails with fs.ErrNotExist if there is none.
func (d *Directory) Stat(name string) (Info, error) {
	return look(d, "examining", name, func(dir Dir) (Info, error) { return dir.Stat(name) })
}

// look makes a call with the directory's handle that has a result.
func look[T any](d *Directory, doing, name string, call func(dir Dir) (T, error)) (result T, err error) {
	err = d.Do(func(dir Dir) (err error) {
		result, err = call(dir)
		return err
	})
	return result, d.wrap(doing, name, err)
}

// useFor is use for a call that creates an entry of this name.
func (d *Directory) useFor(name string) (Dir, error) {
	if err := d.checkName(name); err != nil {
		return nil, err
	}
	return d.use()
}

// Do calls a function with the directory's handle, which stays open meanwhile and must not be kept.
func (d *Directory) Do(call func(dir Dir) error) error {
	dir, err := d.use()
	if err != nil {
		return err
	}
	defer d.Unuse()
	return call(dir)
}

// ReadLink returns a symlink. It fails with unix.EINVAL for any other file.
func (d *Directory) ReadLink(name string) (Link, error) {
	return look(d, "reading", name, func(dir Dir) (Link, error) { return dir.ReadLink(name) })
}

// Open opens a regular file for reading. It does not follow a symlink.
func (d *Directory) Open(name string) (File, error) {
	file, err := look(d, "opening", name, func(dir Dir) (File, error) { return dir.Open(name, true) })
	if err != nil {
		return nil, err
	}
	info, err := file.Info()
	if err == nil && !info.Mode.IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		_ = file.Close() // is not used
		return nil, d.failed("opening", name, err)
	}
	return file, nil
}

var errNotRegular = errors.New("it is not a regular file")

// Partial opens the partial file of a large file, as OpenPartial does. It sets want.Overwrite if existing entries of
// this directory may be replaced. A symlink is replaced and not followed.
func (d *Directory) Partial(name string, want Wanted) (*Partial, error) {
	dir, err := d.useFor(name)
	if err != nil {
		return nil, err
	}
	d.Hold()
	held := &heldDir{Dir: dir, in: d}
	want.Overwrite = d.mayReplace()
	l := &Location{Dir: held, Name: name, Path: d.path(name)}
	found, err := dir.Stat(name)
	switch {
	case err == nil:
		l.Found = &found
	case !errors.Is(err, fs.ErrNotExist):
		_ = held.Close() // was only read
		return nil, d.cannotCreate(name, err)
	}
	return openPartial(d.tree.fs, l, want)
}

// heldDir is the handle of a Directory while a Partial uses it.
type heldDir struct {
	Dir
	in *Directory
}

// Close implements Dir.
func (h *heldDir) Close() error {
	h.in.Unuse()
	h.in.Release()
	return nil
}

// wrap is failed for an error that may be nil or an *Error already.
func (d *Directory) wrap(doing, name string, err error) error {
	if _, is := errors.AsType[*Error](err); err == nil || is {
		return err
	}
	return d.failed(doing, name, err)
}

// failed returns the error of a call for an entry, or for the directory itself if name is empty.
func (d *Directory) failed(doing, name string, err error) error {
	return callFailed(doing, d.shown(name), err)
}

// cannotCreate returns the error for an entry that cannot be created, unless err is an *Error already.
func (d *Directory) cannotCreate(name string, err error) error {
	if _, is := errors.AsType[*Error](err); is {
		return err
	}
	return CannotCreate(d.path(name), err)
}
