package wire

import (
	"bytes"
	"math"
	"strings"
)

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

// String returns the kind's name in docs/internals/protocol.
func (k EntryKind) String() string { return NameOf(entryKindNames, k, "kind") }

// EntryFlags are properties of an entry.
type EntryFlags uint8

// The flags.
const (
	EntrySizeUnknown EntryFlags = 1 << 0 // a stream, whose size is known at its end
	EntryHasMetadata EntryFlags = 1 << 1 // extended attributes follow in METADATA
	EntryChunked     EntryFlags = 1 << 2 // the file comes in CHUNKS; otherwise it comes in a PACK

	KnownEntryFlags = EntryChunked<<1 - 1 // all of them
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
	// Link is the text of a symlink, or the path below the root of the file that a hard link gives another name.
	Link []byte
}

// Order checks that entries are announced depth first and that siblings are sorted by name. It has the path of the last
// entry: the previous sibling of a new one is a component of it. Its memory, which the first entry below a
// directory allocates, is bounded by MaxPath.
type Order struct {
	Message Type      // that announces them
	Next    uint32    // number of the next entry
	kind    EntryKind // of the last entry
	path    []byte    // of the last entry, its components joined by '/'
	ends    []uint16  // by depth - 1: where the component ends in path
}

// Reset makes the next entry the first one.
func (o *Order) Reset() { o.Next, o.kind, o.path, o.ends = 0, 0, o.path[:0], o.ends[:0] }

// Check checks an entry, which is valid by itself, against those before it.
func (o *Order) Check(e *Entry) error {
	depth := len(o.ends) // of the last entry
	switch {
	case o.Next == math.MaxUint32:
		return Malformed(o.Message, "more than %d entries", uint32(math.MaxUint32))
	case (e.Depth == 0) != (o.Next == 0):
		return Malformed(o.Message, "entry %d at depth %d", o.Next, e.Depth)
	case e.Depth == 0:
		return nil
	case e.Depth > depth+1 || e.Depth == depth+1 && o.kind != EntryDirectory:
		return Malformed(o.Message, "an entry at depth %d after a %s at depth %d", e.Depth, o.kind, depth)
	case e.Depth <= depth && bytes.Compare(o.component(e.Depth), e.Name) >= 0:
		return Malformed(o.Message, "entry %d does not follow its sibling in the order of the names", o.Next)
	case o.parentEnd(e.Depth)+min(e.Depth-1, 1)+len(e.Name) > MaxPath:
		return Malformed(o.Message, "a path of more than %d bytes", MaxPath)
	}
	return nil
}

// Add makes e, which Check has accepted, the last entry.
func (o *Order) Add(e *Entry) {
	o.Next++
	o.kind = e.Kind
	if e.Depth == 0 {
		return
	}
	if o.path == nil {
		o.path, o.ends = make([]byte, 0, MaxPath+MaxName+1), make([]uint16, 0, MaxLevel)
	}
	o.path, o.ends = o.path[:o.parentEnd(e.Depth)], o.ends[:e.Depth-1]
	if e.Depth > 1 {
		o.path = append(o.path, '/')
	}
	o.path = append(o.path, e.Name...)
	o.ends = append(o.ends, uint16(len(o.path)))
}

// component returns the name of the last entry, or of its directory, at a depth from 1.
func (o *Order) component(depth int) []byte {
	return o.path[o.parentEnd(depth)+min(depth-1, 1) : o.ends[depth-1]]
}

// parentEnd returns the length of the path of the directory of an entry at a depth from 1.
func (o *Order) parentEnd(depth int) int {
	if depth < 2 {
		return 0
	}
	return int(o.ends[depth-2])
}

// ValidName reports whether name is one component of a path, and neither "." nor "..".
func ValidName(name []byte) bool {
	if len(name) == 0 || len(name) > MaxName || bytes.IndexByte(name, '/') >= 0 || bytes.IndexByte(name, 0) >= 0 {
		return false
	}
	return string(name) != "." && string(name) != ".."
}

// ValidPath reports whether path consists of valid names and is at most MaxPath bytes long.
func ValidPath(path []byte) bool {
	if len(path) > MaxPath {
		return false
	}
	for more := true; more; {
		var name []byte
		if name, path, more = bytes.Cut(path, []byte{'/'}); !ValidName(name) {
			return false
		}
	}
	return true
}

// CutMark is where the beginning of a path was cut.
const CutMark = "..."

// CutPath cuts a path at its beginning, so that it fits in that many bytes, and in MaxLocationPath.
func CutPath(path string, room int) string {
	room = min(room, MaxLocationPath)
	switch {
	case len(path) <= room:
		return path
	case room < len(CutMark):
		return ""
	}
	return CutMark + path[len(path)-room+len(CutMark):]
}

// CheckLocationPath refuses a path that is longer than MaxLocationPath, or has a zero byte.
func CheckLocationPath(t Type, path string) error {
	switch {
	case len(path) > MaxLocationPath:
		return Malformed(t, "a path of %d bytes, limit %d", len(path), MaxLocationPath)
	case strings.Contains(path, "\x00"):
		return Malformed(t, "a path with a NUL")
	}
	return nil
}
