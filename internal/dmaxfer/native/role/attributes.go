package role

import (
	"iter"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

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
		blob = native.AppendXattr(blob, a.Name, a.Value)
	}
	return blob
}

// DecodeAttributes returns the extended attributes of a peer's entry. Package disk checks the names when they are set.
func DecodeAttributes(blob []byte) (iter.Seq[disk.Xattr], error) {
	attributes, err := native.Xattrs(blob)
	if err != nil {
		return nil, err
	}
	return func(yield func(disk.Xattr) bool) {
		for name, value := range attributes {
			if !yield(disk.Xattr{Name: string(name), Value: value}) {
				return
			}
		}
	}, nil
}
