package role

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// encoded returns one attribute with these lengths, true or not.
func encoded(nameLength, valueLength uint32, bytes string) []byte {
	blob := binary.BigEndian.AppendUint32(nil, nameLength)
	return append(binary.BigEndian.AppendUint32(blob, valueLength), bytes...)
}

// Attributes are decoded as they were encoded, sorted by name and without those that grant privileges.
func TestAttributesSurvive(t *testing.T) {
	all := []disk.Xattr{
		{Name: "security.capability", Value: []byte("all of them")},
		{Name: "user.empty"},
		{Name: "user.value", Value: []byte("value\x00\xff")},
		{Name: "trusted.overlay.opaque", Value: []byte("y")},
		{Name: "user.long", Value: bytes.Repeat([]byte("long"), 10_000)},
	}
	want := []disk.Xattr{all[1], all[4], all[2]}
	got, err := DecodeAttributes(EncodeAttributes(all))
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(got); !slices.EqualFunc(got, want, sameXattr) {
		t.Errorf("got %q", got)
	}
	for first := range got {
		if first.Name != "user.empty" {
			t.Errorf("the first one is %q", first.Name)
		}
		break
	}
	if blob := EncodeAttributes(all[:1]); len(blob) != 0 {
		t.Errorf("%d bytes of no attributes", len(blob))
	}
	none, err := DecodeAttributes(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(none); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

func sameXattr(a, b disk.Xattr) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }

// No length that a peer states is trusted.
func TestMalformedAttributes(t *testing.T) {
	good := encoded(6, 1, "user.av")
	for name, blob := range map[string][]byte{
		"a short header":        good[:attributeHeader-1],
		"no name":               encoded(0, 1, "v"),
		"a name that is cut":    encoded(6, 0, "user."),
		"a value that is cut":   encoded(6, 2, "user.av"),
		"lengths that wrap":     encoded(1<<32-1, 1<<32-1, "user.av"),
		"something behind":      append(slices.Clone(good), 0),
		"a second that is cut":  append(slices.Clone(good), good[:len(good)-1]...),
		"a header and no bytes": encoded(1, 0, ""),
	} {
		if _, err := DecodeAttributes(blob); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
