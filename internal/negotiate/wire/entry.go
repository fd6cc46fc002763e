package wire

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
func (k EntryKind) String() string { return NameOf(entryKindNames, k, "kind") }

// EntryFlags are properties of an entry.
type EntryFlags uint8

// The flags.
const (
	EntrySizeUnknown EntryFlags = 1 << 0 // a stream, whose size is known at its end
	EntryHasMetadata EntryFlags = 1 << 1 // extended attributes follow in METADATA
	EntryChunked     EntryFlags = 1 << 2 // the file comes in CHUNKS; otherwise it comes in a PACK

	KnownEntryFlags = EntryChunked<<1 - 1
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
