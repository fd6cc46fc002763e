package native

import (
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// setManyAttributes gives a file or directory more attributes than METADATA carries.
func setManyAttributes(t *testing.T, memory *disktest.Memory, path string) {
	t.Helper()
	change(t, memory, path, func(f attributed) error {
		return f.SetXattr(disk.Xattr{Name: "user.many", Value: make([]byte, protocol.MaxMetadata)})
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
	if !abortedWith(m.receiver.err, wire.AbortSource) {
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
