package inode

import (
	"iter"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// ReadXattrs returns the extended attributes of a file, as they are sent; path is for messages. All errors are a
// *disk.Error.
func ReadXattrs(file disk.File, path string) ([]byte, error) {
	attributes, err := file.Xattrs()
	if err != nil {
		return nil, disk.NewError(disk.ErrSource, err, "leave xattr out of --preserve",
			"cannot read the extended attributes of %s: %s", path, disk.Reason(err))
	}
	return EncodeXattrs(attributes, path)
}

// EncodeXattrs returns extended attributes as they are sent, or a *disk.Error if they do not fit into METADATA; path is
// for messages. It sorts the attributes.
func EncodeXattrs(attributes []disk.Xattr, path string) ([]byte, error) {
	blob := encode(attributes)
	if len(blob) > native.MaxMetadata {
		return nil, disk.NewError(disk.ErrSource, nil, "leave xattr out of --preserve",
			"%s has %d bytes of extended attributes, more than %d", path, len(blob), native.MaxMetadata)
	}
	return blob, nil
}

// SumXattrs returns the sum by which the extended attributes of two files are compared. It sorts the attributes.
func SumXattrs(attributes []disk.Xattr) uint32 { return native.SumXattrs(encode(attributes)) }

// encode sorts the attributes by name, and leaves out those that no receiver preserves.
func encode(attributes []disk.Xattr) []byte {
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

// DecodeXattrs returns the extended attributes of a peer's entry. It fails with a *wire.Error if they are malformed.
// Package disk checks the names when they are set.
func DecodeXattrs(blob []byte) (iter.Seq[disk.Xattr], error) {
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
