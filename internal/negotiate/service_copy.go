package negotiate

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// The limits on the ITEMS of a copy.
const (
	MaxPatterns      = 1000
	MaxPattern       = 1024    // bytes of a pattern
	MaxListedPaths   = 100_000 // of --files-from
	MaxItemsTogether = 1 << 20 // bytes of all patterns and paths of a copy
)

const (
	itemSize     = 4  // without the text
	copySize     = 24 // without share, path and local
	acceptedSize = 20 // without the path
)

// ItemKind is what an Item says about the entries that the daemon sends.
type ItemKind uint8

// The kinds.
const (
	ItemInclude ItemKind = iota + 1 // what matches the pattern is sent
	ItemExclude                     // what matches the pattern is not sent
	ItemPath                        // the path, below that of the copy, is sent
)

// String returns the kind's name in docs/PROTOCOL.md.
func (k ItemKind) String() string {
	switch k {
	case ItemInclude:
		return "include"
	case ItemExclude:
		return "exclude"
	case ItemPath:
		return "path"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Item is one pattern or path of an ITEMS.
type Item struct {
	Kind ItemKind
	Text string // a pattern of 1 to MaxPattern bytes without a zero byte, or a path that is not empty
}

func (i Item) check() error {
	switch {
	case i.Kind < ItemInclude || i.Kind > ItemPath:
		return malformed(TypeItems, "an item of unknown %s", i.Kind)
	case i.Kind == ItemPath && !validPath([]byte(i.Text)):
		return malformed(TypeItems, "a path of %d bytes that no entry can have", len(i.Text))
	case i.Kind != ItemPath && (i.Text == "" || len(i.Text) > MaxPattern || strings.IndexByte(i.Text, 0) >= 0):
		return malformed(TypeItems, "a pattern of %d bytes; 1 to %d without a zero byte are possible", len(i.Text),
			MaxPattern)
	}
	return nil
}

// AppendItems appends an ITEMS without checking it.
func AppendItems(dst []byte, items []Item) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeItems), uint32(len(items)))
	for _, i := range items {
		dst = append(dst, byte(i.Kind), 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(i.Text)))
		dst = append(dst, i.Text...)
	}
	return dst
}

// DecodeItems appends the items of an ITEMS to dst. It fails with ErrMalformed and returns dst unchanged.
func DecodeItems(dst []Item, msg []byte) ([]Item, error) {
	count, rest, err := listText(msg, TypeItems, listSize)
	if err != nil {
		return dst, err
	}
	items := dst
	for range count {
		if len(rest) < itemSize {
			return dst, malformed(TypeItems, "%d bytes, too short for an item", len(rest))
		}
		length := itemSize + (int(rest[2])<<8 | int(rest[3]))
		if len(rest) < length {
			return dst, malformed(TypeItems, "%d bytes for an item of %d", len(rest), length)
		}
		if rest[1] != 0 {
			return dst, malformed(TypeItems, "padding that is not zero")
		}
		i := Item{ItemKind(rest[0]), rest[itemSize:length]}
		if err := i.check(); err != nil {
			return dst, err
		}
		items, rest = append(items, i), rest[length:]
	}
	if rest != "" {
		return dst, malformed(TypeItems, "%d bytes after %d items", len(rest), count)
	}
	return items, nil
}

// listText returns the number of elements of a list, at least 1, and a copy of what follows the message's fields.
func listText(msg []byte, t Type, size int) (count uint32, rest string, err error) {
	if err := checkType(msg, t, size); err != nil {
		return 0, "", err
	}
	if count = binary.BigEndian.Uint32(msg[4:]); count == 0 {
		return 0, "", malformed(t, "an empty list")
	}
	return count, string(msg[size:]), nil
}

// itemTotals counts the items of a copy, which may be in several messages.
type itemTotals struct{ patterns, paths, bytes int }

// add counts further items, unless they exceed a limit.
func (t *itemTotals) add(items ...Item) error {
	sum := *t
	for _, i := range items {
		sum.bytes += len(i.Text)
		if i.Kind == ItemPath {
			sum.paths++
		} else {
			sum.patterns++
		}
	}
	switch {
	case sum.patterns > MaxPatterns:
		return &Error{Message: TypeItems, Err: ErrTooLarge, Detail: fmt.Sprintf("more than %d patterns", MaxPatterns)}
	case sum.paths > MaxListedPaths:
		return &Error{Message: TypeItems, Err: ErrTooLarge, Detail: fmt.Sprintf("more than %d paths", MaxListedPaths)}
	case sum.bytes > MaxItemsTogether:
		return &Error{Message: TypeItems, Err: ErrTooLarge,
			Detail: fmt.Sprintf("more than %d bytes of patterns and paths", MaxItemsTogether)}
	}
	*t = sum
	return nil
}

// CheckItems reports with its error whether a copy may have these items. A command calls it before the first Items,
// which only a copy can follow. It fails with ErrMalformed, and with ErrTooLarge for more than MaxPatterns,
// MaxListedPaths or MaxItemsTogether.
func CheckItems(items []Item) error {
	for _, i := range items {
		if err := i.check(); err != nil {
			return err
		}
	}
	var totals itemTotals
	return totals.add(items...)
}

// checkFor checks the items before a COPY against it.
func (t itemTotals) checkFor(c CopyRequest) error {
	switch {
	case t != itemTotals{} && c.Direction != CopyPull:
		return malformed(TypeCopy, "a %s after ITEMS", c.Direction)
	case t.paths > 0 && !c.Flags.Has(CopyOnly):
		return malformed(TypeCopy, "%d paths without the flag for them", t.paths)
	}
	return nil
}

// CopyDirection is who sends: the name says what the command does.
type CopyDirection uint8

// The directions.
const (
	CopyPush CopyDirection = iota + 1 // the command sends
	CopyPull                          // the daemon sends
)

// String returns "push" or "pull".
func (d CopyDirection) String() string {
	switch d {
	case CopyPush:
		return "push"
	case CopyPull:
		return "pull"
	}
	return fmt.Sprintf("direction %d", uint8(d))
}

// CopyKind is what one end of a copy is.
type CopyKind uint8

// The kinds.
const (
	CopyUnknown CopyKind = iota
	CopyFile
	CopyTree
	CopyStream
)

// String returns the kind's name in docs/PROTOCOL.md.
func (k CopyKind) String() string {
	switch k {
	case CopyUnknown:
		return "unknown"
	case CopyFile:
		return "file"
	case CopyTree:
		return "tree"
	case CopyStream:
		return "stream"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// CopyLinks is what a daemon that sends does with the symlinks of a tree.
type CopyLinks uint8

// The choices of --links.
const (
	CopyLinksAsLinks CopyLinks = iota // sent as symlinks
	CopyLinksFollow                   // sent as what they point to
	CopyLinksSkip                     // not sent
)

// String returns the choice's name on the command line.
func (l CopyLinks) String() string {
	switch l {
	case CopyLinksAsLinks:
		return "copy"
	case CopyLinksFollow:
		return "follow"
	case CopyLinksSkip:
		return "skip"
	}
	return fmt.Sprintf("links %d", uint8(l))
}

// CopyFlags are options of the daemon's side of a copy. What the HELLO of the command says to both sides, such as the
// digest or no-sparse, is not among them.
type CopyFlags uint32

// The flags.
const (
	CopyOverwrite      CopyFlags = 1 << iota // push: an existing target may be replaced
	CopyBackup                               // push: what is replaced is kept as NAME~; with CopyOverwrite
	CopyNoResume                             // push: neither use nor leave a partial file
	CopyMakePath                             // push: missing directories above the target are created
	CopyDirectory                            // pull: the source has to be a directory
	CopyAllowChanging                        // pull: the source may change during the copy
	CopyOnly                                 // pull: only the paths of the ITEMS are sent, even if there are none
	CopyOwner                                // owners are copied; the daemon may have to refuse it
	CopyXAttr                                // extended attributes are copied
	CopyHardLinks                            // hard links within a tree are preserved
	CopyDryRun                               // nothing is written, not even a directory of CopyMakePath
	CopyIgnoreExisting                       // push: what exists is left as it is; not with CopyOverwrite
	CopyKeep                                 // the daemon keeps its directory for ListKept and RemoveKept

	knownCopyFlags = CopyKeep<<1 - 1
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
	Local     string // path of the command's file, for the daemon's user: as that of a Location
}

// AppendCopy appends a COPY without checking it.
func AppendCopy(dst []byte, c CopyRequest) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeCopy), uint32(c.Flags))
	dst = append(dst, byte(c.Direction), byte(c.Kind), byte(c.Links), byte(len(c.Place.Share)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.Place.Path)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.Local)))
	dst = binary.BigEndian.AppendUint64(dst, c.Size)
	return append(append(append(dst, c.Place.Share...), c.Place.Path...), c.Local...)
}

// DecodeCopy decodes a COPY and checks all its values. It fails with ErrMalformed.
func DecodeCopy(msg []byte) (CopyRequest, error) {
	if err := checkType(msg, TypeCopy, copySize); err != nil {
		return CopyRequest{}, err
	}
	share, path, local := int(msg[11]), int(binary.BigEndian.Uint16(msg[12:])), int(binary.BigEndian.Uint16(msg[14:]))
	if err := checkTail(msg, TypeCopy, copySize, uint64(share+path+local)); err != nil {
		return CopyRequest{}, err
	}
	text := string(msg[copySize:])
	c := CopyRequest{
		Direction: CopyDirection(msg[8]), Kind: CopyKind(msg[9]), Links: CopyLinks(msg[10]),
		Flags: CopyFlags(binary.BigEndian.Uint32(msg[4:])),
		Place: Place{text[:share], text[share : share+path]}, Local: text[share+path:],
		Size: binary.BigEndian.Uint64(msg[16:]),
	}
	if err := c.check(); err != nil {
		return CopyRequest{}, err
	}
	return c, nil
}

func (c CopyRequest) check() error {
	switch {
	case c.Direction != CopyPush && c.Direction != CopyPull:
		return malformed(TypeCopy, "unknown %s", c.Direction)
	case c.Flags&^knownCopyFlags != 0:
		return malformed(TypeCopy, "unknown flags %#x", uint32(c.Flags&^knownCopyFlags))
	case c.Links > CopyLinksSkip:
		return malformed(TypeCopy, "unknown %s", c.Links)
	case c.Size > MaxSize:
		return malformed(TypeCopy, "a file of %d bytes, limit %d", c.Size, uint64(MaxSize))
	}
	if err := firstError(c.Place.check(TypeCopy), checkLocationPath(TypeCopy, c.Local)); err != nil {
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
		return malformed(TypeCopy, "a source of %s", c.Kind)
	case c.Flags&pullFlags != 0, c.Links != CopyLinksAsLinks:
		return malformed(TypeCopy, "a push with the options of a pull")
	case c.Flags.Has(CopyBackup) && !c.Flags.Has(CopyOverwrite):
		return malformed(TypeCopy, "a backup without overwrite")
	case c.Flags.Has(CopyOverwrite | CopyIgnoreExisting):
		return malformed(TypeCopy, "flags %#x: a push replaces or leaves what exists", uint32(c.Flags))
	case c.Size != 0 && c.Kind != CopyFile:
		return malformed(TypeCopy, "a %s of %d bytes", c.Kind, c.Size)
	}
	return nil
}

func (c CopyRequest) checkPull() error {
	switch {
	case c.Kind != CopyUnknown && c.Kind != CopyStream:
		return malformed(TypeCopy, "a target of %s", c.Kind)
	case c.Flags&pushFlags != 0, c.Size != 0:
		return malformed(TypeCopy, "a pull with the options of a push")
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

// AppendAccepted appends an ACCEPTED without checking it.
func AppendAccepted(dst []byte, a Accepted) []byte {
	unfinished := byte(0)
	if a.Unfinished {
		unfinished = 1
	}
	dst = append(appendType(dst, TypeAccepted), byte(a.Kind), unfinished, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, a.Size)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(a.Path)))
	return append(appendPadding(dst, 2), a.Path...)
}

// DecodeAccepted decodes an ACCEPTED. It checks everything that does not depend on the COPY. It fails with
// ErrMalformed.
func DecodeAccepted(msg []byte) (Accepted, error) {
	if err := checkType(msg, TypeAccepted, acceptedSize); err != nil {
		return Accepted{}, err
	}
	err := firstError(
		checkTail(msg, TypeAccepted, acceptedSize, uint64(binary.BigEndian.Uint16(msg[16:]))),
		checkPadding(TypeAccepted, msg[6:8]),
		checkPadding(TypeAccepted, msg[18:20]),
	)
	if err != nil {
		return Accepted{}, err
	}
	if msg[5] > 1 {
		return Accepted{}, malformed(TypeAccepted, "%d for an unfinished directory", msg[5])
	}
	a := Accepted{
		Kind: CopyKind(msg[4]), Size: binary.BigEndian.Uint64(msg[8:]), Path: string(msg[acceptedSize:]),
		Unfinished: msg[5] == 1,
	}
	if err := a.check(); err != nil {
		return Accepted{}, err
	}
	return a, nil
}

func (a Accepted) check() error {
	switch {
	case a.Kind > CopyTree:
		return malformed(TypeAccepted, "a source of %s", a.Kind)
	case a.Unfinished && a.Kind != CopyTree:
		return malformed(TypeAccepted, "an unfinished %s", a.Kind)
	case a.Size > MaxSize || a.Size != 0 && a.Kind != CopyFile:
		return malformed(TypeAccepted, "a source of %s and %d bytes", a.Kind, a.Size)
	}
	return checkSharePath(TypeAccepted, a.Path)
}

// checkFor checks the answer to a COPY of this direction.
func (a Accepted) checkFor(d CopyDirection) error {
	if err := a.check(); err != nil {
		return err
	}
	if (a.Kind == CopyUnknown) != (d == CopyPush) {
		return malformed(TypeAccepted, "a source of %s for a %s", a.Kind, d)
	}
	return nil
}
