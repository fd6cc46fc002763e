package negotiate

import "encoding/binary"

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
	dst = appendType(dst, TypeMetadata)
	for _, number := range [...]uint32{entry, m.Total, m.Offset, uint32(len(m.Part))} {
		dst = binary.BigEndian.AppendUint32(dst, number)
	}
	return append(dst, m.Part...)
}

// DecodeMetadata decodes a METADATA. Its part shares memory with msg. It fails with ErrMalformed.
func DecodeMetadata(msg []byte) (entry uint32, m Metadata, err error) {
	if err := checkType(msg, TypeMetadata, metadataSize); err != nil {
		return 0, Metadata{}, err
	}
	if err := checkTail(msg, TypeMetadata, metadataSize, uint64(binary.BigEndian.Uint32(msg[16:]))); err != nil {
		return 0, Metadata{}, err
	}
	m = Metadata{
		Total:  binary.BigEndian.Uint32(msg[8:]),
		Offset: binary.BigEndian.Uint32(msg[12:]),
		Part:   msg[metadataSize:],
	}
	if err := m.check(); err != nil {
		return 0, Metadata{}, err
	}
	return binary.BigEndian.Uint32(msg[4:]), m, nil
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
