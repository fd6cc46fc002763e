package disk_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// Tests of directories, symlinks, links and unnamed files that every FS must pass.

func TestDirectoriesAreMadeAndRemoved(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, file disk.File) {
		must(t, dir.MakeDir("child", 0o777))
		mustBe(t, dir.MakeDir("child", 0o700), fs.ErrExist)
		mustBe(t, dir.MakeDir("file", 0o700), fs.ErrExist)
		mustBe(t, dir.MakeDir(strings.Repeat("n", 256), 0o700), unix.ENAMETOOLONG)
		info, err := dir.Stat("child")
		must(t, err)
		self := at.fs.Self()
		if info.Mode != fs.ModeDir|fs.FileMode(0o777&^self.Umask) || info.UID != self.UID {
			t.Errorf("a new directory is %+v", info)
		}
		child, err := dir.OpenBeneath("child")
		must(t, err)
		opened, err := child.Info()
		must(t, err)
		if !opened.SameFile(info.Identity) || opened.SameFile(mustInfo(t, file).Identity) {
			t.Errorf("%+v was opened, and not %+v", opened, info)
		}
		must(t, mustCreate(t, child, "file").Close())
		mustBe(t, dir.RemoveDir("child"), unix.ENOTEMPTY)
		must(t, child.Remove("file"))
		mustBe(t, dir.RemoveDir("file"), unix.ENOTDIR)
		mustBe(t, dir.RemoveDir("absent"), fs.ErrNotExist)
		must(t, dir.RemoveDir("child"))
		_, err = child.Create("late")
		mustBe(t, err, fs.ErrNotExist)
		must(t, child.Close())
		at.mustHold(t, "file")
	})
}

func TestDirectoriesAreNotFiles(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		must(t, dir.MakeDir("child", 0o700))
		_, err := dir.Open("child", false)
		mustBe(t, err, unix.EISDIR)
		mustBe(t, dir.Remove("child"), unix.EISDIR)
		mustBe(t, dir.Link("child", "other"), unix.EPERM)
		mustBe(t, dir.Rename("file", "child"), unix.EISDIR)
		mustBe(t, dir.RenameIfAbsent("file", "child"), fs.ErrExist)
		at.mustHold(t, "child", "file")
	})
}

func TestOnlyDirectoriesBelowAreOpened(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, dir disk.Dir, _ disk.File) {
		mustMakeDirs(t, dir, "a", "a/b", "a/b/c")
		must(t, dir.Symlink("a", "link"))
		must(t, dir.Symlink("/", "root"))
		c, err := dir.OpenBeneath("a/b/c")
		must(t, err)
		must(t, mustCreate(t, c, "inside").Close())
		must(t, c.Close())
		b, err := dir.OpenBeneath("a/b")
		must(t, err)
		_, err = b.OpenBeneath("c/inside")
		mustBe(t, err, unix.ENOTDIR)
		_, err = b.OpenBeneath("absent")
		mustBe(t, err, fs.ErrNotExist)
		must(t, b.Close())
		for path, want := range map[string]error{
			"link": unix.ENOTDIR, "link/b": unix.ELOOP, "root/tmp": unix.ELOOP, "..": unix.EXDEV, "a/../..": unix.EXDEV,
			"root": unix.ENOTDIR, "a/b/c/../../../..": unix.EXDEV, "/": unix.EXDEV, "/tmp": unix.EXDEV,
			"file": unix.ENOTDIR,
		} {
			if opened, err := dir.OpenBeneath(path); !errors.Is(err, want) && !isRefusal(err) {
				t.Errorf("%s: %v, %v", path, opened, err)
			}
		}
	})
}

func isRefusal(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EXDEV)
}

// mustMakeDirs makes directories by their paths below dir.
func mustMakeDirs(t *testing.T, dir disk.Dir, paths ...string) {
	t.Helper()
	for _, path := range paths {
		parent, name := disk.Split(path)
		if parent == "." {
			must(t, dir.MakeDir(name, 0o700))
			continue
		}
		in, err := dir.OpenBeneath(strings.TrimSuffix(parent, "/"))
		must(t, err)
		must(t, in.MakeDir(name, 0o700))
		must(t, in.Close())
	}
}

func TestSymlinksAreCreatedAndChanged(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, file disk.File) {
		must(t, dir.Symlink("file", "link"))
		mustBe(t, dir.Symlink("other", "link"), fs.ErrExist)
		mustBe(t, dir.Symlink("other", strings.Repeat("n", 256)), unix.ENAMETOOLONG)
		before := mustInfo(t, file)
		when := disk.Timestamp{Sec: 1_000_000_001, Nsec: 999_999_999}
		must(t, dir.SetLinkModified("link", when))
		self := at.fs.Self().UID
		link, err := dir.ReadLink("link")
		must(t, err)
		must(t, dir.SetLinkOwner("link", self, link.GID))
		link, err = dir.ReadLink("link")
		must(t, err)
		if link.Text != "file" || link.Modified != when || link.UID != self || link.Mode&fs.ModeSymlink == 0 {
			t.Errorf("the symlink is %+v", link)
		}
		if after := mustInfo(t, file); after.Modified != before.Modified {
			t.Error("the time of the symlink's target was set")
		}
		mustBe(t, dir.SetLinkModified("absent", when), fs.ErrNotExist)
		mustBe(t, dir.SetLinkOwner("absent", self, link.GID), fs.ErrNotExist)
		mustBe(t, dir.SetLinkOwner("file", self, link.GID), unix.EINVAL)
	})
}

func TestLinksBetweenDirectories(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, dir disk.Dir, file disk.File) {
		mustWrite(t, file, newText, 0)
		must(t, dir.MakeDir("child", 0o700))
		must(t, dir.Symlink("file", "link"))
		child, err := dir.OpenBeneath("child")
		must(t, err)
		must(t, dir.LinkTo("file", child, "again"))
		mustBe(t, dir.LinkTo("file", child, "again"), fs.ErrExist)
		mustBe(t, dir.LinkTo("absent", child, "x"), fs.ErrNotExist)
		mustBe(t, dir.LinkTo("child", child, "x"), unix.EPERM)
		must(t, dir.LinkTo("link", child, "link"))
		again, err := child.Stat("again")
		must(t, err)
		if info := mustInfo(t, file); !again.SameFile(info.Identity) || info.Links != 2 {
			t.Errorf("%+v is no other name of %+v", again, info)
		}
		if link, err := child.ReadLink("link"); err != nil || link.Text != "file" {
			t.Errorf("the link of a symlink is %+v, %v", link, err)
		}
		must(t, child.Close())
	})
}

func TestAttributesOfDirectories(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, dir disk.Dir, _ disk.File) {
		when := disk.Timestamp{Sec: -5, Nsec: 7}
		info, err := dir.Info()
		must(t, err)
		must(t, dir.SetOwner(info.UID, info.GID))
		must(t, dir.SetMode(unix.S_ISVTX|0o750))
		if err := dir.SetXattr(disk.Xattr{Name: "user.x", Value: []byte("y")}); err == nil {
			found, err := dir.Xattrs()
			must(t, err)
			is := func(a disk.Xattr) bool { return a.Name == "user.x" && string(a.Value) == "y" }
			if !slices.ContainsFunc(found, is) {
				t.Errorf("there are %q", found)
			}
		} else {
			mustBe(t, err, errors.ErrUnsupported)
		}
		must(t, dir.SetModified(when))
		info, err = dir.Info()
		must(t, err)
		if info.Mode != fs.ModeDir|fs.ModeSticky|0o750 || info.Modified != when {
			t.Errorf("the directory is %+v", info)
		}
	})
}

func TestFilesWithoutNamesGetThemElsewhere(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		must(t, dir.MakeDir("child", 0o700))
		child, err := dir.OpenBeneath("child")
		must(t, err)
		when := disk.Timestamp{Sec: 1_000_000_001, Nsec: 999_999_999}
		file, err := dir.CreateUnnamed("file", 0o666, true)
		must(t, err)
		mustWrite(t, file, newText, 0)
		must(t, file.SetModified(when))
		must(t, file.Sync())
		mustBe(t, child.GiveName(file, strings.Repeat("n", 256)), unix.ENAMETOOLONG)
		mustBe(t, dir.GiveName(file, "file"), fs.ErrExist)
		must(t, child.GiveName(file, "given"))
		must(t, file.Close())
		at.mustContain(t, "child/given", newText)
		info, err := at.fs.Stat(at.path("child/given"))
		must(t, err)
		if info.Mode != 0o666 || info.Modified != when || info.Links != 1 {
			t.Errorf("there is %+v", info)
		}
		private, err := dir.CreateUnnamed("private", 0o600, true)
		must(t, err)
		must(t, private.SetMode(0o4755))
		must(t, dir.GiveName(private, "private"))
		must(t, private.Close())
		if info, err := dir.Stat("private"); err != nil || info.Mode != 0o755 {
			t.Errorf("there is %+v, %v", info, err)
		}
		must(t, child.Close())
		if dir.CanSyncFS() {
			must(t, dir.SyncFS())
		}
	})
}
