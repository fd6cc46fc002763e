package native

import (
	"bytes"
	"math"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const entrySize = 60 // without name and link

// MaxEntrySize returns the length of an ENTRIES with one entry whose name and link have these lengths. It must not
// exceed the channel's longest message.
func MaxEntrySize(name, link int) int { return wire.ListSize + entrySize + name + link }

func entryFields(e *wire.Entry, c wire.Codec) wire.Codec {
	wire.Integer(&c, &e.Kind)
	wire.Integer(&c, &e.Flags)
	c.Depth(&e.Depth)
	wire.Integer(&c, &e.Mode)
	wire.Integer(&c, &e.MTime.Sec)
	wire.Integer(&c, &e.MTime.Nsec)
	wire.Integer(&c, &e.UID)
	wire.Integer(&c, &e.GID)
	wire.Integer(&c, &e.Xattrs)
	wire.Integer(&c, &e.Size)
	c.Array(e.Identity[:])
	name := wire.Length[uint16](&c, len(e.Name))
	link := wire.Length[uint16](&c, len(e.Link))
	c.Octets(&e.Name, name)
	c.Octets(&e.Link, link)
	c.Verify(func() error { return checkEntry(e) })
	return c
}

// checkEntry checks everything that does not depend on the plan or on other entries.
func checkEntry(e *wire.Entry) error {
	switch {
	case !e.Kind.Known(), e.Kind == wire.EntrySpecial:
		return wire.Malformed(wire.TypeEntries, "an entry of unknown %s", e.Kind)
	case e.Flags&^wire.KnownEntryFlags != 0:
		return wire.Malformed(wire.TypeEntries, "unknown flags %#x of an entry", uint8(e.Flags&^wire.KnownEntryFlags))
	case e.Mode > wire.MaxMode:
		return wire.Malformed(wire.TypeEntries, "mode %#o, limit %#o", e.Mode, wire.MaxMode)
	case e.MTime.Nsec >= 1e9:
		return wire.Malformed(wire.TypeEntries, "%d nanoseconds in a second", e.MTime.Nsec)
	case e.UID == math.MaxUint32 || e.GID == math.MaxUint32: // chown(2) would not change the owner
		return wire.Malformed(wire.TypeEntries, "uid %d and gid %d, limit %d", e.UID, e.GID, uint32(math.MaxUint32-1))
	}
	return wire.FirstError(checkContent(e), checkName(e), checkLink(e))
}

// checkContent checks what only a file may have.
func checkContent(e *wire.Entry) error {
	switch {
	case e.Size > wire.MaxSize:
		return wire.Malformed(wire.TypeEntries, "a file of %d bytes, limit %d", e.Size, uint64(wire.MaxSize))
	case e.Flags.Has(wire.EntrySizeUnknown) && (e.Size != 0 || !e.Flags.Has(wire.EntryChunked)):
		return wire.Malformed(wire.TypeEntries, "flags %#x of a file of unknown size and %d bytes", uint8(e.Flags),
			e.Size)
	case e.Kind != wire.EntryFile && (e.Size != 0 || e.Identity != [16]byte{} || e.Flags&^wire.EntryHasMetadata != 0):
		return wire.Malformed(wire.TypeEntries, "a %s with the size, identity or flags of a file", e.Kind)
	case e.Xattrs != 0 && (e.Kind != wire.EntryFile || !e.Flags.Has(wire.EntryHasMetadata)):
		return wire.Malformed(wire.TypeEntries, "a sum of extended attributes of a %s with flags %#x", e.Kind,
			uint8(e.Flags))
	case e.Kind == wire.EntryHardLink && e.Flags.Has(wire.EntryHasMetadata):
		return wire.Malformed(wire.TypeEntries, "a hard link with metadata of its own")
	}
	return nil
}

func checkName(e *wire.Entry) error {
	switch {
	case e.Depth > wire.MaxLevel:
		return wire.Malformed(wire.TypeEntries, "an entry at depth %d, limit %d", e.Depth, wire.MaxLevel)
	case e.Depth == 0 && len(e.Name) != 0:
		return wire.Malformed(wire.TypeEntries, "a root with a name of %d bytes", len(e.Name))
	case e.Depth == 0 && e.Kind != wire.EntryFile && e.Kind != wire.EntryDirectory:
		return wire.Malformed(wire.TypeEntries, "a %s as the root", e.Kind)
	case e.Depth > 0 && !wire.ValidName(e.Name):
		return wire.Malformed(wire.TypeEntries, "a name of %d bytes that no file can have", len(e.Name))
	}
	return nil
}

func checkLink(e *wire.Entry) error {
	valid := false
	switch e.Kind {
	case wire.EntrySymlink:
		valid = 0 < len(e.Link) && len(e.Link) <= wire.MaxLink && bytes.IndexByte(e.Link, 0) < 0
	case wire.EntryHardLink:
		valid = wire.ValidPath(e.Link)
	default:
		valid = len(e.Link) == 0
	}
	if !valid {
		return wire.Malformed(wire.TypeEntries, "a %s with a link of %d bytes that it cannot have", e.Kind, len(e.Link))
	}
	return nil
}

const metadataSize = 20 // without the fragment

// Metadata is a fragment of an entry's encoded extended attributes. Fragments are sent in order.
type Metadata struct {
	Total  uint32 // bytes of all fragments, 1 to MaxMetadata; the same in each
	Offset uint32 // of the fragment in bytes
	Part   []byte // never empty
}

// MaxMetadataPart returns the largest fragment in a message of maxMessage bytes.
func MaxMetadataPart(maxMessage int) int { return max(0, maxMessage-metadataSize) }

// AppendMetadata appends a METADATA.
func AppendMetadata(dst []byte, entry uint32, m Metadata) []byte {
	c := wire.Sending(dst, wire.TypeMetadata)
	m.fields(&c, &entry)
	return c.Bytes()
}

// DecodeMetadata decodes a METADATA. Its part shares memory with msg. It fails with ErrMalformed.
func DecodeMetadata(msg []byte) (entry uint32, m Metadata, err error) {
	c := wire.Receiving(msg, wire.TypeMetadata)
	m.fields(&c, &entry)
	return entry, m, c.End()
}

func (m *Metadata) fields(c *wire.Codec, entry *uint32) {
	wire.Integer(c, entry)
	wire.Integer(c, &m.Total)
	wire.Integer(c, &m.Offset)
	part := wire.Length[uint32](c, len(m.Part))
	c.Octets(&m.Part, part)
	c.Verify(m.check)
}

func (m Metadata) check() error {
	switch {
	case m.Total > MaxMetadata:
		return wire.Malformed(wire.TypeMetadata, "%d bytes of attributes, limit %d", m.Total, MaxMetadata)
	case len(m.Part) == 0:
		return wire.Malformed(wire.TypeMetadata, "an empty fragment")
	case uint64(m.Offset)+uint64(len(m.Part)) > uint64(m.Total):
		return wire.Malformed(wire.TypeMetadata, "%d bytes at %d of %d", len(m.Part), m.Offset, m.Total)
	}
	return nil
}
