package negotiate

import (
	"bytes"
	"math"
)

const entrySize = 60 // without name and link

// MaxEntrySize returns the length of an ENTRIES with one entry whose name and link have these lengths. It must not
// exceed the channel's longest message.
func MaxEntrySize(name, link int) int { return listSize + entrySize + name + link }

// AppendEntries appends an ENTRIES without checking it.
func AppendEntries(dst []byte, entries []Entry) []byte {
	return encodeList(dst, TypeEntries, entries, entryFields)
}

// DecodeEntries appends the entries of an ENTRIES to dst; their names and links share memory with msg, their numbers
// are 0. It checks everything that does not depend on the plan or on other entries. It fails with ErrMalformed and
// returns dst unchanged.
func DecodeEntries(dst []Entry, msg []byte) ([]Entry, error) {
	return decodeList(dst, msg, TypeEntries, entryFields)
}

func entryFields(e *Entry, c codec) codec {
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
	c.verify(func() error { return checkEntry(e) })
	return c
}

// checkEntry checks everything that does not depend on the plan or on other entries.
func checkEntry(e *Entry) error {
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
	return firstError(checkContent(e), checkName(e), checkLink(e))
}

// checkContent checks what only a file may have.
func checkContent(e *Entry) error {
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

func checkName(e *Entry) error {
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

func checkLink(e *Entry) error {
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
