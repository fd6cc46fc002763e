package disk_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A path is interpreted as the kernel does, and never simplified as text.

// receiveAt receives a target at a path.
func receiveAt(t *testing.T, path string, want disk.Wanted) error {
	t.Helper()
	p, err := disk.OpenPartial(disk.OS, path, want)
	if err != nil {
		return err
	}
	defer p.Discard()
	must(t, receive(t, p, newText, wire.DurabilityNone))
	return p.Commit(wire.DurabilityNone)
}

// TestTargetIsWhereTheKernelPutsIt compares with a file that open(2) creates at the same path.
func TestTargetIsWhereTheKernelPutsIt(t *testing.T) {
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "elsewhere", "inner"), 0o700))
	must(t, os.Mkdir(filepath.Join(root, "here"), 0o700))
	must(t, os.Symlink("../elsewhere/inner", filepath.Join(root, "here", "lnk")))
	must(t, os.Symlink("lnk/../through", filepath.Join(root, "here", "indirect")))
	t.Chdir(filepath.Join(root, "here"))
	for _, path := range []string{
		"file", "./file", "lnk/../file", "lnk/../../file", "lnk/./file", "lnk//file", root + "/here/lnk/../file",
		root + "//here/../here/file", "../here/lnk/file", "indirect",
	} {
		must(t, os.WriteFile(path, []byte(oldText), 0o600))
		before, err := os.Stat(path)
		must(t, err)
		real, err := filepath.EvalSymlinks(path)
		must(t, err)
		must(t, receiveAt(t, path, copies["replacing"]))
		after, err := os.Stat(path)
		must(t, err)
		if os.SameFile(before, after) || after.Size() != int64(len(newText)) {
			t.Errorf("%s still leads to the old file of %d bytes", path, after.Size())
		}
		if reached, err := filepath.EvalSymlinks(path); reached != real {
			t.Errorf("%s led to %s, and now to %s (%v)", path, real, reached, err)
		}
		must(t, os.Remove(real))
		if path != "indirect" {
			must(t, receiveAt(t, path, copies["new"]))
			must(t, os.Remove(real))
		}
		_, err = os.Lstat(real)
		mustBe(t, err, fs.ErrNotExist)
	}
}

func TestPathThroughNothingIsNotShortened(t *testing.T) {
	t.Chdir(t.TempDir())
	mustFail(t, receiveAt(t, "missing/../file", copies["new"]), disk.ErrTarget, "missing/../file", unix.ENOENT.Error())
	must(t, os.WriteFile("plain", nil, 0o600))
	mustFail(t, receiveAt(t, "plain/../file", copies["new"]), disk.ErrTarget, unix.ENOTDIR.Error())
	onDisk(t, ".").mustHold(t, "plain")
}

func TestSplitAndJoinChangeNothing(t *testing.T) {
	for _, c := range []struct{ path, directory, name string }{
		{"file", ".", "file"}, {"a/../file", "a/../", "file"}, {"/file", "/", "file"}, {"a//b", "a//", "b"},
		{"a/", "a/", ""}, {"..", ".", ".."}, {"", ".", ""}, {"./x", "./", "x"},
	} {
		directory, name := disk.Split(c.path)
		if directory != c.directory || name != c.name || disk.Join(directory, name) != c.path {
			t.Errorf("%q is cut into %q and %q, which make %q", c.path, directory, name, disk.Join(directory, name))
		}
	}
	for _, c := range []struct{ directory, name, want string }{
		{"a", "b", "a/b"}, {"a/..", "b", "a/../b"}, {"a", "/b", "/b"},
	} {
		if got := disk.Join(c.directory, c.name); got != c.want {
			t.Errorf("%q in %q is %q", c.name, c.directory, got)
		}
	}
}

func TestTargetBehindSymlinks(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("file", oldText)
		at.link("file", "second")
		at.link(at.linkTo("second"), "first")
		p := mustOpen(t, at, "first", copies["replacing"])
		if p.Path() != at.path("file") {
			t.Errorf("the target is %s", p.Path())
		}
		must(t, receive(t, p, newText, wire.DurabilityNone))
		must(t, p.Commit(wire.DurabilityNone))
		at.mustContain(t, "file", newText)
		at.mustHold(t, "file", "first", "second")
	})
}

func TestSymlinksThatLeadToNoTarget(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.link("absent", "dangling")
		at.link("absent/file", "without directory")
		at.link("loop", "loop")
		at.link(".", "folder")
		for name, why := range map[string]string{
			"dangling": "dangling symlink", "without directory": "dangling symlink", "loop": "too many levels",
			"folder": "not a regular file", ".": "not a regular file", "": "not a regular file",
			"absent/": "no such file",
		} {
			_, err := disk.OpenPartial(at.fs, at.path(name), copies["replacing"])
			mustFail(t, err, disk.ErrTarget, why)
		}
		at.mustHold(t, "dangling", "folder", "loop", "without directory")
	})
}

const otherUser = 65534

// TestUntrustedSymlinks checks the rule of fs.protected_symlinks for each combination of owners.
func TestUntrustedSymlinks(t *testing.T) {
	for _, c := range []struct {
		name             string
		mode             fs.FileMode
		self, link, owns uint32
		trusted          bool
	}{
		{"another user's", fs.ModeSticky | 0o777, 0, otherUser, 0, false},
		{"another user's, for a user", fs.ModeSticky | 0o777, 1000, otherUser, 0, false},
		{"our own", fs.ModeSticky | 0o777, 1000, 1000, 0, true},
		{"the directory's owner's", fs.ModeSticky | 0o777, 0, otherUser, otherUser, true},
		{"not sticky", 0o777, 0, otherUser, 0, true},
		{"not writable by all", fs.ModeSticky | 0o775, 0, otherUser, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, m := inMemory()
			m.SetSelf(disk.Self{UID: c.self})
			m.SetDirectory("/there", c.mode, c.owns)
			at.put("file", oldText)
			at.link("hop", "link")
			m.Symlink("file", "/there/hop", c.link)
			p, err := disk.OpenPartial(at.fs, at.path("link"), copies["replacing"])
			if c.trusted {
				must(t, err)
				p.Discard()
				return
			}
			mustFail(t, err, disk.ErrTarget, "symlink of another user")
			mustBe(t, err, disk.ErrUntrustedLink)
			at.mustHold(t, "file", "hop", "link")
			if open := m.Handles(); open != 0 {
				t.Errorf("%d handles are still open", open)
			}
		})
	}
}

// The real file system reports sticky directories and owners of symlinks.
func TestUntrustedSymlinkOnDisk(t *testing.T) {
	at := sticky(t)
	at.put("precious", oldText)
	at.link("precious", "link")
	must(t, os.Lchown(at.path("link"), otherUser, otherUser))
	_, err := disk.OpenPartial(at.fs, at.path("link"), copies["replacing"])
	mustFail(t, err, disk.ErrTarget, "symlink of another user")
	at.mustContain(t, "precious", oldText)
	at.mustHold(t, "link", "precious")
}

// sticky returns a directory like /tmp, for tests that give files to another user.
func sticky(t *testing.T) testDir {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	at := onDisk(t, t.TempDir())
	must(t, os.Chmod(at.folder, fs.ModeSticky|0o777))
	return at
}
