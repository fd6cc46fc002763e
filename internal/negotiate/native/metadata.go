package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

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
