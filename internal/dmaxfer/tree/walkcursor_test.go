package tree_test

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
)

// A cursor passes no entry that comes after the path, and keeps directories of entries open that were not taken.
func TestWalkCursor(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/f", "a.b", "c")
	before := openDescriptors(t)
	c, err := tree.OpenCursor(disk.OS, root, tree.Options{})
	must(t, err)
	for _, step := range []struct{ upTo, want string }{
		{"", ""}, {"A", "none"}, {"a", "a"}, {"a/f", "a/f"}, {"a/g", "none"}, {"b", "a.b"}, {"b", "none"},
	} {
		entry, err := c.UpTo(step.upTo)
		must(t, err)
		got := "none"
		if entry != nil {
			got = entry.Path()
			entry.Release()
		}
		if got != step.want {
			t.Errorf("up to %q there is %q, want %q", step.upTo, got, step.want)
		}
	}
	c.Close()
	if open := openDescriptors(t) - before; open != 0 {
		t.Errorf("%d descriptors remain", open)
	}
	c, err = tree.OpenCursor(disk.OS, root, tree.Options{})
	must(t, err)
	for range 5 {
		entry, err := c.Next()
		must(t, err)
		entry.Release()
	}
	for range 2 {
		if entry, err := c.Next(); entry != nil || err != nil {
			t.Errorf("after the last entry there is %v, %v", entry, err)
		}
	}
	c.Close()
}

// A cursor fails as its walk does, when it looks for the entry after the one that it would return.
func TestWalkCursorFails(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a", "b")
	before := openDescriptors(t)
	c, err := tree.OpenCursor(disk.OS, root, tree.Options{MaxEntries: 2})
	must(t, err)
	entry, err := c.Next()
	must(t, err)
	entry.Release()
	if _, err := c.UpTo("b"); !errors.Is(err, tree.ErrTooManyEntries) {
		t.Errorf("beyond the limit: %v", err)
	}
	c.Close()
	if open := openDescriptors(t) - before; open != 0 {
		t.Errorf("%d descriptors remain", open)
	}
}
