package native

import (
	"encoding/binary"
	"hash/crc32"
	"iter"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// xattrHeader is what is in front of each extended attribute in METADATA: the length of its name and of its value.
const xattrHeader = 8

// AppendXattr appends an extended attribute to an entry's attributes, as METADATA carries them.
func AppendXattr(dst []byte, name string, value []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(name)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(append(dst, name...), value...)
}

// SumXattrs returns the sum by which the extended attributes of two files are compared; 0 for none.
func SumXattrs(blob []byte) uint32 { return crc32.Checksum(blob, crc32.MakeTable(crc32.Castagnoli)) }

// Xattrs returns the names and values of extended attributes, which refer to blob. They are decoded one by one, since
// all of them can take many times the memory of the blob. It fails with ErrMalformed for lengths that do not fit; the
// names are not checked.
func Xattrs(blob []byte) (iter.Seq2[[]byte, []byte], error) {
	for rest := blob; len(rest) > 0; {
		var valid bool
		if _, _, rest, valid = cutXattr(rest); !valid {
			return nil, &wire.Error{
				State: Transferring, Message: wire.TypeMetadata, Err: wire.ErrMalformed,
				Detail: "malformed extended attributes from the peer",
			}
		}
	}
	return func(yield func(name, value []byte) bool) {
		for rest := blob; len(rest) > 0; {
			var name, value []byte
			if name, value, rest, _ = cutXattr(rest); !yield(name, value) {
				return
			}
		}
	}, nil
}

// cutXattr returns the first attribute of a blob, and what follows it. It trusts no length.
func cutXattr(blob []byte) (name, value, rest []byte, valid bool) {
	if len(blob) < xattrHeader {
		return nil, nil, nil, false
	}
	nameLength := uint64(binary.BigEndian.Uint32(blob))
	end := nameLength + uint64(binary.BigEndian.Uint32(blob[4:]))
	blob = blob[xattrHeader:]
	if nameLength == 0 || end > uint64(len(blob)) {
		return nil, nil, nil, false
	}
	return blob[:nameLength], blob[nameLength:end], blob[end:], true
}
