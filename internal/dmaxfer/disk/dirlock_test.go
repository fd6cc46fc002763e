package disk_test

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

func TestLockModes(t *testing.T) {
	modes := []disk.LockMode{disk.NoLock, disk.LockStore, disk.LockFill, disk.LockDelete, disk.LockDeleteBelow}
	excluded := []string{ // a row and a column for each
		".....",
		"...X.",
		"...XX",
		".XXXX",
		"..XX.",
	}
	conform(t, func(t *testing.T, _ testDir, dir disk.Dir, _ disk.File) {
		other, err := dir.OpenDir(".")
		must(t, err)
		defer other.Close()
		for i, first := range modes {
			for j, second := range modes {
				held := mustLock(t, dir, first, disk.NoLock)
				locks, err := other.Lock(second, disk.NoLock)
				switch {
				case excluded[i][j] == 'X':
					mustBe(t, err, disk.ErrLocked)
				case err != nil:
					t.Errorf("mode %d beside %d: %v", second, first, err)
				default:
					must(t, locks.Close())
				}
				must(t, held.Close())
			}
		}
	})
}

func mustLock(t *testing.T, dir disk.Dir, own, above disk.LockMode) io.Closer {
	t.Helper()
	locks, err := dir.Lock(own, above)
	must(t, err)
	return locks
}

// The directories above are locked until the result is closed. One that is refused leaves none.
func TestDirectoriesAboveAreLocked(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, dir disk.Dir, _ disk.File) {
		mustMakeDirs(t, dir, "a", "a/b", "a/c")
		opened := map[string]disk.Dir{}
		for _, path := range []string{"a", "a/b", "a/c"} {
			at, err := dir.OpenBeneath(path)
			must(t, err)
			defer at.Close()
			opened[path] = at
		}
		held := mustLock(t, opened["a/b"], disk.LockDelete, disk.LockDeleteBelow)
		for _, at := range []disk.Dir{dir, opened["a"]} {
			_, err := at.Lock(disk.LockFill, disk.LockStore)
			mustBe(t, err, disk.ErrLocked)
		}
		_, err := opened["a/c"].Lock(disk.LockFill, disk.LockFill)
		mustBe(t, err, disk.ErrLocked)
		must(t, mustLock(t, opened["a/c"], disk.LockDelete, disk.LockDeleteBelow).Close())
		must(t, held.Close())
		must(t, mustLock(t, dir, disk.LockDelete, disk.LockDeleteBelow).Close())
	})
}

// A directory that the user may not read is not locked, those above it are.
func TestUnreadableDirectoriesAreNotLocked(t *testing.T) {
	top := t.TempDir()
	for _, path := range []string{top + "/a", top + "/a/b"} {
		must(t, os.Mkdir(path, 0o755))
	}
	b, err := disk.OS.OpenDir(top + "/a/b")
	must(t, err)
	defer b.Close()
	others := map[string]disk.Dir{}
	for _, path := range []string{top, top + "/a"} {
		others[path], err = disk.OS.OpenDir(path)
		must(t, err)
		defer others[path].Close()
	}
	must(t, os.Chmod(top+"/a", 0o311))
	defer os.Chmod(top+"/a", 0o755)
	if os.Getuid() == 0 { // may read everything
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		must(t, unix.Setfsuid(65534))
		defer func() { must(t, unix.Setfsuid(0)) }()
	}
	defer mustLock(t, b, disk.LockDeleteBelow, disk.LockDeleteBelow).Close()
	_, err = others[top].Lock(disk.LockFill, disk.NoLock)
	mustBe(t, err, disk.ErrLocked)
	must(t, mustLock(t, others[top+"/a"], disk.LockFill, disk.NoLock).Close())
}

// usage is how a transfer uses a directory.
type usage struct {
	stores  bool // a file in the directory; otherwise the whole of it is filled
	deletes bool
	at      string // a path below the directory of the test; empty for that itself, which has no marker
}

// open opens the target of such a transfer.
func (u usage) open(at testDir) (end func() error, err error) {
	name := at.path(path.Join(u.at, "."))
	if u.stores {
		p, err := disk.OpenPartial(at.fs, name+"/file", wanted(len(newText)))
		return func() error { p.Discard(); return nil }, err
	}
	tree, err := disk.OpenTree(at.fs, name, disk.TreeOptions{Deletes: u.deletes})
	return func() error { return tree.Close(true) }, err
}

// deletesFrom reports whether a transfer may delete what another one stores.
func (u usage) deletesFrom(other usage) bool {
	return u.deletes && (isWithin(other.at, u.at) || !other.stores && isWithin(u.at, other.at))
}

func isWithin(at, above string) bool {
	return above == "" || at == above || strings.HasPrefix(at, above+"/")
}

// No transfer stores anything where another one deletes, whichever has begun first. All others are made side by side,
// except for two that fill a directory with a marker.
func TestTransfersSideBySide(t *testing.T) {
	var usages []usage
	for _, at := range []string{"", "a", "a/b", "c"} {
		usages = append(usages, usage{at: at, stores: true}, usage{at: at}, usage{at: at, deletes: true})
	}
	m := disktest.NewMemory("/", "/there", "/there/a", "/there/a/b", "/there/c")
	synctest.Test(t, func(t *testing.T) {
		for _, first := range usages {
			for _, second := range usages {
				endFirst, err := first.open(memoryPlace(m))
				must(t, err)
				endSecond, err := second.open(memoryPlace(m))
				same := first == second && (first.stores || first.at != "")
				switch {
				case first.deletesFrom(second), second.deletesFrom(first), same:
					mustFail(t, err, disk.ErrBusy, "another process")
				case err != nil:
					t.Errorf("%+v beside %+v: %v", second, first, err)
				default:
					must(t, endSecond())
				}
				must(t, endFirst())
			}
		}
		if open := m.Handles(); open != 0 {
			t.Errorf("%d handles are open", open)
		}
	})
}

// What excludes a transfer is named, and a directory that is excluded is not created.
func TestExcludedTransfer(t *testing.T) {
	for _, test := range []struct {
		first, second usage
		want          string
	}{
		{usage{at: "a", deletes: true}, usage{at: "a/b/new"},
			"cannot receive /there/a/b/new: another process runs sync --delete into a directory above it"},
		{usage{at: "a/b", deletes: true}, usage{at: "a"},
			"cannot receive /there/a: another process runs sync --delete into it or a directory below it"},
		{usage{at: "a"}, usage{at: "a/b/new", deletes: true},
			"cannot receive /there/a/b/new: another process copies into a directory above it"},
		{usage{at: "a/b", stores: true}, usage{at: "a", deletes: true},
			"cannot receive /there/a: another process copies into it or a directory below it"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := disktest.NewMemory("/there", "/there/a", "/there/a/b")
			end, err := test.first.open(memoryPlace(m))
			must(t, err)
			_, err = test.second.open(memoryPlace(m))
			mustFail(t, err, disk.ErrBusy, test.want)
			must(t, end())
			if _, err := m.Stat("/there/a/b/new"); err == nil {
				t.Error("the directory was created")
			}
		})
	}
}

// The root of the file system has no directory above it.
func TestLockOfTheRoot(t *testing.T) {
	dir, err := disk.OS.OpenDir(string(filepath.Separator))
	must(t, err)
	defer dir.Close()
	must(t, mustLock(t, dir, disk.LockStore, disk.LockStore).Close())
}

// Directories that are too far above are left out.
func TestDeepDirectoryIsLocked(t *testing.T) {
	top := t.TempDir()
	deep := top + strings.Repeat("/d", 100)
	must(t, os.MkdirAll(deep, 0o700))
	dir, err := disk.OS.OpenDir(deep)
	must(t, err)
	defer dir.Close()
	defer mustLock(t, dir, disk.LockDelete, disk.LockDeleteBelow).Close()
	for depth, want := range map[int]error{0: nil, 35: nil, 36: disk.ErrLocked, 99: disk.ErrLocked} {
		above, err := disk.OS.OpenDir(top + strings.Repeat("/d", depth))
		must(t, err)
		locks, err := above.Lock(disk.LockFill, disk.NoLock)
		if !errors.Is(err, want) {
			t.Errorf("at depth %d: %v", depth, err)
		}
		if err == nil {
			must(t, locks.Close())
		}
		must(t, above.Close())
	}
}
