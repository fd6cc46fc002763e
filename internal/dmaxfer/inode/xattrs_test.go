package inode

import (
	"bytes"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

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
	got, err := DecodeXattrs(encode(all))
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
	if blob := encode(all[:1]); len(blob) != 0 {
		t.Errorf("%d bytes of no attributes", len(blob))
	}
	none, err := DecodeXattrs(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(none); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

func sameXattr(a, b disk.Xattr) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
