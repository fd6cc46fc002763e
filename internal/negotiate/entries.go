package negotiate

import (
	"bytes"
	"math"
)

const entrySize = 60 // without name and link

// EntryKind is the kind of an entry.
type EntryKind uint8

// The kinds.
const (
	EntryFile      EntryKind = 1
	EntryDirectory EntryKind = 2
	EntrySymlink   EntryKind = 3
	EntryHardLink  EntryKind = 4 // another name of an earlier file of the transfer
	EntrySpecial   EntryKind = 5 // a FIFO, socket or device, in lists only
)

var entryKindNames = []string{
	EntryFile: "file", EntryDirectory: "directory", EntrySymlink: "symlink", EntryHardLink: "hard link",
	EntrySpecial: "special file",
}

// Known reports whether k is one of the kinds above.
func (k EntryKind) Known() bool { return k != 0 && int(k) < len(entryKindNames) }

// String returns the kind's name in docs/PROTOCOL.md.
func (k EntryKind) String() string { return nameOf(entryKindNames, k, "kind") }

// EntryFlags are properties of an entry.
type EntryFlags uint8

// The flags.
const (
	EntrySizeUnknown EntryFlags = 1 << 0 // a stream, whose size is known at its end
	EntryHasMetadata EntryFlags = 1 << 1 // extended attributes follow in METADATA
	EntryChunked     EntryFlags = 1 << 2 // the file comes in CHUNKS; otherwise it comes in a PACK

	knownEntryFlags = EntryChunked<<1 - 1
)

// Has reports whether all of the wanted flags are set.
func (f EntryFlags) Has(wanted EntryFlags) bool { return f&wanted == wanted }

// Timestamp is a time of a file.
type Timestamp struct {
	Sec  int64  // since 1970, may be negative
	Nsec uint32 // below 10^9
}

// Entry is a file, directory, symlink or hard link of a transfer. Its parent is the last entry of the previous depth
// that was announced before it; the first entry, the root, has none.
type Entry struct {
	Number   uint32 // its position in the transfer, from 0; not on the wire
	Kind     EntryKind
	Flags    EntryFlags
	Depth    int    // 0 for the root, at most 2048
	Mode     uint32 // permission bits, at most MaxMode
	MTime    Timestamp
	UID, GID uint32
	Size     uint64   // bytes of a file of known size, at most MaxSize; otherwise 0
	Identity [16]byte // of a file, equal as long as it is unchanged, for resuming; otherwise zeros
	Xattrs   uint32   // CRC-32C of what a file has in METADATA, to compare it with the target's; otherwise 0
	Name     []byte   // the last component of the path; empty for the root
	// Link is the text of a symlink, or the path of the file of which a hard link is another name, below the root.
	Link []byte
}

// MaxEntrySize returns the length of an ENTRIES with one entry whose name and link have these lengths. It must not
// exceed the channel's longest message.
func MaxEntrySize(name, link int) int { return listSize + entrySize + name + link }

// AppendEntries appends an ENTRIES without checking it.
func AppendEntries(dst []byte, entries []Entry) []byte {
	return encodeList(dst, TypeEntries, entries, (*Entry).fields)
}

// DecodeEntries appends the entries of an ENTRIES to dst; their names and links share memory with msg, their numbers
// are 0. It checks everything that does not depend on the plan or on other entries. It fails with ErrMalformed and
// returns dst unchanged.
func DecodeEntries(dst []Entry, msg []byte) ([]Entry, error) {
	return decodeList(dst, msg, TypeEntries, (*Entry).fields)
}

func (e *Entry) fields(c codec) codec {
	integer(&c, &e.Kind)
	integer(&c, &e.Flags)
	c.depth(&e.Depth)
	integer(&c, &e.Mode)
	integer(&c, &e.MTime.Sec)
	integer(&c, &e.MTime.Nsec)
	integer(&c, &e.UID)
	integer(&c, &e.GID)
	integer(&c, &e.Xattrs)
	integer(&c, &e.Size)
	c.array(e.Identity[:])
	name := length[uint16](&c, len(e.Name))
	link := length[uint16](&c, len(e.Link))
	c.octets(&e.Name, name)
	c.octets(&e.Link, link)
	c.verify(e.check)
	return c
}

// depth passes the depth of an entry.
func (c *codec) depth(v *int) {
	if depth := length[uint16](c, *v); c.reads {
		*v = depth
	}
}

// check checks everything that does not depend on the plan or on other entries.
func (e *Entry) check() error {
	switch {
	case !e.Kind.Known(), e.Kind == EntrySpecial:
		return malformed(TypeEntries, "an entry of unknown %s", e.Kind)
	case e.Flags&^knownEntryFlags != 0:
		return malformed(TypeEntries, "unknown flags %#x of an entry", uint8(e.Flags&^knownEntryFlags))
	case e.Mode > MaxMode:
		return malformed(TypeEntries, "mode %#o, limit %#o", e.Mode, MaxMode)
	case e.MTime.Nsec >= 1e9:
		return malformed(TypeEntries, "%d nanoseconds in a second", e.MTime.Nsec)
	case e.UID == math.MaxUint32 || e.GID == math.MaxUint32: // chown(2) would not change the owner
		return malformed(TypeEntries, "uid %d and gid %d, limit %d", e.UID, e.GID, uint32(math.MaxUint32-1))
	}
	return firstError(e.checkContent(), e.checkName(), e.checkLink())
}

// checkContent checks what only a file may have.
func (e *Entry) checkContent() error {
	switch {
	case e.Size > MaxSize:
		return malformed(TypeEntries, "a file of %d bytes, limit %d", e.Size, uint64(MaxSize))
	case e.Flags.Has(EntrySizeUnknown) && (e.Size != 0 || !e.Flags.Has(EntryChunked)):
		return malformed(TypeEntries, "flags %#x of a file of unknown size and %d bytes", uint8(e.Flags), e.Size)
	case e.Kind != EntryFile && (e.Size != 0 || e.Identity != [16]byte{} || e.Flags&^EntryHasMetadata != 0):
		return malformed(TypeEntries, "a %s with the size, identity or flags of a file", e.Kind)
	case e.Xattrs != 0 && (e.Kind != EntryFile || !e.Flags.Has(EntryHasMetadata)):
		return malformed(TypeEntries, "a sum of extended attributes of a %s with flags %#x", e.Kind, uint8(e.Flags))
	case e.Kind == EntryHardLink && e.Flags.Has(EntryHasMetadata):
		return malformed(TypeEntries, "a hard link with metadata of its own")
	}
	return nil
}

func (e *Entry) checkName() error {
	switch {
	case e.Depth > maxLevel:
		return malformed(TypeEntries, "an entry at depth %d, limit %d", e.Depth, maxLevel)
	case e.Depth == 0 && len(e.Name) != 0:
		return malformed(TypeEntries, "a root with a name of %d bytes", len(e.Name))
	case e.Depth == 0 && e.Kind != EntryFile && e.Kind != EntryDirectory:
		return malformed(TypeEntries, "a %s as the root", e.Kind)
	case e.Depth > 0 && !validName(e.Name):
		return malformed(TypeEntries, "a name of %d bytes that no file can have", len(e.Name))
	}
	return nil
}

// validName reports whether name is one component of a path, and neither "." nor "..".
func validName(name []byte) bool {
	if len(name) == 0 || len(name) > MaxName || bytes.IndexByte(name, '/') >= 0 || bytes.IndexByte(name, 0) >= 0 {
		return false
	}
	return string(name) != "." && string(name) != ".."
}

func (e *Entry) checkLink() error {
	valid := false
	switch e.Kind {
	case EntrySymlink:
		valid = 0 < len(e.Link) && len(e.Link) <= MaxLink && bytes.IndexByte(e.Link, 0) < 0
	case EntryHardLink:
		valid = validPath(e.Link)
	default:
		valid = len(e.Link) == 0
	}
	if !valid {
		return malformed(TypeEntries, "a %s with a link of %d bytes that it cannot have", e.Kind, len(e.Link))
	}
	return nil
}

// validPath reports whether path consists of valid names and is at most MaxPath bytes long.
func validPath(path []byte) bool {
	if len(path) > MaxPath {
		return false
	}
	for more := true; more; {
		var name []byte
		if name, path, more = bytes.Cut(path, []byte{'/'}); !validName(name) {
			return false
		}
	}
	return true
}
