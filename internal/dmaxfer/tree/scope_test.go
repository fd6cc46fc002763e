package tree_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
)

// Files are in scope by size and time, at the bounds too; directories and symlinks always are.
func TestScope(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a", "bbbb", "dir/cccc", "link -> a", "empty/")
	noon := time.Date(2026, 1, 31, 12, 0, 0, 5, time.UTC)
	for name, at := range map[string]time.Time{"a": noon.Add(-1), "bbbb": noon, "dir/cccc": noon.Add(1)} {
		must(t, os.Chtimes(filepath.Join(root, name), at, at))
	}
	for name, c := range map[string]struct {
		scope tree.Scope
		want  []string
	}{
		"all":         {tree.Scope{}, []string{"a", "bbbb", "dir/", "dir/cccc", "empty/", "link -> a"}},
		"min size":    {tree.Scope{MinSize: 4}, []string{"bbbb", "dir/", "dir/cccc", "empty/", "link -> a"}},
		"max size":    {tree.Scope{MaxSize: 4}, []string{"a", "bbbb", "dir/", "empty/", "link -> a"}},
		"newer":       {tree.Scope{Newer: noon}, []string{"dir/", "dir/cccc", "empty/", "link -> a"}},
		"older":       {tree.Scope{Older: noon}, []string{"a", "dir/", "empty/", "link -> a"}},
		"all of them": {tree.Scope{MinSize: 2, MaxSize: 9, Older: noon}, []string{"dir/", "empty/", "link -> a"}},
	} {
		if got := list(t, root, tree.Options{Scope: c.scope}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A mount point is listed, and nothing below it; a symlink that would be followed there is left out with a warning.
func TestOneFileSystem(t *testing.T) {
	memory := disktest.NewMemory("/tree", "/tree/disk", "/tree/dir")
	memory.Mount("/tree/disk")
	memory.Put("/tree/disk/a", "a")
	memory.Put("/tree/dir/b", "b")
	dir, err := memory.OpenDir("/tree")
	must(t, err)
	must(t, errors.Join(dir.Symlink("disk/a", "to-a"), dir.Symlink("disk", "to-disk"), dir.Symlink("dir/b", "to-b"),
		dir.Close()))
	for _, c := range []struct {
		links   tree.LinkMode
		scope   tree.Scope
		want    []string
		skipped int64
	}{
		{tree.LinksFollow, tree.Scope{},
			[]string{"dir", "dir/b", "disk", "disk/a", "to-a", "to-b", "to-disk", "to-disk/a"}, 0},
		{tree.LinksFollow, tree.Scope{OneFileSystem: true}, []string{"dir", "dir/b", "disk", "to-b"}, 2},
		{tree.LinksCopy, tree.Scope{OneFileSystem: true},
			[]string{"dir", "dir/b", "disk", "to-a", "to-b", "to-disk"}, 0},
	} {
		got, skipped := pathsIn(t, memory, tree.Options{Links: c.links, Scope: c.scope})
		if !slices.Equal(got, c.want) || skipped != c.skipped {
			t.Errorf("%+v: %q, skipped %d; want %q, %d", c.scope, got, skipped, c.want, c.skipped)
		}
	}
}

// pathsIn returns what a walk of /tree finds below it, and how much it has skipped, each with a warning.
func pathsIn(t *testing.T, fs disk.FS, o tree.Options) (paths []string, skipped int64) {
	t.Helper()
	warned := int64(0)
	o.Warn = func(string, string) { warned++ }
	w, err := tree.Open(fs, "/tree", o)
	must(t, err)
	defer w.Close()
	for {
		e, err := w.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, errors.Join(err, e.Err))
		if e.Depth > 0 {
			paths = append(paths, e.Path())
		}
		e.Release()
	}
	if warned != w.Skipped() {
		t.Errorf("%d warnings for %d skipped entries", warned, w.Skipped())
	}
	return paths, w.Skipped()
}
