package native

import (
	"encoding/binary"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Extended attributes are sent as one blob: for each the length of its name and of its value, 4 bytes each and
// big-endian, the name, and the value.

const attributeHeader = 8

// errAttributes blames the sender.
var errAttributes = &negotiate.Error{
	State: negotiate.Verifying, Message: negotiate.TypeMetadata, Err: negotiate.ErrMalformed,
	Detail: "malformed extended attributes from the peer",
}

// readAttributes returns the extended attributes of the source, as they are sent.
func readAttributes(f *job.LocalFile) ([]byte, error) {
	attributes, err := f.Source.File().Xattrs()
	if err != nil {
		return nil, job.NewError(job.ErrSource, err, "leave xattr out of --preserve",
			"cannot read the extended attributes of %s: %s", f.Path, disk.Reason(err))
	}
	blob := encodeAttributes(attributes)
	if len(blob) > negotiate.MaxMetadata {
		return nil, job.NewError(job.ErrSource, nil, "leave xattr out of --preserve",
			"%s has %d bytes of extended attributes, more than %d", f.Path, len(blob), negotiate.MaxMetadata)
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
