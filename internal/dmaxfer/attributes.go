package dmaxfer

import (
	"context"
	"encoding/binary"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Extended attributes travel as one blob: for each the length of its name and of its value, 4 bytes each and big-endian, the
// name, and the value.

const attributeHeader = 8

// errAttributes blames the sender.
var errAttributes = &negotiate.Error{
	State: negotiate.Verifying, Message: negotiate.TypeMetadata, Err: negotiate.ErrMalformed,
	Detail: "malformed extended attributes from the peer",
}

// attributes are the source's extended ones, if both sides want them.
func (s *sending) attributes() ([]byte, error) {
	if !s.plan.XAttr || s.stream != nil {
		return nil, nil
	}
	attributes, err := s.place.source.File().Xattrs()
	if err != nil {
		return nil, failure(ErrSource, err, "leave xattr out of --preserve",
			"cannot read the extended attributes of %s: %s", s.place.path, disk.Reason(err))
	}
	blob := encodeAttributes(attributes)
	if len(blob) > negotiate.MaxMetadata {
		return nil, failure(ErrSource, nil, "leave xattr out of --preserve",
			"%s has %d bytes of extended attributes, more than %d", s.place.path, len(blob), negotiate.MaxMetadata)
	}
	return blob, nil
}

func (s *sending) sendAttributes(ctx context.Context, blob []byte) error {
	most := negotiate.MaxMetadataPart(s.conn.MaxMessage())
	for offset := 0; offset < len(blob); offset += most {
		message, err := s.session.Metadata(negotiate.Metadata{
			Total: uint32(len(blob)), Offset: uint32(offset), Part: blob[offset:min(offset+most, len(blob))],
		})
		if err != nil {
			return err
		}
		if err := s.send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// encodeAttributes leaves out what no receiver takes.
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

// decodeAttributes trusts no length. The names are checked by whoever sets them.
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
