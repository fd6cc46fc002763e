package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Listed is an entry of a Listing.
type Listed struct {
	Path string // below the root, never empty
	Kind wire.EntryKind

	// The following are known of the entries of a target only.
	File     uint64 // a number that all names of a file have, and hardly another one
	Size     int64  // of a file
	Modified disk.Timestamp

	Mounted  bool // a directory on which a file system is mounted
	InTheWay bool // of an entry of the source; set by ExtraOrInTheWay
}

// Listing yields the entries of a directory in the order of Walk, without its root. If there is an error it comes with
// the last pair, and the listing is not complete.
type Listing = iter.Seq2[Listed, error]

// List returns the Listing of a walk that open begins, each time that it is used. An entry with an Err ends it with
// that error, unless the entry was removed meanwhile.
func List(open func() (*Walk, error)) Listing {
	return func(yield func(Listed, error) bool) {
		w, err := open()
		if err != nil {
			yield(Listed{}, err)
			return
		}
		defer w.Close()
		for {
			listed, err := nextListed(w)
			if errors.Is(err, io.EOF) || !yield(listed, err) || err != nil {
				return
			}
		}
	}
}

// nextListed returns the next entry of a walk that is not its root.
func nextListed(w *Walk) (Listed, error) {
	for {
		entry, err := w.Next()
		if err != nil {
			return Listed{}, err
		}
		entry.Release()
		switch {
		case entry.Err != nil && entry.Depth > 0 && errors.Is(entry.Err, fs.ErrNotExist):
		case entry.Err != nil:
			return Listed{}, entry.Err
		case entry.Depth > 0:
			return Listed{Path: entry.Path(), Kind: entry.Kind, Mounted: entry.Mounted}, nil
		}
	}
}

// ErrNotSorted is the error for a Listing that does not have the order of Walk.
var ErrNotSorted = errors.New("the list is not sorted")

// Removal says how entries of a target will be removed, and which of them will not.
type Removal struct {
	Protect *Filter // excludes what stays, with everything below it and the directories above it

	// Aside is set if files, symlinks and directories in the way of the source will be renamed like backups. Entries
	// with the name of a backup then stay, unless they are in the way, and so do directories above renamed entries.
	Aside bool
}

// protects reports whether an entry stays.
func (r Removal) protects(e Listed) bool {
	return r.Aside && !e.InTheWay && strings.HasSuffix(e.Path, "~") ||
		r.Protect.Excludes(e.Path, e.Kind == wire.EntryDirectory)
}

// Extra returns what is in target and not in source, in an order in which it can be removed: a directory comes after
// everything in it. Entries that the Removal keeps are left out. A mount point is returned, but nothing below it, nor
// the directories above it: none of them can be removed. Nothing below a directory of the target is extra if the source
// has something else of its name. Errors come from the two listings, or wrap ErrNotSorted; one in the rest of source
// comes after all entries, so nothing may be removed before the end. Memory is bounded by the depth. missing, unless it
// is nil, is called for each entry that is in source and not in target; see Folded.
func Extra(source, target Listing, r Removal, missing func(Listed)) Listing {
	return compare(source, target, extra{removal: r}, missing)
}

// ExtraOrInTheWay returns what Extra does, and what keeps entries of source from being created: directories of target
// that source has as something else, with all that is below them unless they will be renamed, anything else that source
// has as a directory, and special files.
func ExtraOrInTheWay(source, target Listing, r Removal, missing func(Listed)) Listing {
	return compare(source, target, extra{removal: r, obstacles: true}, missing)
}

// FoldedInTheWay returns what keeps entries of source from being created, of what the target has at their paths only
// because it folds names. found is in the order of missing.
func FoldedInTheWay(missing, found []Listed) []Listed {
	var obstacles []Listed
	for _, e := range missing {
		if len(found) > 0 && found[0].Path == e.Path {
			if isObstacle(found[0], e) {
				found[0].InTheWay = true
				obstacles = append(obstacles, found[0])
			}
			found = found[1:]
		}
	}
	return obstacles
}

// isObstacle reports whether what the target has at the path of an entry keeps it from being created.
func isObstacle(at, entry Listed) bool {
	isDirectory := at.Kind == wire.EntryDirectory
	return isDirectory != (entry.Kind == wire.EntryDirectory) || at.Kind == wire.EntrySpecial
}

func compare(source, target Listing, wanted extra, missing func(Listed)) Listing {
	return func(yield func(Listed, error) bool) {
		in, stop := newCursor(source)
		in.missing = missing
		defer stop()
		e := &wanted
		e.source, e.yield = in, yield
		order := sorted{}
		for listed, err := range target {
			if err == nil {
				err = order.check(listed.Path)
			}
			if err == nil {
				err = e.take(listed)
			}
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				yield(Listed{}, err)
				return
			}
		}
		if e.leave("") != nil {
			return
		}
		if err := in.drain(); err != nil {
			yield(Listed{}, err)
		}
	}
}

// errStopped says that the consumer of a Listing has seen enough.
var errStopped = errors.New("stopped")

// extra is the state of Extra.
type extra struct {
	source  *cursor
	removal Removal
	yield   func(Listed, error) bool

	obstacles bool   // what is in the way of the source is wanted, too
	obstacle  string // path of what was in the way last

	open []openDirectory // of the target alone, the outermost first
	skip string          // what is below this path is not extra, with a slash at the end; empty: none
}

// openDirectory is a directory that is extra unless it has to stay for something in it.
type openDirectory struct {
	Listed
	stays bool
}

// take handles the next entry of the target.
func (e *extra) take(at Listed) error {
	if e.skip != "" && strings.HasPrefix(at.Path, e.skip) {
		return nil
	}
	e.skip = ""
	if err := e.leave(at.Path); err != nil {
		return err
	}
	other, found, err := e.source.seek(at.Path)
	if err != nil {
		return err
	}
	isDirectory := at.Kind == wire.EntryDirectory
	if e.obstacles {
		if found && isObstacle(at, other) {
			e.obstacle, found = at.Path, false
		}
		at.InTheWay = e.obstacle != "" && isAtOrBelow(at.Path, e.obstacle)
	}
	isProtected := e.removal.protects(at)
	if isDirectory && (isProtected || found && other.Kind != at.Kind || !found && at.Mounted) {
		e.skip = at.Path + "/"
	}
	isMoved := e.removal.Aside && at.InTheWay && at.Path != e.obstacle && !at.Mounted // with the directory above it
	if found || isProtected || at.Mounted || e.removal.Aside && !at.InTheWay && isContent(at) {
		e.keepOpen()
	}
	switch {
	case found, isProtected, isMoved:
	case at.Mounted:
		if !e.yield(at, nil) {
			return errStopped
		}
	case isDirectory:
		e.open = append(e.open, openDirectory{Listed: at})
	case !e.yield(at, nil):
		return errStopped
	}
	return nil
}

// isContent reports whether an entry is kept by renaming it.
func isContent(e Listed) bool {
	return e.Kind == wire.EntryFile || e.Kind == wire.EntrySymlink
}

// keepOpen lets the open directories stay.
func (e *extra) keepOpen() {
	for i := range e.open {
		e.open[i].stays = true
	}
}

// leave yields the open directories that do not contain a path, the innermost first.
func (e *extra) leave(path string) error {
	for len(e.open) > 0 {
		last := e.open[len(e.open)-1]
		if isAtOrBelow(path, last.Path) {
			return nil
		}
		e.open = e.open[:len(e.open)-1]
		if !last.stays && !e.yield(last.Listed, nil) {
			return errStopped
		}
	}
	return nil
}

// cursor reads a Listing up to a path.
type cursor struct {
	pull  func() (Listed, error, bool)
	order sorted
	at    Listed // the entry that was read last; without a path before the first
	ended bool

	missing func(Listed) // is called for the entries that seek has not found; may be nil
	found   bool         // seek has found at
}

func newCursor(listing Listing) (c *cursor, stop func()) {
	pull, stop := iter.Pull2(listing)
	return &cursor{pull: pull}, stop
}

// seek returns the entry at a path, which is not before the path of the last call; found is false if there is none.
func (c *cursor) seek(path string) (entry Listed, found bool, err error) {
	for !c.ended && (c.at.Path == "" || comparePaths(c.at.Path, path) < 0) {
		if err := c.next(); err != nil {
			return Listed{}, false, err
		}
	}
	c.found = !c.ended && c.at.Path == path
	return c.at, c.found, nil
}

func (c *cursor) next() error {
	if c.missing != nil && c.at.Path != "" && !c.found {
		c.missing(c.at)
	}
	c.found = false
	next, err, more := c.pull()
	if err == nil && more {
		err = c.order.check(next.Path)
	}
	c.at, c.ended = next, !more
	return err
}

// drain reads the rest, which may show that the listing is not sorted or not complete.
func (c *cursor) drain() error {
	for !c.ended {
		if err := c.next(); err != nil {
			return err
		}
	}
	return nil
}

// sorted checks the order of a listing.
type sorted struct{ last string }

func (s *sorted) check(path string) error {
	if path == "" || s.last != "" && comparePaths(s.last, path) >= 0 {
		return fmt.Errorf("%w: %s follows %s", ErrNotSorted, quote.Text(path), quote.Text(s.last))
	}
	s.last = path
	return nil
}
