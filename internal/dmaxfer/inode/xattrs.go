package inode

import (
	"iter"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// ReadXattrs returns the extended attributes of a file, as they are sent; path is for messages. privileged is as for
// disk.MayPreserve. All errors are a *disk.Error.
func ReadXattrs(file disk.File, path string, privileged bool) ([]byte, error) {
	attributes, err := file.Xattrs()
	if err != nil {
		return nil, disk.NewError(disk.ErrSource, err, "leave xattr out of --preserve",
			"cannot read the extended attributes of %s: %s", path, disk.Reason(err))
	}
	return EncodeXattrs(attributes, path, privileged)
}

// EncodeXattrs returns extended attributes as they are sent, or a *disk.Error if they do not fit into METADATA; path is
// for messages. It sorts the attributes.
func EncodeXattrs(attributes []disk.Xattr, path string, privileged bool) ([]byte, error) {
	blob := encode(attributes, privileged)
	if len(blob) > native.MaxMetadata {
		return nil, disk.NewError(disk.ErrSource, nil, "leave xattr out of --preserve",
			"%s has %d bytes of extended attributes, more than %d", path, len(blob), native.MaxMetadata)
	}
	return blob, nil
}

// HasSum reports whether these extended attributes of a file, as they are sent, have the sum. A label of SELinux that
// the kernel has given to a file of a source without labels does not count. It sorts the attributes.
func HasSum(attributes []disk.Xattr, sum uint32, privileged bool) bool {
	if native.SumXattrs(encode(attributes, privileged)) == sum {
		return true
	}
	isLabel := func(a disk.Xattr) bool { return a.Name == disk.SELinuxLabel }
	return slices.ContainsFunc(attributes, isLabel) &&
		native.SumXattrs(encode(slices.DeleteFunc(slices.Clone(attributes), isLabel), privileged)) == sum
}

// encode sorts the attributes by name, and leaves out those that no receiver preserves.
func encode(attributes []disk.Xattr, privileged bool) []byte {
	var blob []byte
	slices.SortFunc(attributes, func(a, b disk.Xattr) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range attributes {
		if !disk.MayPreserve(a.Name, privileged) {
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
