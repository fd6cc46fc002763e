package inode

import (
	"bytes"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
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
	got, err := DecodeXattrs(encode(all, false))
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
	if blob := encode(all[:1], false); len(blob) != 0 {
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

// With the right, attributes that grant privileges are sent, too, but no hashes that the kernel keeps.
func TestPrivilegedAttributes(t *testing.T) {
	var all []disk.Xattr
	names := []string{
		"security.capability", "security.evm", "security.ima", "security.selinux", "system.nfs4_acl",
		"system.posix_acl_access", "system.posix_acl_default", "trusted.a", "user.a",
	}
	for _, name := range names {
		all = append(all, disk.Xattr{Name: name, Value: []byte(name)})
	}
	got, err := DecodeXattrs(encode(all, true))
	if err != nil {
		t.Fatal(err)
	}
	want := []disk.Xattr{all[0], all[3], all[5], all[6], all[7], all[8]}
	if got := slices.Collect(got); !slices.EqualFunc(got, want, sameXattr) {
		t.Errorf("got %q", got)
	}
}

// A label of SELinux counts unless the source has none.
func TestSumOfAttributes(t *testing.T) {
	label, other := disk.Xattr{Name: disk.SELinuxLabel, Value: []byte("a")}, disk.Xattr{Name: "trusted.a"}
	relabeled := disk.Xattr{Name: label.Name, Value: []byte("b")}
	for name, c := range map[string]struct {
		source, target []disk.Xattr
		want           bool
	}{
		"the same":        {[]disk.Xattr{label, other}, []disk.Xattr{other, label}, true},
		"another label":   {[]disk.Xattr{label, other}, []disk.Xattr{relabeled, other}, false},
		"no label here":   {[]disk.Xattr{label, other}, []disk.Xattr{other}, false},
		"no label there":  {[]disk.Xattr{other}, []disk.Xattr{label, other}, true},
		"another, too":    {[]disk.Xattr{other}, []disk.Xattr{label}, false},
		"none":            {nil, nil, true},
		"none, one label": {nil, []disk.Xattr{label}, true},
	} {
		if HasSum(c.target, native.SumXattrs(encode(c.source, true)), true) != c.want {
			t.Errorf("%s: not %t", name, c.want)
		}
	}
}
