package native

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// lengths returns an extended attribute with these lengths, true or not.
func lengths(nameLength, valueLength uint32, bytes string) []byte {
	blob := binary.BigEndian.AppendUint32(nil, nameLength)
	return append(binary.BigEndian.AppendUint32(blob, valueLength), bytes...)
}

// No length that a peer states is trusted.
func TestMalformedXattrs(t *testing.T) {
	good := lengths(6, 1, "user.av")
	for name, blob := range map[string][]byte{
		"a short header":        good[:xattrHeader-1],
		"no name":               lengths(0, 1, "v"),
		"a name that is cut":    lengths(6, 0, "user."),
		"a value that is cut":   lengths(6, 2, "user.av"),
		"lengths that wrap":     lengths(1<<32-1, 1<<32-1, "user.av"),
		"something behind":      append(slices.Clone(good), 0),
		"a second that is cut":  append(slices.Clone(good), good[:len(good)-1]...),
		"a header and no bytes": lengths(1, 0, ""),
	} {
		if _, err := Xattrs(blob); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
