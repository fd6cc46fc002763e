package role

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Extended attributes are sent as one blob: for each the length of its name and of its value, 4 bytes each and
// big-endian, the name, and the value.

const attributeHeader = 8

// errAttributes blames the sender.
var errAttributes = &wire.Error{
	State: native.Transferring, Message: wire.TypeMetadata, Err: wire.ErrMalformed,
	Detail: "malformed extended attributes from the peer",
}

// ReadAttributes returns the extended attributes of a file, as they are sent; path is for messages.
func ReadAttributes(file disk.File, path string) ([]byte, error) {
	attributes, err := file.Xattrs()
	if err != nil {
		return nil, disk.NewError(disk.ErrSource, err, "leave xattr out of --preserve",
			"cannot read the extended attributes of %s: %s", path, disk.Reason(err))
	}
	return EncodeWithin(attributes, path)
}

// EncodeWithin encodes extended attributes that fit into METADATA.
func EncodeWithin(attributes []disk.Xattr, path string) ([]byte, error) {
	blob := EncodeAttributes(attributes)
	if len(blob) > native.MaxMetadata {
		return nil, disk.NewError(disk.ErrSource, nil, "leave xattr out of --preserve",
			"%s has %d bytes of extended attributes, more than %d", path, len(blob), native.MaxMetadata)
	}
	return blob, nil
}

// EncodeAttributes sorts the attributes by name, and leaves out those that no receiver preserves.
func EncodeAttributes(attributes []disk.Xattr) []byte {
	var blob []byte
	slices.SortFunc(attributes, func(a, b disk.Xattr) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range attributes {
		if !disk.MayPreserve(a.Name) {
			continue
		}
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(a.Name)))
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(a.Value)))
		blob = append(append(blob, a.Name...), a.Value...)
	}
	return blob
}

// SumAttributes returns the sum by which the attributes of two files are compared; 0 for none.
func SumAttributes(blob []byte) uint32 { return crc32.Checksum(blob, castagnoli()) }

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// DecodeAttributes checks the lengths, and returns the attributes. They are decoded one by one when they are set, since
// all of them can take many times the memory of the blob. Package disk checks the names then.
func DecodeAttributes(blob []byte) (iter.Seq[disk.Xattr], error) {
	for rest := blob; len(rest) > 0; {
		var valid bool
		if _, _, rest, valid = cutAttribute(rest); !valid {
			return nil, errAttributes
		}
	}
	return func(yield func(disk.Xattr) bool) {
		for rest := blob; len(rest) > 0; {
			var name, value []byte
			if name, value, rest, _ = cutAttribute(rest); !yield(disk.Xattr{Name: string(name), Value: value}) {
				return
			}
		}
	}, nil
}

// cutAttribute returns the first attribute of a blob, and what follows it. It trusts no length.
func cutAttribute(blob []byte) (name, value, rest []byte, valid bool) {
	if len(blob) < attributeHeader {
		return nil, nil, nil, false
	}
	nameLength := uint64(binary.BigEndian.Uint32(blob))
	end := nameLength + uint64(binary.BigEndian.Uint32(blob[4:]))
	blob = blob[attributeHeader:]
	if nameLength == 0 || end > uint64(len(blob)) {
		return nil, nil, nil, false
	}
	return blob[:nameLength], blob[nameLength:end], blob[end:], true
}
