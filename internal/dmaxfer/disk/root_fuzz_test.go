package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

// modelRoot is a Root as a map: its directories, files and symlinks by their paths without symlinks.
type modelRoot struct {
	links map[string]string // text of a symlink by its path
	files []string
	dirs  []string
}

// resolve returns the path without symlinks that a path leads to, "." for the root.
func (m *modelRoot) resolve(path string) (string, error) {
	at, todo, links := []string{}, strings.Split(path, "/"), 0
	switch {
	case path == "":
		return "", unix.ENOENT
	case todo[0] == "":
		return "", disk.ErrOutside
	}
	for i := 0; i < len(todo); i++ {
		if slices.Contains(m.files, strings.Join(at, "/")) {
			return "", unix.ENOTDIR
		}
		switch name := todo[i]; name {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return "", disk.ErrOutside
			}
			at = at[:len(at)-1]
			continue
		default:
			at = append(at[:len(at):len(at)], name)
			if len(name) > 255 {
				return "", unix.ENAMETOOLONG
			}
		}
		here := strings.Join(at, "/")
		text, isLink := m.links[here]
		switch {
		case isLink && links == 40:
			return "", unix.ELOOP
		case isLink && strings.HasPrefix(text, "/"):
			return "", disk.ErrOutside
		case isLink:
			links++
			todo = append(strings.Split(text, "/"), todo[i+1:]...)
			at, i = at[:len(at)-1], -1
		case !slices.Contains(m.files, here) && !slices.Contains(m.dirs, here):
			return "", unix.ENOENT
		}
	}
	return strings.Join(append([]string{"."}, at...), "/"), nil
}

// FuzzRoot compares where paths lead with a model: with openat2(2), component by component, and in memory. first and
// second are the texts of symlinks.
func FuzzRoot(f *testing.F) {
	for _, path := range hostilePaths {
		f.Add("../b/second", "../..", path)
		f.Add("..", "first", strings.ReplaceAll(path, "in", "a/first"))
	}
	for _, path := range []string{"", "a/first/second", "a/first/file", "b/second/b/file", "a/first/../../file/.."} {
		f.Add("../b", "../a/first", path)
		f.Add("second/", "/", path)
		f.Add("loop/x", "..//.", path)
	}
	parent, err := os.MkdirTemp("/dev/shm", "dma-copy-fuzz-")
	if err != nil {
		parent = f.TempDir()
	}
	f.Cleanup(func() { _ = os.RemoveAll(parent) })
	f.Fuzz(func(t *testing.T, first, second, path string) {
		if strings.Contains(first+second+path, "\x00") || first == "" || second == "" || len(first)+len(second) > 4000 {
			t.Skip()
		}
		m := &modelRoot{
			links: map[string]string{"a/first": first, "b/second": second},
			files: []string{"file", "a/file", "b/file"}, dirs: []string{"a", "b"},
		}
		want, wantErr := m.resolve(path)
		onSystem, inMemory := m.make(t, onDisk(t, mustTemp(t, parent))), m.makeInMemory(t)
		mustResolve(t, onSystem, path, want, wantErr)
		mustResolve(t, inMemory, path, want, wantErr)
		disk.OldKernel(t)
		mustResolve(t, onSystem, path, want, wantErr)
	})
}

func mustTemp(t *testing.T, parent string) string {
	folder, err := os.MkdirTemp(parent, "")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(folder)) })
	return folder
}

// make creates what the model says in a new directory "root", and returns its Root.
func (m *modelRoot) make(t *testing.T, at testDir) *disk.Root {
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	defer dir.Close()
	mustMakeDirs(t, dir, "root")
	in, err := dir.OpenBeneath("root")
	must(t, err)
	defer in.Close()
	mustMakeDirs(t, in, m.dirs...)
	for _, name := range m.files {
		at.put("root/"+name, "x")
	}
	for name, text := range m.links {
		at.link(text, "root/"+name)
	}
	root, err := disk.OpenRoot(at.fs, at.path("root"))
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	return root
}

func (m *modelRoot) makeInMemory(t *testing.T) *disk.Root {
	return m.make(t, memoryPlace(disktest.NewMemory("/there")))
}

// mustResolve checks that Stat, Open and OpenDir lead to the path that the model says, or fail in the same way.
func mustResolve(t *testing.T, root *disk.Root, path, want string, wantErr error) {
	t.Helper()
	info, err := root.Stat(path)
	if len(path) >= unix.PathMax && errors.Is(err, unix.ENAMETOOLONG) {
		return
	}
	if wantErr != nil {
		_, dirErr := root.OpenDir(path)
		_, openErr := root.Open(path)
		for _, err := range []error{err, dirErr, openErr} {
			if !errors.Is(err, wantErr) {
				t.Fatalf("%q: %v, not %v", path, err, wantErr)
			}
		}
		return
	}
	must(t, err)
	wanted, err := root.Stat(filepath.Clean(want))
	must(t, err)
	if !info.SameFile(wanted.Identity) {
		t.Fatalf("%q is %+v, and %s is %+v", path, info, want, wanted)
	}
	dir, err := root.OpenDir(path)
	if (err == nil) != wanted.Mode.IsDir() {
		t.Fatalf("%q is opened as a directory: %v", path, err)
	}
	if err != nil {
		return
	}
	defer dir.Close()
	if found, err := dir.Info(); err != nil || !found.SameFile(wanted.Identity) {
		t.Fatalf("%q is %+v as a directory, %v", path, found, err)
	}
}
