package negotiate

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
	c := sending(dst, TypeMetadata)
	m.fields(&c, &entry)
	return c.all()
}

// DecodeMetadata decodes a METADATA. Its part shares memory with msg. It fails with ErrMalformed.
func DecodeMetadata(msg []byte) (entry uint32, m Metadata, err error) {
	c := receiving(msg, TypeMetadata)
	m.fields(&c, &entry)
	return entry, m, c.end()
}

func (m *Metadata) fields(c *codec, entry *uint32) {
	integer(c, entry)
	integer(c, &m.Total)
	integer(c, &m.Offset)
	part := length[uint32](c, len(m.Part))
	c.octets(&m.Part, part)
	c.verify(m.check)
}

func (m Metadata) check() error {
	switch {
	case m.Total > MaxMetadata:
		return malformed(TypeMetadata, "%d bytes of attributes, limit %d", m.Total, MaxMetadata)
	case len(m.Part) == 0:
		return malformed(TypeMetadata, "an empty fragment")
	case uint64(m.Offset)+uint64(len(m.Part)) > uint64(m.Total):
		return malformed(TypeMetadata, "%d bytes at %d of %d", len(m.Part), m.Offset, m.Total)
	}
	return nil
}
