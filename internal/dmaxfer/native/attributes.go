package native

import (
	"encoding/binary"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Extended attributes are sent as one blob: for each the length of its name and of its value, 4 bytes each and
// big-endian, the name, and the value.

const attributeHeader = 8

// errAttributes blames the sender.
var errAttributes = &negotiate.Error{
	State: negotiate.Transferring, Message: negotiate.TypeMetadata, Err: negotiate.ErrMalformed,
	Detail: "malformed extended attributes from the peer",
}

// readAttributes returns the extended attributes of a file, as they are sent; path is for messages.
func readAttributes(file disk.File, path string) ([]byte, error) {
	attributes, err := file.Xattrs()
	if err != nil {
		return nil, disk.NewError(disk.ErrSource, err, "leave xattr out of --preserve",
			"cannot read the extended attributes of %s: %s", path, disk.Reason(err))
	}
	return encodeWithin(attributes, path)
}

// encodeWithin encodes extended attributes that fit into METADATA.
func encodeWithin(attributes []disk.Xattr, path string) ([]byte, error) {
	blob := encodeAttributes(attributes)
	if len(blob) > negotiate.MaxMetadata {
		return nil, disk.NewError(disk.ErrSource, nil, "leave xattr out of --preserve",
			"%s has %d bytes of extended attributes, more than %d", path, len(blob), negotiate.MaxMetadata)
	}
	return blob, nil
}

// encodeAttributes leaves out the attributes that no receiver preserves.
func encodeAttributes(attributes []disk.Xattr) []byte {
	var blob []byte
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

// decodeAttributes trusts no length. Package disk checks the names when it sets them.
func decodeAttributes(blob []byte) ([]disk.Xattr, error) {
	var attributes []disk.Xattr
	for len(blob) > 0 {
		if len(blob) < attributeHeader {
			return nil, errAttributes
		}
		name := uint64(binary.BigEndian.Uint32(blob))
		value := uint64(binary.BigEndian.Uint32(blob[4:]))
		blob = blob[attributeHeader:]
		if name == 0 || name+value > uint64(len(blob)) {
			return nil, errAttributes
		}
		attributes = append(attributes, disk.Xattr{Name: string(blob[:name]), Value: blob[name : name+value]})
		blob = blob[name+value:]
	}
	return attributes, nil
}
