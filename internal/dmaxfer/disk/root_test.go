package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

// rooted is a directory in which "root" is that of a Root, beside "outside" with the file "canary".
type rooted struct {
	root *disk.Root
	testDir
}

// mustRoot returns a Root with a file, directories, and symlinks that stay inside or lead out.
func mustRoot(t *testing.T, parent testDir) rooted {
	t.Helper()
	dir, err := parent.fs.OpenDir(parent.folder)
	must(t, err)
	mustMakeDirs(t, dir, "outside", "root", "root/a", "root/a/b")
	must(t, dir.Close())
	parent.put("outside/canary", oldText)
	parent.put("root/file", newText)
	parent.put("root/a/inner", newText)
	for name, text := range map[string]string{
		"root/absolute": parent.folder + "/outside/canary", "root/slash": "/", "root/up": "..",
		"root/out":    "../outside",
		"root/canary": "../outside/canary", "root/far": "a/../../outside/canary", "root/again": "far",
		"root/a/b/out": "../../../outside/canary", "root/home": parent.folder + "/root/file",
		"root/in": "a", "root/a/back": "../file", "root/a/b/both": "../../in/inner", "root/loop": "loop",
		"root/a/b/top": "../..", "root/dangling": "absent", "root/a/b/round": "../../a/b/../back",
	} {
		parent.link(text, name)
	}
	root, err := disk.OpenRoot(parent.fs, parent.path("root"))
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	parent.folder += "/root"
	parent.fs = root
	return rooted{root: root, testDir: parent}
}

// onEachRoot runs a test on a Root of each file system.
func onEachRoot(t *testing.T, test func(t *testing.T, at rooted)) {
	t.Run("disk", func(t *testing.T) { test(t, mustRoot(t, onDisk(t, t.TempDir()))) })
	t.Run("old kernel", func(t *testing.T) {
		disk.OldKernel(t)
		test(t, mustRoot(t, onDisk(t, shared(t))))
	})
	t.Run("memory", func(t *testing.T) {
		at, m := inMemory()
		r := mustRoot(t, at)
		test(t, r)
		if open := m.Handles(); open != 1 { // the root
			t.Errorf("%d handles are still open", open)
		}
	})
}

// hostilePaths lead out of the Root of mustRoot, or would without it.
var hostilePaths = []string{
	"/", "//", "/etc/passwd", "..", "../", "./..", "../root/file", "../outside/canary", "a/../..",
	"a/../../root/file", "a/b/../../../outside/canary", "absolute", "absolute/", "./absolute", "slash",
	"slash/etc/passwd", "slash/../..", "up", "up/outside/canary", "up/root/file", "out", "out/", "out/canary",
	"out/../root/file", "canary", "far", "again", "a/b/out", "in/b/out", "in/../up/outside",
	"in/b/top/../outside/canary", "a/b/top/canary", "home", "a/b/top/..", "in/..//../outside",
	"a/.././.././outside/canary",
}

func TestHostilePathsStayInside(t *testing.T) {
	onEachRoot(t, func(t *testing.T, at rooted) {
		inner, err := at.root.OpenDir("a")
		must(t, err)
		defer inner.Close()
		for _, path := range hostilePaths {
			mustRefuse(t, at.root, path)
			if strings.HasPrefix(path, "/") {
				continue
			}
			_, err := inner.OpenDir("../" + path)
			if !errors.Is(err, disk.ErrOutside) && !errors.Is(err, unix.ENOTDIR) {
				t.Errorf("from a directory, %q: %v", path, err)
			}
		}
	})
}

// mustRefuse checks that no method of a Root follows a path out of it.
func mustRefuse(t *testing.T, root *disk.Root, path string) {
	t.Helper()
	_, statErr := root.Stat(path)
	_, openErr := root.Open(path)
	_, dirErr := root.OpenDir(path)
	for _, err := range []error{statErr, openErr, dirErr} {
		if !errors.Is(err, disk.ErrOutside) || !errors.Is(err, unix.EXDEV) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, use := range []func() error{
		func() error { _, err := disk.OpenPartial(root, path, copies["replacing"]); return err },
		func() error { _, err := disk.OpenTree(root, path, disk.TreeOptions{Overwrite: true}); return err },
	} {
		if err := use(); !errors.Is(err, disk.ErrTarget) {
			t.Errorf("%q was used: %v", path, err)
		}
	}
	mustBe(t, disk.MakeDir(root, path+"/made"), disk.ErrOutside)
}

func TestSymlinksInsideARootAreFollowed(t *testing.T) {
	onEachRoot(t, func(t *testing.T, at rooted) {
		for _, path := range []string{
			"file", "./file", "a/../file", "in/../file", "a/back", "in/back", "a/b/round", "a/b/top/file",
			"a/b/../back", "a/b/top/a/b/top/file",
		} {
			mustBeFile(t, at.root, path, "file")
		}
		mustBeFile(t, at.root, "a/b/both", "a/inner")
		for path, want := range map[string]error{
			"": fs.ErrNotExist, "dangling": fs.ErrNotExist, "loop": unix.ELOOP, "file/": unix.ENOTDIR,
			"file/..": unix.ENOTDIR, "absent/../file": fs.ErrNotExist, "in/absent": fs.ErrNotExist,
			strings.Repeat("n", 256): unix.ENAMETOOLONG,
		} {
			_, err := at.root.Stat(path)
			mustBe(t, err, want)
			_, err = at.root.OpenDir(path)
			mustBe(t, err, want)
		}
	})
}

// mustBeFile checks that a path leads to the same file as another, from the root, and from directories below it.
func mustBeFile(t *testing.T, root *disk.Root, path, want string) {
	t.Helper()
	wanted, err := root.Stat(want)
	must(t, err)
	file, err := root.Open(path)
	must(t, err)
	defer file.Close()
	if !mustInfo(t, file).SameFile(wanted.Identity) {
		t.Errorf("%s is not %s", path, want)
	}
	at := root.OpenDir
	for _, step := range []string{"in", "b", "../b/top/a", "..", "."} {
		dir, err := at(step)
		must(t, err)
		defer dir.Close()
		at = dir.OpenDir
	}
	parent, name := disk.Split(path)
	dir, err := at(parent)
	must(t, err)
	defer dir.Close()
	if found, err := dir.Stat(name); err != nil || found.Mode.IsRegular() && !found.SameFile(wanted.Identity) {
		t.Errorf("%s is %+v, %v", path, found, err)
	}
}

// A magic link of /proc leads to a file without following a path.
func TestMagicLinksAreRefused(t *testing.T) {
	test := func(t *testing.T) {
		root, err := disk.OpenRoot(disk.OS, "/proc/self")
		must(t, err)
		defer root.Close()
		if info, err := root.Stat("status"); err != nil || !info.Mode.IsRegular() {
			t.Fatalf("/proc is %+v, %v", info, err)
		}
		for _, path := range []string{"exe", "root", "root/etc/passwd", "cwd", "cwd/root.go", "fd/0", "ns/mnt"} {
			if _, err := root.Stat(path); !errors.Is(err, unix.ELOOP) && !errors.Is(err, disk.ErrOutside) &&
				!errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s was followed: %v", path, err)
			}
		}
	}
	t.Run("openat2", test)
	t.Run("old kernel", func(t *testing.T) {
		disk.OldKernel(t)
		test(t)
	})
}

func TestNamesInARootAreThoseOfEntries(t *testing.T) {
	onEachRoot(t, func(t *testing.T, at rooted) {
		dir, err := at.root.OpenDir("a")
		must(t, err)
		defer dir.Close()
		for _, name := range []string{
			"..", "../file", "../../outside/canary", "b/out", "/etc/passwd", "b/", "a\x00b", "",
		} {
			for call, err := range callsWith(t, dir, name) {
				if !errors.Is(err, disk.ErrOutside) {
					t.Errorf("%s of %q: %v", call, name, err)
				}
			}
		}
		must(t, errors.Join(dir.SetModified(disk.Timestamp{Sec: 1}), dir.SetMode(0o700)))
	})
}

// callsWith returns the errors of all calls of a directory that take a name.
func callsWith(t *testing.T, dir disk.Dir, name string) map[string]error {
	t.Helper()
	_, open := dir.Open(name, true)
	_, openWrite := dir.Open(name, false)
	_, stat := dir.Stat(name)
	_, readLink := dir.ReadLink(name)
	_, create := dir.Create(name)
	file, err := dir.CreateUnnamed("file", 0o600, false)
	named := err
	if err == nil {
		named = dir.GiveName(file, name)
		must(t, file.Close())
	}
	return map[string]error{
		"open": open, "open for writing": openWrite, "stat": stat, "readlink": readLink, "create": create,
		"name": named, "mkdir": dir.MakeDir(name, 0o700),
		"rmdir": dir.RemoveDir(name), "remove": dir.Remove(name), "rename from": dir.Rename(name, "x"),
		"rename to": dir.Rename("inner", name), "rename absent from": dir.RenameIfAbsent(name, "x"),
		"rename absent to": dir.RenameIfAbsent("inner", name), "link from": dir.Link(name, "x"),
		"link to": dir.Link("inner", name), "symlink": dir.Symlink("text", name),
		"link in from": dir.LinkTo(name, dir, "x"), "link in to": dir.LinkTo("inner", dir, name),
		"time": dir.SetLinkModified(name, disk.Timestamp{}), "owner": dir.SetLinkOwner(name, 0, 0),
	}
}

// A file can be linked in a directory of the same Root only: another one could be anywhere.
func TestLinksStayInTheirRoot(t *testing.T) {
	at := mustRoot(t, onDisk(t, t.TempDir()))
	dir, err := at.root.OpenDir("a")
	must(t, err)
	defer dir.Close()
	outside, err := disk.OS.OpenDir(filepath.Dir(at.folder))
	must(t, err)
	defer outside.Close()
	mustBe(t, dir.LinkTo("inner", outside, "escaped"), unix.EXDEV)
}

// The directory of a Root belongs to whoever has chosen it, and keeps its attributes, however it is reached.
func TestRootKeepsItsAttributes(t *testing.T) {
	onEachRoot(t, func(t *testing.T, at rooted) {
		before, err := at.root.Stat(".")
		must(t, err)
		for path, keeps := range map[string]bool{".": true, "a/..": true, "a": false} {
			dir, err := at.root.OpenDir(path)
			must(t, err)
			must(t, errors.Join(
				dir.SetModified(disk.Timestamp{Sec: 1}), dir.SetMode(0o711), dir.SetOwner(before.UID, before.GID),
				dir.Close(),
			))
			after, err := at.root.Stat(path)
			must(t, err)
			if same := after.Mode == before.Mode && after.Modified == before.Modified; same != keeps {
				t.Errorf("%s was %v, and is %v", path, before, after)
			}
		}
	})
}

func TestReadOnlyRoot(t *testing.T) {
	onEachRoot(t, func(t *testing.T, at rooted) {
		only := at.root.ReadOnly()
		dir, err := only.OpenDir("a")
		must(t, err)
		defer dir.Close()
		before, err := disk.Names(dir)
		must(t, err)
		child, err := dir.OpenBeneath("b")
		must(t, err)
		defer child.Close()
		file, err := dir.Open("inner", true)
		must(t, err)
		mustRead(t, file, newText, 0)
		must(t, file.Close())
		reading := []string{"open", "stat", "readlink", "link in from"}
		for call, err := range callsWith(t, child, "inner") {
			if !slices.Contains(reading, call) && !errors.Is(err, unix.EROFS) {
				t.Errorf("%s: %v", call, err)
			}
		}
		_, unnamed := dir.CreateUnnamed("x", 0o600, false)
		for _, err := range []error{
			unnamed, dir.MayCreate(), dir.SetMode(0o755), dir.SetOwner(0, 0), dir.SetModified(disk.Timestamp{}),
			dir.SetXattr(disk.Xattr{Name: "user.x"}), dir.LinkTo("inner", dir, "x"),
		} {
			mustBe(t, err, unix.EROFS)
		}
		_, err = disk.OpenPartial(only, "new", wanted(1))
		mustBe(t, err, unix.EROFS)
		mustBe(t, disk.MakeDir(only, "new"), unix.EROFS)
		mustBe(t, disk.RemoveBeneath(dir, "inner"), unix.EROFS)
		if after, err := disk.Names(dir); err != nil || !slices.Equal(after, before) {
			t.Errorf("%q became %q, %v", before, after, err)
		}
	})
}

// A directory that is moved out of the Root leads back to it at most.
func TestMovedDirectoryLeadsNowhere(t *testing.T) {
	t.Run("openat2", mustLeadNowhere)
	t.Run("old kernel", func(t *testing.T) {
		disk.OldKernel(t)
		mustLeadNowhere(t)
	})
}

func mustLeadNowhere(t *testing.T) {
	at := mustRoot(t, onDisk(t, t.TempDir()))
	top, err := at.root.Stat(".")
	must(t, err)
	dir, err := at.root.OpenDir("a/b")
	must(t, err)
	defer dir.Close()
	must(t, os.Rename(filepath.Join(at.folder, "a"), filepath.Join(filepath.Dir(at.folder), "outside/a")))
	for _, path := range []string{"..", "../..", "../../..", "out", "top", "both", "./.."} {
		opened, err := dir.OpenDir(path)
		if err != nil {
			continue
		}
		if info, err := opened.Info(); err != nil || !info.SameFile(top.Identity) {
			t.Errorf("%q leads to %+v, %v", path, info, err)
		}
		must(t, opened.Close())
	}
	must(t, mustCreate(t, dir, "new").Close()) // where it is now
}

// Paths that the kernel would refuse are followed component by component, with a limit on the work.
func TestLongPathsInARoot(t *testing.T) {
	onEachRoot(t, func(t *testing.T, at rooted) {
		mustBeFile(t, at.root, strings.Repeat("a/b/../../", 1000)+"file", "file")
		_, err := at.root.Stat(strings.Repeat("a/b/../../", 20_000) + "file")
		mustBe(t, err, unix.ELOOP)
	})
}

func TestRootOfWhatIsNoDirectory(t *testing.T) {
	at := onDisk(t, t.TempDir())
	at.put("file", "x")
	_, err := disk.OpenRoot(disk.OS, at.path("file"))
	mustFail(t, err, disk.ErrSource, "file")
	_, err = disk.OpenRoot(disk.OS, at.path("absent"))
	mustFail(t, err, disk.ErrSource, "absent")
	m := disktest.NewMemory("/there")
	_, err = disk.OpenRoot(disktest.NewFaulty(m, disktest.FailAt(0, disktest.Fault{Err: unix.EIO})), "/there")
	mustFail(t, err, disk.ErrSource)
}

// Before each call of a walk in turn, another process moves a directory of the path out of the Root.
func TestDirectoryIsMovedWhileItIsFollowed(t *testing.T) {
	t.Run("to a parent", func(t *testing.T) { mustNotFollow(t, "a", "a/b/../../canary") })
	t.Run("to a directory", func(t *testing.T) { mustNotFollow(t, "a/b", "a/b/../canary") })
}

func mustNotFollow(t *testing.T, moved, path string) {
	calls := 1
	for n := 0; n < calls; n++ {
		at := onDisk(t, t.TempDir())
		dir, err := disk.OS.OpenDir(at.folder)
		must(t, err)
		mustMakeDirs(t, dir, "outside", "root", "root/a", "root/a/b")
		must(t, dir.Close())
		at.put("outside/canary", oldText)
		on := disktest.NewFaulty(disk.OS, func(i int, _, _ string) *disktest.Fault {
			if i == n {
				must(t, os.Rename(at.path("root/"+moved), at.path("outside/moved")))
			}
			return nil
		})
		root, err := disk.OpenRoot(on, at.path("root"))
		must(t, err)
		if _, err := root.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("before operation %d of %q: %v", n, on.Trace(), err)
		}
		must(t, root.Close())
		calls = max(calls, len(on.Trace()))
	}
	if calls < 8 {
		t.Errorf("there are only %d calls", calls)
	}
}

// A Root whose copy has been given up may still be used by a call that hangs. It is closed after the last use.
func TestRootIsClosedAfterItsLastDirectory(t *testing.T) {
	at, m := inMemory()
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	mustMakeDirs(t, dir, "a", "a/b")
	must(t, dir.Close())
	root, err := disk.OpenRoot(at.fs, at.folder)
	must(t, err)
	inner, err := root.OpenDir("a")
	must(t, err)
	must(t, root.Close())
	above, err := inner.OpenDir("../a/b")
	must(t, err)
	must(t, inner.Close())
	_ = inner.Close() // counts once
	must(t, above.Close())
	if open := m.Handles(); open != 0 {
		t.Errorf("%d handles are still open", open)
	}
	_, dirErr := root.OpenDir("a")
	_, openErr := root.Open("a")
	_, statErr := root.Stat("a")
	for _, err := range []error{dirErr, openErr, statErr} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	}
}
