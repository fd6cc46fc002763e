package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The limits of what the protocol can carry.
const (
	MaxDepth = 2048 // of an entry
	MaxPath  = 4096 // bytes of the path of an entry
)

// ErrTooManyEntries is the error of Next beyond Options.MaxEntries.
var ErrTooManyEntries = errors.New("too many entries")

// LinkMode is what becomes of symlinks.
type LinkMode uint8

const (
	// LinksCopy sends symlinks as they are.
	LinksCopy LinkMode = iota

	// LinksFollow sends what a symlink points to instead of the symlink, if that is inside the tree.
	LinksFollow

	// LinksSkip leaves symlinks out.
	LinksSkip
)

// Options select and shape the entries of a Walk.
type Options struct {
	Links     LinkMode
	HardLinks bool // report further names of a file as hard links
	Xattrs    bool // read the extended attributes of directories

	// Filter excludes entries; nil excludes nothing. Scope excludes files.
	Filter *Filter
	Scope  Scope

	// Only, if not nil, restricts the walk to these paths, as ParsePaths returns them, and the directories above them.
	// The content of a directory among them is not sent.
	Only []string

	// Shallow lists only what is in the root. Directories among it are not opened, so their Xattrs are not read.
	Shallow bool

	// SkipLeftovers leaves out the unfinished files of interrupted copies, as disk.IsLeftover knows them. They are not
	// counted as skipped.
	SkipLeftovers bool

	// All lists FIFOs, sockets and devices, too, which can be removed but not sent, and sets Entry.Mounted.
	All bool

	// MaxEntries is the largest number of entries; 0 is unlimited.
	MaxEntries int64

	// Warn, if not nil, is called by Next for what is left out, for example a socket. why completes a sentence that
	// starts with path.
	Warn func(path, why string)
}

// Walk lists the entries of a tree. Its methods must be called one at a time; the entries may be used concurrently.
type Walk struct {
	options Options
	root    *disk.Folder
	path    string // of the root, for messages
	stack   []*level
	linked  hardLinks
	entries int64
	skipped int64
	started bool
	failed  error // of Next

	maxNames int // bytes of names
}

// Open opens the directory at path, following symlinks. An error is a *disk.Error, or is about a path in Options.Only.
func Open(on disk.FS, path string, o Options) (*Walk, error) {
	if o.Only != nil {
		only, err := cleanPaths(o.Only)
		if err != nil {
			return nil, err
		}
		o.Only = only
	}
	dir, err := on.OpenDir(path)
	if err != nil {
		return nil, disk.NewError(disk.ErrSource, err, "make it readable for this user, or name another directory",
			"cannot open directory %s: %s", path, disk.Reason(err))
	}
	info, err := dir.Info()
	if err != nil {
		_ = dir.Close() // was only read
		return nil, disk.CannotStat(path, err)
	}
	return &Walk{
		options: o, path: path, root: disk.NewFolder(dir, info.Identity, maxOpenFolders),
		linked: hardLinks{maxFiles: maxLinkedFiles, follows: o.Links == LinksFollow}, maxNames: maxNames,
	}, nil
}

// Close ends the walk. Entries that are held remain usable.
func (w *Walk) Close() {
	for len(w.stack) > 0 {
		w.pop()
	}
	if w.root != nil {
		w.root.Release()
		w.root = nil
	}
	w.failed = fs.ErrClosed
}

// Skipped returns how many symlinks, sockets, FIFOs and devices were left out so far. Entries that the filter excludes,
// and files out of scope, are not counted.
func (w *Walk) Skipped() int64 { return w.skipped }

// Next returns the next entry. The root is the first, and io.EOF comes after the last. An entry that cannot be sent has
// an Err. Any other error is final: ErrTooManyEntries, or fs.ErrClosed after Close. The caller calls Release for each
// entry.
func (w *Walk) Next() (Entry, error) {
	if w.failed != nil {
		return Entry{}, w.failed
	}
	entry, err := w.next()
	if err == nil && w.options.MaxEntries > 0 && w.entries == w.options.MaxEntries {
		entry.Release()
		err = fmt.Errorf("%s has more than %d entries: %w", w.path, w.options.MaxEntries, ErrTooManyEntries)
	}
	if err != nil {
		w.failed = err
		return Entry{}, err
	}
	w.entries++
	return entry, nil
}

func (w *Walk) next() (Entry, error) {
	if !w.started {
		w.started = true
		return w.first(), nil
	}
	for len(w.stack) > 0 {
		at := w.stack[len(w.stack)-1]
		if !at.restricted && !at.read {
			if err := at.list(w.maxNames / 2); err != nil {
				entry := w.unfinished(at, err)
				w.pop()
				return entry, nil
			}
		}
		name, below, found := at.takeName()
		if !found {
			if !at.goesOn() {
				w.pop()
			}
			continue
		}
		if entry, found := w.examine(at, name, below); found {
			return entry, nil
		}
	}
	return Entry{}, io.EOF
}

// first returns the root and starts with its content.
func (w *Walk) first() Entry {
	entry := Entry{Kind: wire.EntryDirectory}
	w.root.Hold()
	err := w.begin(w.root, &entry, w.options.Only)
	if err != nil {
		entry.Err = cannotRead(w.path, err)
	}
	return entry
}

// begin completes the entry of a directory and starts with its content, or with the paths below it that are listed. It
// takes over the caller's reference to the folder.
func (w *Walk) begin(folder *disk.Folder, entry *Entry, below []string) error {
	dir, err := folder.Use()
	if err != nil {
		folder.Release()
		return err
	}
	entry.Info, err = dir.Info()
	if err == nil && w.options.Xattrs {
		entry.Xattrs, err = dir.Xattrs()
	}
	folder.Unuse()
	if err == nil && entry.Mounted && w.options.Scope.OneFileSystem {
		folder.Release()
		return nil
	}
	next := &level{folder: folder, restricted: w.options.Only != nil, only: below}
	if entry.Depth > 0 {
		next.in = entry.Path() + "/"
	}
	if err == nil && !next.restricted {
		err = next.list(w.maxNames / 2)
	}
	if err != nil {
		folder.Release()
		return err
	}
	w.stack = append(w.stack, next)
	w.dropNames()
	return nil
}

func (w *Walk) pop() {
	last := len(w.stack) - 1
	w.stack[last].folder.Release()
	w.stack[last] = nil
	w.stack = w.stack[:last]
}

// unfinished returns the entry for a directory that was listed once, and cannot be listed again.
func (w *Walk) unfinished(at *level, err error) Entry {
	path := strings.TrimSuffix(at.in, "/")
	name := path[strings.LastIndexByte(path, '/')+1:]
	entry := Entry{
		Kind: wire.EntryDirectory, Depth: len(w.stack) - 1, Name: name, in: strings.TrimSuffix(path, name),
	}
	entry.Err = cannotRead(w.shown(&entry), err)
	return entry
}

// shown returns the path of an entry for messages.
func (w *Walk) shown(entry *Entry) string {
	if entry.Depth == 0 {
		return w.path
	}
	return entry.Path()
}

// examine returns the entry of this name; found is false if it is left out. below are listed paths below it.
func (w *Walk) examine(at *level, name string, below []string) (entry Entry, found bool) {
	entry = Entry{Depth: len(w.stack), Name: name, in: at.in, file: name}
	err := w.complete(at.folder, &entry, below)
	if errors.Is(err, errLeftOut) {
		return entry, false
	}
	entry.Err = err
	return entry, true
}

// errLeftOut is the error of complete for an entry that is not sent, without a failure.
var errLeftOut = errors.New("left out")

// complete finds out what an entry is, and starts with the content of a directory. Other errors than errLeftOut are a
// *disk.Error.
func (w *Walk) complete(in *disk.Folder, entry *Entry, below []string) error {
	if err := checkLimits(entry); err != nil {
		return err
	}
	dir, err := in.Use()
	if err != nil {
		return cannotRead(entry.Path(), err)
	}
	defer in.Unuse()
	entry.Info, err = dir.Stat(entry.Name)
	if w.options.Filter.excludes(entry, err == nil && entry.Info.Mode.IsDir()) {
		return errLeftOut
	}
	switch {
	case err != nil:
		return w.cannotStat(entry, err)
	case entry.Info.Mode.IsDir():
		asks := w.options.All || w.options.Scope.OneFileSystem
		entry.Mounted = asks && errors.Is(dir.Obstacle(entry.Name), disk.ErrMountPoint)
		return w.enter(in, entry, below)
	case entry.Info.Mode&fs.ModeSymlink != 0:
		return w.symlink(in, dir, entry, below)
	default:
		return w.file(in, entry, below)
	}
}

func checkLimits(entry *Entry) error {
	const next = "move it up, or exclude it"
	if entry.Depth > MaxDepth {
		return disk.NewError(disk.ErrSource, nil, next, "%s is below %d directories, the most are %d",
			entry.Path(), entry.Depth-1, MaxDepth-1)
	}
	if length := len(entry.in) + len(entry.Name); length > MaxPath {
		return disk.NewError(disk.ErrSource, nil, next, "the path %s has %d bytes, the most are %d",
			entry.Path(), length, MaxPath)
	}
	return nil
}

// cannotStat returns the error for an entry that cannot be examined. A listed path may never have existed; what is
// found in a directory was removed.
func (w *Walk) cannotStat(entry *Entry, err error) error {
	if w.options.Only != nil && errors.Is(err, fs.ErrNotExist) {
		return disk.NewError(disk.ErrSource, err, "correct the list of files", "%s does not exist", entry.Path())
	}
	return cannotRead(entry.Path(), err)
}

// enter starts with the content of a directory at once, so that one that cannot be read is not sent at all.
func (w *Walk) enter(in *disk.Folder, entry *Entry, below []string) error {
	entry.Kind = wire.EntryDirectory
	if w.options.Shallow {
		return nil
	}
	folder, err := in.Enter(entry.Name)
	if err == nil && w.isLoop(folder) {
		folder.Release()
		return cannotFollow(entry.Path(), entry.Path(), unix.ELOOP)
	}
	if err == nil {
		err = w.begin(folder, entry, below)
	}
	if err != nil {
		return cannotRead(entry.Path(), err)
	}
	return nil
}

// isLoop reports whether the walk is inside of this directory already, by way of a symlink.
func (w *Walk) isLoop(folder *disk.Folder) bool {
	return w.options.Links == LinksFollow &&
		slices.ContainsFunc(w.stack, func(l *level) bool { return l.folder.Identity().SameFile(folder.Identity()) })
}

func (w *Walk) symlink(in *disk.Folder, dir disk.Dir, entry *Entry, below []string) error {
	entry.Kind = wire.EntrySymlink
	if w.options.Links == LinksSkip {
		w.skipped++
		return errLeftOut
	}
	link, err := dir.ReadLink(entry.Name)
	if err != nil {
		return cannotRead(entry.Path(), err)
	}
	entry.Info = link.Info
	if w.options.Links == LinksFollow {
		return w.follow(in, link.Text, entry, below)
	}
	entry.Link = link.Text
	return checkParent(entry, below)
}

// follow turns a symlink's entry into the entry of its target.
func (w *Walk) follow(in *disk.Folder, text string, entry *Entry, below []string) error {
	to, err := disk.Resolve(in, text, nil)
	if err != nil {
		return cannotFollow(entry.Path(), text, err)
	}
	if w.excludesFolder(to.Folder) {
		to.Folder.Release()
		w.skipped++
		w.warn(entry.Path(), "is a symlink to another file system, which is not copied")
		return errLeftOut
	}
	if to.Name != "" {
		defer to.Folder.Release()
		entry.Info, entry.file = to.Found, to.Name
		return w.file(to.Folder, entry, below)
	}
	if w.isLoop(to.Folder) {
		to.Folder.Release()
		return cannotFollow(entry.Path(), text, unix.ELOOP)
	}
	entry.Kind = wire.EntryDirectory
	if w.options.Shallow {
		entry.Info = to.Found
		to.Folder.Release()
		return nil
	}
	if err := w.begin(to.Folder, entry, below); err != nil {
		return cannotRead(entry.Path(), err)
	}
	return nil
}

// file completes the entry of a file, which stays where it is until it is opened.
func (w *Walk) file(in *disk.Folder, entry *Entry, below []string) error {
	if !entry.Info.Mode.IsRegular() {
		if w.options.All {
			entry.Kind = wire.EntrySpecial
			return checkParent(entry, below)
		}
		w.skipped++
		w.warn(entry.Path(), "is "+kindOf(entry.Info.Mode)+", which cannot be copied")
		return errLeftOut
	}
	if w.options.SkipLeftovers && disk.IsLeftover(entry.Name) || w.options.Scope.excludes(entry.Info) {
		return errLeftOut
	}
	entry.Kind = wire.EntryFile
	if err := checkParent(entry, below); err != nil {
		return err
	}
	if w.options.HardLinks && entry.Info.Links > 1 {
		first, seen, overflow := w.linked.first(entry.Info, entry.Path())
		if overflow {
			w.warn(entry.Path(), "and other files have too many hard links to remember: some are copied as files")
		}
		if seen {
			entry.Kind, entry.Link = wire.EntryHardLink, first
			return nil
		}
	}
	in.Hold()
	entry.Dir = in
	return nil
}

// checkParent returns the error for an entry below which there are listed paths, although it is no directory.
func checkParent(entry *Entry, below []string) error {
	if len(below) == 0 {
		return nil
	}
	return disk.NewError(disk.ErrSource, unix.ENOTDIR, "correct the list of files",
		"%s is not a directory, so %s does not exist", entry.Path(), below[0])
}

func (w *Walk) warn(path, why string) {
	if w.options.Warn != nil {
		w.options.Warn(path, why)
	}
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "neither a file nor a directory"
	}
}
