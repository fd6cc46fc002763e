package tree_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// TestWalkFindsWhatIsThere compares walks of random trees with filepath.WalkDir.
func TestWalkFindsWhatIsThere(t *testing.T) {
	parent := inMemory(t)
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp(parent, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		grow(t, root)
		paths, want := modelOf(t, root)
		for _, only := range [][]string{nil, rapid.Permutation(paths).Draw(t, "only")} {
			w, err := tree.Open(disk.OS, root, tree.Options{Only: only})
			if err != nil {
				t.Fatal(err)
			}
			w.Restrict(tree.Limits{
				OpenFolders: rapid.IntRange(1, 4).Draw(t, "open"), Names: rapid.IntRange(1, 200).Draw(t, "names"),
			})
			if got := signatures(t, w); !slices.Equal(got, want) {
				t.Errorf("of %q found\n%q\nwant\n%q", only, got, want)
			}
			w.Close()
		}
	})
}

// grow fills a directory with random entries.
func grow(t *rapid.T, root string) {
	name := rapid.StringOfN(rapid.SampledFrom([]rune("ab.-\x01\n\u00e9\U0010ffff")), 1, 3, -1).Filter(
		func(name string) bool { return name != "." && name != ".." })
	directories := []string{root}
	for range rapid.IntRange(0, 25).Draw(t, "entries") {
		path := rapid.SampledFrom(directories).Draw(t, "in") + "/" + name.Draw(t, "name")
		switch rapid.SampledFrom([]string{"directory", "file", "symlink", "bytes"}).Draw(t, "kind") {
		case "directory":
			if os.Mkdir(path, fs.FileMode(rapid.IntRange(0o500, 0o777).Draw(t, "mode"))) == nil {
				directories = append(directories, path)
			}
		case "file":
			if unix.Access(path, unix.F_OK) != nil {
				_ = os.WriteFile(path, []byte(path), 0o600) // may be there as a dangling symlink
			}
		case "symlink":
			_ = os.Symlink(rapid.SampledFrom([]string{"..", "a", "/", "\xff"}).Draw(t, "to"), path) // may be there
		case "bytes":
			_ = os.WriteFile(path+"\xff\xfe", nil, 0o400) // may be there
		}
	}
}

// signatures returns a line for each entry.
func signatures(t *rapid.T, w *tree.Walk) (lines []string) {
	for {
		e, err := w.Next()
		if err != nil {
			return lines
		}
		if e.Err != nil {
			t.Fatalf("%s: %v", e.Path(), e.Err)
		}
		size := e.Info.Size
		if e.Kind != wire.EntryFile {
			size = 0
		}
		lines = append(lines, signature(e.Path(), e.Info.Mode, e.Info.Inode, size, e.Link))
		e.Release()
	}
}

func signature(path string, mode fs.FileMode, inode uint64, size int64, link string) string {
	return fmt.Sprintf("%s %v %d %d %s", path, mode, inode, size, link)
}

// modelOf returns the paths and the same lines by means of the standard library.
func modelOf(t *rapid.T, root string) (paths, lines []string) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size, link := info.Size(), ""
		if !info.Mode().IsRegular() {
			size = 0
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(path); err != nil {
				return err
			}
		}
		path = strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
		var stat unix.Stat_t
		if err := unix.Lstat(filepath.Join(root, path), &stat); err != nil {
			return err
		}
		paths = append(paths, path)
		lines = append(lines, signature(path, info.Mode(), stat.Ino, size, link))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths, lines
}

// TestWalkAgreesWithFind compares the sources of the Go distribution with what find(1) prints.
func TestWalkAgreesWithFind(t *testing.T) {
	find, err := exec.LookPath("find")
	if err != nil {
		t.Skip(err)
	}
	root := goSources(t)
	out, err := exec.Command(find, root, "-printf", `%P %m %U %G %T@ %l\0`).Output()
	must(t, err)
	want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	w := openLimited(t, root, tree.Options{}, tree.Limits{})
	var got []string
	for _, e := range walk(t, w) {
		got = append(got, fmt.Sprintf("%s %o %d %d %d.%09d0 %s", e.Path(), e.Info.Mode.Perm(), e.Info.UID, e.Info.GID,
			e.Info.Modified.Sec, e.Info.Modified.Nsec, e.Link))
		e.Release()
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %d entries that differ from the %d of find", len(got), len(want))
	}
}

// goSources returns the directory of the standard library, a tree of about 10,000 files.
func goSources(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}
