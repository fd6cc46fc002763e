package disk

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// TreeState is what a path leads to for the target of a tree.
type TreeState int

// The states of FindTree.
const (
	TreeAbsent        TreeState = iota // nothing, in an existing directory
	TreeExists                         // a directory
	TreeUnfinished                     // a directory into which a transfer runs, or has been interrupted
	TreeNotADirectory                  // a file, or anything else that is not a directory
)

// TreeOptions are the properties of the transfer that fills a Tree.
type TreeOptions struct {
	Overwrite  bool // existing files and symlinks may be replaced; otherwise entries are only added
	Deletes    bool // what the source does not have is deleted before Close: no other transfer may store it meanwhile
	Backup     bool // a file that is replaced is kept, as NAME~, NAME~2~ ...; for a Partial Wanted.Backup counts
	Durability Durability
	Preserve   Preserve // attributes of the source that files, directories and symlinks get
}

// Tree is the target of a transfer of a directory. Everything is created below its root: each name is resolved in the
// open directory that contains it and no symlink is followed. If another process moves a directory out of the tree
// while it is open, what is received into that directory moves with it. A Tree and its directories may be used
// concurrently.
//
// While it is filled, a marker beside the root, named like a Partial of the root's name, is locked, so that only one
// transfer fills the directory. It names the directory by device and inode, and remains if the transfer is interrupted,
// so that FindTree reports TreeUnfinished. It permits nothing. If this user cannot create files beside an existing
// root, or the root is named by "." or "..", there is no marker, and two transfers may fill the directory at once.
// Locks of the directories themselves keep every other transfer from deleting in it meanwhile, and from storing
// anything in it if this one deletes.
type Tree struct {
	fs      FS
	self    Self
	opt     TreeOptions
	locks   []io.Closer // of the root, and of the directories above it
	marker  *marker     // nil: it could not be created
	root    *Directory
	path    string // of the root, for messages
	flusher flusher
}

// FindTree returns what is at path for the target of a tree. It changes nothing. Errors are an ErrTarget.
func FindTree(on FS, path string) (TreeState, error) {
	at, err := locateTree(on, path)
	if err != nil {
		return TreeAbsent, err
	}
	defer at.Dir.Close()
	switch {
	case at.Found == nil:
		return TreeAbsent, nil
	case !at.Found.Mode.IsDir():
		return TreeNotADirectory, nil
	case isUnfinished(on, at):
		return TreeUnfinished, nil
	default:
		return TreeExists, nil
	}
}

// locateTree ignores slashes at the end of a path.
func locateTree(on FS, path string) (*Location, error) {
	if trimmed := strings.TrimRight(path, "/"); trimmed != "" {
		path = trimmed
	}
	at, err := Locate(on, path)
	if err != nil {
		return nil, CannotCreate(path, err)
	}
	return at, nil
}

// OpenTree opens the directory at path, following symlinks like Locate, or creates it with mode 0700. Errors are an
// ErrTarget: ErrBusy if another process is receiving it, or deletes where this one stores something.
func OpenTree(on FS, path string, o TreeOptions) (opened *Tree, err error) {
	at, err := locateTree(on, path)
	if err != nil {
		return nil, err
	}
	defer at.Dir.Close()
	if at.Found != nil && !at.Found.Mode.IsDir() {
		return nil, NewError(ErrTarget, nil, "name a directory, or remove it",
			"cannot receive a directory as %s: it is not a directory", at.Path)
	}
	t := &Tree{fs: on, self: on.Self(), opt: o}
	t.flusher.syncing = make(chan struct{}, 1)
	defer func() {
		if opened == nil { // also after a panic
			t.unlock()
		}
	}()
	if err := t.begin(at); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tree) begin(at *Location) error {
	if err := t.lockAbove(at); err != nil {
		return err
	}
	if err := t.openMarker(at); err != nil {
		return err
	}
	err := t.openRoot(at)
	if err != nil {
		t.removeNewMarker()
	}
	return err
}

// lockAbove locks the directories above the root before anything is created in them.
func (t *Tree) lockAbove(at *Location) error {
	above := LockStore
	if t.opt.Deletes {
		above = LockDeleteBelow
	}
	own := above
	if at.Name == "." {
		own = NoLock
	}
	return t.lock(at.Dir, own, above, at.Path)
}

func (t *Tree) lockRoot(dir Dir, path string) error {
	if t.opt.Deletes {
		return t.lock(dir, LockDelete, NoLock, path)
	}
	return t.lock(dir, LockFill, NoLock, path)
}

func (t *Tree) lock(dir Dir, own, above LockMode, path string) error {
	locks, err := lockDir(dir, own, above, path)
	if err == nil {
		t.locks = append(t.locks, locks)
	}
	return err
}

func (t *Tree) unlock() {
	for _, locks := range t.locks {
		_ = locks.Close() // they end with the process
	}
}

func (t *Tree) openMarker(at *Location) (err error) {
	t.marker, err = openMarker(t.fs, at)
	if err != nil && at.Found != nil && cannotMark(err) {
		return nil
	}
	return err
}

// removeNewMarker removes a marker that this Tree has created, before anything was received.
func (t *Tree) removeNewMarker() {
	if t.marker != nil {
		_ = t.marker.close(!t.marker.unfinished, false) // an earlier error is reported
	}
}

// openRoot creates the root if it is absent, and opens it.
func (t *Tree) openRoot(at *Location) error {
	if at.Found != nil {
		return t.enterRoot(at)
	}
	if err := at.Dir.MakeDir(at.Name, privateDirectory); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			_ = at.Dir.RemoveDir(at.Name) // a failed call may have created it
		}
		return CannotCreate(at.Path, err)
	}
	err := t.enterRoot(at)
	if err != nil {
		_ = at.Dir.RemoveDir(at.Name) // the first error is reported
	}
	return err
}

func (t *Tree) enterRoot(at *Location) error {
	open := at.Dir.OpenBeneath
	if at.Name == "." {
		open = at.Dir.OpenDir
	}
	dir, err := open(at.Name)
	if err != nil {
		return CannotCreate(at.Path, err)
	}
	t.path = at.Path
	t.root = &Directory{Folder: NewFolder(dir, Identity{}, maxOpenDirectories), tree: t, fresh: at.Found == nil}
	err = t.lockRoot(dir, at.Path)
	if err == nil {
		err = t.root.begin(dir)
	}
	if err == nil && t.marker != nil {
		err = t.marker.name(t.root.was)
	}
	if err == nil {
		err = t.syncParent(at)
	}
	if err != nil {
		_ = dir.Close() // was only read
		t.flusher.close()
	}
	return err
}

// syncParent makes root and marker durable, so that a loss of power leaves no unfinished tree without its marker. An
// existing root may not be durable yet, either.
func (t *Tree) syncParent(at *Location) error {
	if t.opt.Durability != wire.DurabilityFull {
		return nil
	}
	err := error(nil)
	if t.marker != nil {
		err = t.marker.file.Sync()
	}
	if err == nil {
		err = at.Dir.Sync()
	}
	if err != nil {
		return callFailed("flushing the directory of", at.Path, err)
	}
	return nil
}

// Root returns the tree's root. It is valid until Close.
func (t *Tree) Root() *Directory { return t.root }

// Dir returns the open directory of the root, in which the caller must not interfere with a transfer. It is valid until
// Close.
func (t *Tree) Dir() Dir { return t.root.dir }

// Renamed returns a sentence that says why the marker does not have the usual name; empty if it has.
func (t *Tree) Renamed() string {
	if t.marker == nil {
		return ""
	}
	return t.marker.renamed
}

// Close closes the tree. If done, it removes the marker, durably with DurabilityFull; otherwise the marker remains. It
// waits for a Sync that runs; no other call may run. Directories that are still held can be released afterwards, and
// staged files discarded; everything else fails.
func (t *Tree) Close(done bool) error {
	t.flusher.close()
	var err error
	if t.marker != nil {
		err = t.marker.close(done, t.opt.Durability == wire.DurabilityFull)
	}
	t.root.closeTree()
	t.unlock()
	return err
}

// cannotMark reports whether an error means that this user cannot create, or remove again, a file beside the root.
func cannotMark(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnly) || errors.Is(err, errNoMarkerName) ||
		errors.Is(err, ErrImmutable) || errors.Is(err, ErrAppendOnly)
}
