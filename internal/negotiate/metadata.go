package negotiate

import "encoding/binary"

// MaxMetadata is the size of the largest blob of extended attributes, in bytes.
const MaxMetadata = 256 << 10

const metadataSize = 16 // without the fragment

// Metadata is a fragment of the blob that holds the file's extended attributes. The fragments come in order.
type Metadata struct {
	Total  uint32 // bytes of the blob, 1 to MaxMetadata; the same in all fragments
	Offset uint32 // of the fragment in the blob
	Part   []byte // never empty
}

// MaxMetadataPart is how many bytes of the blob a message of maxMessage bytes holds.
func MaxMetadataPart(maxMessage int) int { return max(0, maxMessage-metadataSize) }

// AppendMetadata appends a METADATA.
func AppendMetadata(dst []byte, m Metadata) []byte {
	dst = appendType(dst, TypeMetadata)
	for _, number := range [...]uint32{m.Total, m.Offset, uint32(len(m.Part))} {
		dst = binary.BigEndian.AppendUint32(dst, number)
	}
	return append(dst, m.Part...)
}

// DecodeMetadata reads a METADATA; its part shares memory with msg. ErrMalformed.
func DecodeMetadata(msg []byte) (Metadata, error) {
	if err := checkType(msg, TypeMetadata, metadataSize); err != nil {
		return Metadata{}, err
	}
	if err := checkTail(msg, TypeMetadata, metadataSize, uint64(binary.BigEndian.Uint32(msg[12:]))); err != nil {
		return Metadata{}, err
	}
	m := Metadata{
		Total:  binary.BigEndian.Uint32(msg[4:]),
		Offset: binary.BigEndian.Uint32(msg[8:]),
		Part:   msg[metadataSize:],
	}
	if err := m.check(); err != nil {
		return Metadata{}, err
	}
	return m, nil
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
