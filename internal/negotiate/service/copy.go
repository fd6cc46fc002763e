package service

import (
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The limits on the ITEMS of a copy.
const (
	MaxPatterns      = 1000
	MaxPattern       = 1024    // bytes of a pattern
	MaxListedPaths   = 100_000 // of --files-from
	MaxItemsTogether = 1 << 20 // bytes of all patterns and paths of a copy
)

const copySize = 24 // without share, path and local

// ItemKind is what an Item says about the entries that the daemon sends.
type ItemKind uint8

// The kinds.
const (
	ItemInclude ItemKind = 1 // what matches the pattern is sent
	ItemExclude ItemKind = 2 // what matches the pattern is not sent
	ItemPath    ItemKind = 3 // the path, below the copy's, is sent

	// The others are since boundsVersion, and at most once in a copy.

	ItemOneFileSystem ItemKind = 4 // what is below a mount point is not sent
	ItemMinSize       ItemKind = 5 // files of fewer bytes are not sent
	ItemMaxSize       ItemKind = 6 // files of more bytes are not sent
	ItemNewer         ItemKind = 7 // files modified at this time or before are not sent
	ItemOlder         ItemKind = 8 // files modified at this time or later are not sent
)

// boundsVersion is the first version of the service protocol that has CopyPrivileged, and items which are neither
// patterns nor paths.
const boundsVersion = 3

// Bounds reports whether the peer knows CopyPrivileged, and the items which are neither patterns nor paths.
func (s *Session) Bounds() bool { return s.Version() >= boundsVersion }

var itemNames = []string{
	ItemInclude: "include", ItemExclude: "exclude", ItemPath: "path", ItemOneFileSystem: "one-file-system",
	ItemMinSize: "min-size", ItemMaxSize: "max-size", ItemNewer: "newer", ItemOlder: "older",
}

// String returns the kind's name in docs/internals/protocol/service.md.
func (k ItemKind) String() string { return wire.NameOf(itemNames, k, "kind") }

// Item is one condition of an ITEMS.
type Item struct {
	Kind  ItemKind
	Text  string // a pattern of 1 to MaxPattern bytes without a zero byte, or a path that is not empty; otherwise empty
	Bound int64  // a size in bytes, not negative, or a time in nanoseconds since 1970; otherwise 0
}

func (i Item) check() error {
	switch {
	case i.Kind < ItemInclude || i.Kind > ItemOlder:
		return wire.Malformed(wire.TypeItems, "an item of unknown %s", i.Kind)
	case i.isBound():
		return i.checkBound()
	case i.Kind == ItemPath && !wire.ValidPath([]byte(i.Text)):
		return wire.Malformed(wire.TypeItems, "a path of %d bytes that no entry can have", len(i.Text))
	case i.Kind != ItemPath && (i.Text == "" || len(i.Text) > MaxPattern || strings.IndexByte(i.Text, 0) >= 0):
		return wire.Malformed(wire.TypeItems, "a pattern of %d bytes; 1 to %d without a zero byte are possible",
			len(i.Text),
			MaxPattern)
	}
	return nil
}

// isBound reports whether the item is neither a pattern nor a path.
func (i Item) isBound() bool { return i.Kind > ItemPath }

func (i Item) checkBound() error {
	switch {
	case i.Text != "":
		return wire.Malformed(wire.TypeItems, "a %s with a text of %d bytes", i.Kind, len(i.Text))
	case i.Bound < 0 && i.Kind < ItemNewer, i.Bound != 0 && i.Kind == ItemOneFileSystem:
		return wire.Malformed(wire.TypeItems, "a %s of %d", i.Kind, i.Bound)
	}
	return nil
}

func (i *Item) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &i.Kind)
	c.Zeros(1)
	text := wire.Length[uint16](&c, len(i.Text))
	c.Text(&i.Text, text)
	if i.isBound() {
		wire.Integer(&c, &i.Bound)
	}
	c.Verify(i.check)
	return c
}

// itemTotals counts the items of a copy, which may be in several messages.
type itemTotals struct {
	patterns, paths, bytes int

	bounds [ItemOlder + 1]bool // kinds counted so far; a second item of a kind is invalid
}

// add counts a further item, unless it is invalid or exceeds a limit.
func (t *itemTotals) add(i *Item) error {
	if err := i.check(); err != nil {
		return err
	}
	sum := *t
	sum.bytes += len(i.Text)
	switch {
	case i.isBound() && sum.bounds[i.Kind]:
		return wire.Malformed(wire.TypeItems, "a second %s", i.Kind)
	case i.isBound():
		sum.bounds[i.Kind] = true
	case i.Kind == ItemPath:
		sum.paths++
	default:
		sum.patterns++
	}
	switch {
	case sum.patterns > MaxPatterns:
		return tooMany("%d patterns", MaxPatterns)
	case sum.paths > MaxListedPaths:
		return tooMany("%d paths", MaxListedPaths)
	case sum.bytes > MaxItemsTogether:
		return tooMany("%d bytes of patterns and paths", MaxItemsTogether)
	}
	*t = sum
	return nil
}

// addItem counts a further item of the session.
func (s *Session) addItem(i *Item) error {
	if i.isBound() && !s.Bounds() {
		return wire.Malformed(wire.TypeItems, "a %s in version %d", i.Kind, s.Version())
	}
	return s.items.add(i)
}

func tooMany(what string, limit int) error {
	return &wire.Error{Message: wire.TypeItems, Err: wire.ErrTooLarge, Detail: fmt.Sprintf("more than "+what, limit)}
}

// CheckItems reports with its error whether a copy may have these items. A command calls it before the first Items,
// which only a copy can follow. It fails with ErrMalformed, and with ErrTooLarge for more than MaxPatterns,
// MaxListedPaths or MaxItemsTogether.
func CheckItems(items []Item) error {
	var totals itemTotals
	for i := range items {
		if err := totals.add(&items[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkFor checks the items before a COPY against it.
func (t itemTotals) checkFor(c CopyRequest) error {
	switch {
	case t != itemTotals{} && c.Direction != CopyPull:
		return wire.Malformed(wire.TypeCopy, "a %s after ITEMS", c.Direction)
	case t.paths > 0 && !c.Flags.Has(CopyOnly):
		return wire.Malformed(wire.TypeCopy, "%d paths without the flag for them", t.paths)
	}
	return nil
}

// CopyDirection is who sends: the name says what the command does.
type CopyDirection uint8

// The directions.
const (
	CopyPush CopyDirection = 1 // the command sends
	CopyPull CopyDirection = 2 // the daemon sends
)

var directionNames = []string{CopyPush: "push", CopyPull: "pull"}

// String returns "push" or "pull".
func (d CopyDirection) String() string { return wire.NameOf(directionNames, d, "direction") }

// CopyKind is what one end of a copy is.
type CopyKind uint8

// The kinds.
const (
	CopyUnknown CopyKind = 0
	CopyFile    CopyKind = 1
	CopyTree    CopyKind = 2
	CopyStream  CopyKind = 3
)

var copyKindNames = []string{CopyUnknown: "unknown", CopyFile: "file", CopyTree: "tree", CopyStream: "stream"}

// String returns the kind's name in docs/internals/protocol/service.md.
func (k CopyKind) String() string { return wire.NameOf(copyKindNames, k, "kind") }

// CopyLinks is what a daemon that sends does with the symlinks of a tree.
type CopyLinks uint8

// The choices of --links.
const (
	CopyLinksAsLinks CopyLinks = 0 // sent as symlinks
	CopyLinksFollow  CopyLinks = 1 // sent as what they point to
	CopyLinksSkip    CopyLinks = 2 // not sent
)

var linksNames = []string{CopyLinksAsLinks: "copy", CopyLinksFollow: "follow", CopyLinksSkip: "skip"}

// String returns the choice's name on the command line.
func (l CopyLinks) String() string { return wire.NameOf(linksNames, l, "links") }

// CopyFlags are options of the daemon's side of a copy. Options in the HELLO of the command, which both sides read,
// such as the digest or no-sparse, are not among them.
type CopyFlags uint32

// The flags.
const (
	CopyOverwrite      CopyFlags = 1 << 0  // push: an existing target may be replaced
	CopyBackup         CopyFlags = 1 << 1  // push: what is replaced is kept as NAME~; with CopyOverwrite
	CopyNoResume       CopyFlags = 1 << 2  // push: neither use nor leave a partial file
	CopyMakePath       CopyFlags = 1 << 3  // push: missing directories above the target are created
	CopyDirectory      CopyFlags = 1 << 4  // pull: the source has to be a directory
	CopyAllowChanging  CopyFlags = 1 << 5  // pull: the source may change during the copy
	CopyOnly           CopyFlags = 1 << 6  // pull: only the paths of the ITEMS are sent, even if there are none
	CopyOwner          CopyFlags = 1 << 7  // owners are copied; the daemon may have to refuse it
	CopyXAttr          CopyFlags = 1 << 8  // extended attributes are copied
	CopyHardLinks      CopyFlags = 1 << 9  // hard links within a tree are preserved
	CopyDryRun         CopyFlags = 1 << 10 // nothing is written, not even a directory of CopyMakePath
	CopyIgnoreExisting CopyFlags = 1 << 11 // push: what exists is left as it is; not with CopyOverwrite
	CopyKeep           CopyFlags = 1 << 12 // the daemon keeps its directory for ListKept and Remove with Kept
	CopyPrivileged     CopyFlags = 1 << 13 // with CopyXAttr: not only user attributes; since boundsVersion

	knownCopyFlags = CopyPrivileged<<1 - 1
	pushFlags      = CopyOverwrite | CopyBackup | CopyNoResume | CopyMakePath | CopyIgnoreExisting
	pullFlags      = CopyDirectory | CopyAllowChanging | CopyOnly
)

// Has reports whether all of the wanted flags are set.
func (f CopyFlags) Has(wanted CopyFlags) bool { return f&wanted == wanted }

// CopyRequest is the content of a COPY.
type CopyRequest struct {
	Direction CopyDirection
	Kind      CopyKind // push: of the source; pull: CopyStream if the target is one, otherwise CopyUnknown
	Links     CopyLinks
	Flags     CopyFlags
	Place     Place  // of the source or the target itself
	Size      uint64 // push: bytes of a file, 0 if unknown; otherwise 0. At most MaxSize
	Local     string // path of the command's file, for the daemon's user: as in a Location
}

// AppendCopy appends a COPY without checking it.
func AppendCopy(dst []byte, r CopyRequest) []byte {
	return wire.Encode(dst, wire.TypeCopy, &r, (*CopyRequest).fields)
}

func (r *CopyRequest) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &r.Flags)
	wire.Integer(&c, &r.Direction)
	wire.Integer(&c, &r.Kind)
	wire.Integer(&c, &r.Links)
	share := wire.Length[uint8](&c, len(r.Place.Share))
	path := wire.Length[uint16](&c, len(r.Place.Path))
	local := wire.Length[uint16](&c, len(r.Local))
	wire.Integer(&c, &r.Size)
	c.Text(&r.Place.Share, share)
	c.Text(&r.Place.Path, path)
	c.Text(&r.Local, local)
	c.Verify(r.check)
	return c
}

func (c CopyRequest) check() error {
	switch {
	case c.Direction != CopyPush && c.Direction != CopyPull:
		return wire.Malformed(wire.TypeCopy, "unknown %s", c.Direction)
	case c.Flags&^knownCopyFlags != 0:
		return wire.Malformed(wire.TypeCopy, "unknown flags %#x", uint32(c.Flags&^knownCopyFlags))
	case c.Flags.Has(CopyPrivileged) && !c.Flags.Has(CopyXAttr):
		return wire.Malformed(wire.TypeCopy, "flags %#x: privileged without xattr", uint32(c.Flags))
	case c.Links > CopyLinksSkip:
		return wire.Malformed(wire.TypeCopy, "unknown %s", c.Links)
	case c.Size > wire.MaxSize:
		return wire.Malformed(wire.TypeCopy, "a file of %d bytes, limit %d", c.Size, uint64(wire.MaxSize))
	}
	if err := wire.FirstError(c.Place.check(wire.TypeCopy), wire.CheckLocationPath(wire.TypeCopy,
		c.Local)); err != nil {
		return err
	}
	if c.Direction == CopyPush {
		return c.checkPush()
	}
	return c.checkPull()
}

func (c CopyRequest) checkPush() error {
	switch {
	case c.Kind < CopyFile || c.Kind > CopyStream:
		return wire.Malformed(wire.TypeCopy, "a source of %s", c.Kind)
	case c.Flags&pullFlags != 0, c.Links != CopyLinksAsLinks:
		return wire.Malformed(wire.TypeCopy, "a push with the options of a pull")
	case c.Flags.Has(CopyBackup) && !c.Flags.Has(CopyOverwrite):
		return wire.Malformed(wire.TypeCopy, "a backup without overwrite")
	case c.Flags.Has(CopyOverwrite | CopyIgnoreExisting):
		return wire.Malformed(wire.TypeCopy, "flags %#x: a push replaces or leaves what exists", uint32(c.Flags))
	case c.Size != 0 && c.Kind != CopyFile:
		return wire.Malformed(wire.TypeCopy, "a %s of %d bytes", c.Kind, c.Size)
	}
	return nil
}

func (c CopyRequest) checkPull() error {
	switch {
	case c.Kind != CopyUnknown && c.Kind != CopyStream:
		return wire.Malformed(wire.TypeCopy, "a target of %s", c.Kind)
	case c.Flags&pushFlags != 0, c.Size != 0:
		return wire.Malformed(wire.TypeCopy, "a pull with the options of a push")
	}
	return nil
}

// Accepted is the content of an ACCEPTED.
type Accepted struct {
	Kind CopyKind // pull: CopyFile or CopyTree, what the source is; push: CopyUnknown
	Size uint64   // pull: bytes of a file, at most MaxSize; otherwise 0
	Path string   // of the source or the target, below the share

	Unfinished bool // pull: a copy into the directory is running, or was interrupted
}

func (a *Accepted) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &a.Kind)
	c.Bit(&a.Unfinished, "unfinished")
	c.Zeros(2)
	wire.Integer(&c, &a.Size)
	path := wire.Length[uint16](&c, len(a.Path))
	c.Zeros(2)
	c.Text(&a.Path, path)
	c.Verify(a.check)
	return c
}

func (a Accepted) check() error {
	switch {
	case a.Kind > CopyTree:
		return wire.Malformed(wire.TypeAccepted, "a source of %s", a.Kind)
	case a.Unfinished && a.Kind != CopyTree:
		return wire.Malformed(wire.TypeAccepted, "an unfinished %s", a.Kind)
	case a.Size > wire.MaxSize || a.Size != 0 && a.Kind != CopyFile:
		return wire.Malformed(wire.TypeAccepted, "a source of %s and %d bytes", a.Kind, a.Size)
	}
	return checkSharePath(wire.TypeAccepted, a.Path)
}

// checkFor checks the answer to a COPY of this direction.
func (a Accepted) checkFor(d CopyDirection) error {
	if err := a.check(); err != nil {
		return err
	}
	if (a.Kind == CopyUnknown) != (d == CopyPush) {
		return wire.Malformed(wire.TypeAccepted, "a source of %s for a %s", a.Kind, d)
	}
	return nil
}
