package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
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
	got, err := decodeAttributes(encodeAttributes(all))
	must(t, err)
	if got := slices.Collect(got); !slices.EqualFunc(got, want, sameXattr) {
		t.Errorf("got %q", got)
	}
	for first := range got {
		if first.Name != "user.empty" {
			t.Errorf("the first one is %q", first.Name)
		}
		break
	}
	if blob := encodeAttributes(all[:1]); len(blob) != 0 {
		t.Errorf("%d bytes of no attributes", len(blob))
	}
	none, err := decodeAttributes(nil)
	must(t, err)
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
		if _, err := decodeAttributes(blob); !errors.Is(err, negotiate.ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// setManyAttributes gives a file or directory more attributes than METADATA carries.
func setManyAttributes(t *testing.T, memory *disktest.Memory, path string) {
	t.Helper()
	change(t, memory, path, func(f attributed) error {
		return f.SetXattr(disk.Xattr{Name: "user.many", Value: make([]byte, negotiate.MaxMetadata)})
	})
}

// Entries with more attributes than METADATA carries fail alone, a directory with everything in it, and a file with its
// other names, whatever the receiver has in their place.
func TestTooManyAttributes(t *testing.T) {
	from := newTreeSource(t)
	from.Link("/src/a/b/deep", "/src/z/deep")
	for _, path := range []string{"/src/small", "/src/a"} {
		setManyAttributes(t, from, path)
	}
	for _, exists := range []bool{false, true} {
		to := newTarget()
		if exists {
			to = disktest.NewMemory("/", "/dst", "/dst/t", "/dst/t/a", "/dst/t/a/b")
			to.Put("/dst/t/small", "old")
			to.Put("/dst/t/a/b/deep", "old")
		}
		m := newLinkMeeting(t, from, to)
		m.receiver.search.Overwrite = exists
		m.sender.config.Xattrs, m.receiver.config.Xattrs = true, true
		m.run()
		mustBe(t, m.sender.err, job.ErrSomeFailed)
		mustBe(t, m.receiver.err, job.ErrSomeFailed)
		m.mustAgree()
		var failed []string
		for _, f := range m.sender.summary.Tree.Failures {
			failed = append(failed, f.Path)
		}
		if want := []string{"a", "small", "z/deep", "z/same"}; !slices.Equal(failed, want) {
			t.Errorf("failed: %q, want %q", failed, want)
		}
		for _, path := range []string{"/dst/t/z/same", "/dst/t/z/deep"} {
			if _, found := to.Get(path); found {
				t.Errorf("%s, which is another name of a file that failed, has arrived", path)
			}
		}
		if text, _ := to.Get("/dst/t/z/huge"); len(text) != 40*4096 {
			t.Errorf("another file has %d bytes", len(text))
		}
	}
}

// A directory that cannot be announced itself ends the transfer on both sides.
func TestRootWithTooManyAttributes(t *testing.T) {
	from := newTreeSource(t)
	setManyAttributes(t, from, "/src")
	m := newMeeting(t, from, newTarget())
	m.sender.config.Xattrs, m.receiver.config.Xattrs = true, true
	m.run()
	mustBe(t, m.sender.err, disk.ErrSource)
	if !abortedWith(m.receiver.err, negotiate.AbortTarget) {
		t.Errorf("the receiver ended with %v", m.receiver.err)
	}
}

// An attribute that the target does not store fails its entry only.
func TestAttributesThatCannotBeSet(t *testing.T) {
	from := newTreeSource(t)
	for _, path := range []string{"/src/small", "/src/z/huge", "/src/a/b"} {
		change(t, from, path, func(f attributed) error {
			return f.SetXattr(disk.Xattr{Name: "user.a", Value: []byte("value")})
		})
	}
	m := newMeeting(t, from, newTarget())
	m.sender.config.Xattrs, m.receiver.config.Xattrs = true, true
	m.onReceiver(func(_ int, op, _ string) *disktest.Fault {
		if op == "setxattr" {
			return &disktest.Fault{Err: errors.ErrUnsupported}
		}
		return nil
	})
	m.mustFailInPart("a/b", "small", "z/huge", "z/same")
}
