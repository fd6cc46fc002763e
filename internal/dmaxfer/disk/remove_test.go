package disk_test

import (
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

func TestRemoveBeneath(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		mustMakeDirs(t, dir, "a", "a/b", "a/b/empty")
		at.put("a/b/deep", oldText)
		must(t, dir.Symlink("a", "to directory"))
		must(t, dir.Symlink("file", "to file"))
		must(t, dir.Symlink("absent", "dangling"))
		for path, want := range map[string]error{
			"": disk.ErrOutside, ".": disk.ErrOutside, "..": disk.ErrOutside, "a/": disk.ErrOutside,
			"/":    disk.ErrOutside,
			"a/..": disk.ErrOutside, "a/b/../b/deep": disk.ErrOutside, "../x": disk.ErrOutside,
			"/etc/passwd": disk.ErrOutside, "a/./b/deep": disk.ErrOutside, "a//b/deep": disk.ErrOutside,
			"a/b": unix.ENOTEMPTY, "absent": fs.ErrNotExist, "absent/x": fs.ErrNotExist,
			"to directory/b/deep": nil, "file/x": unix.ENOTDIR,
		} {
			err := disk.RemoveBeneath(dir, path)
			mustFail(t, err, disk.ErrTarget)
			if want != nil {
				mustBe(t, err, want)
			}
		}
		at.mustHold(t, "a", "dangling", "file", "to directory", "to file")
		at.mustContain(t, "a/b/deep", oldText)
		for _, path := range []string{"to directory", "to file", "dangling", "a/b/deep", "a/b/empty", "a/b", "a"} {
			must(t, disk.RemoveBeneath(dir, path))
		}
		at.mustHold(t, "file")
	})
}

func TestUnfinishedFilesInUseAreNotRemoved(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		dir, err := at.fs.OpenDir(at.folder)
		must(t, err)
		defer dir.Close()
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, write(t, p, newText))
		for _, name := range []string{partialName, journalName} {
			mustFail(t, disk.RemoveBeneath(dir, name), disk.ErrBusy, name)
		}
		if kept := p.Keep(); kept == 0 {
			t.Fatal("nothing was kept")
		}
		at.mustHold(t, journalName, partialName)
		must(t, disk.RemoveBeneath(dir, journalName))
		must(t, disk.RemoveBeneath(dir, partialName))
		at.put(journalName, "without its file")
		must(t, disk.RemoveBeneath(dir, journalName))
		at.mustHold(t)
	})
}

// Special files are removed like files, and never renamed: they have no content to keep.
func TestSpecialFilesAreRemoved(t *testing.T) {
	at := onDisk(t, t.TempDir())
	dir, err := disk.OS.OpenDir(at.folder)
	must(t, err)
	defer dir.Close()
	for _, remove := range []func(disk.Dir, string) error{
		disk.RemoveBeneath, disk.RemoveFileBeneath, disk.RemoveExtra, disk.SetAsideExtra,
	} {
		must(t, unix.Mkfifo(at.path("pipe"), 0o600))
		must(t, unix.Mknod(at.path("socket"), unix.S_IFSOCK|0o600, 0))
		must(t, os.Symlink("pipe", at.path("link")))
		must(t, disk.RemoveFileBeneath(dir, "link"))
		at.mustHold(t, "pipe", "socket")
		for _, name := range []string{"pipe", "socket"} {
			must(t, remove(dir, name))
		}
		at.mustHold(t)
	}
}

// A mount point stays, also if it is empty, and so does the directory above it.
func TestMountPointsAreNotRemoved(t *testing.T) {
	m := disktest.NewMemory("/there", "/there/in", "/there/in/disk")
	m.Mount("/there/in/disk")
	dir, err := m.OpenDir("/there")
	must(t, err)
	defer dir.Close()
	for _, remove := range []func(disk.Dir, string) error{
		disk.RemoveBeneath, disk.RemoveFileBeneath, disk.RemoveExtra, disk.SetAsideExtra,
	} {
		mustFail(t, remove(dir, "in/disk"), disk.ErrTarget, "cannot remove in/disk: it is a mount point")
	}
	mustBe(t, disk.RemoveBeneath(dir, "in"), unix.ENOTEMPTY)
}

// Each call that fails is reported, and nothing else than the entry is removed.
func TestFailedRemovals(t *testing.T) {
	for n := 0; ; n++ {
		m := disktest.NewMemory("/there", "/there/in")
		m.Put("/there/in/"+partialName, "x")
		m.Put("/there/in/other", "x")
		on := disktest.NewFaulty(m, disktest.FailAt(n, disktest.Fault{Err: unix.EIO}))
		dir, err := on.OpenDir("/there")
		if n == 0 {
			mustBe(t, err, unix.EIO)
			continue
		}
		must(t, err)
		err = disk.RemoveBeneath(dir, "in/"+partialName)
		_, remains := m.Get("/there/in/" + partialName)
		if !on.Fired() {
			must(t, err)
			return
		}
		if err == nil && remains {
			t.Errorf("operation %d of %q failed, and nothing was reported", n, on.Trace())
		}
		if _, found := m.Get("/there/in/other"); !found {
			t.Errorf("operation %d: another file is gone", n)
		}
	}
}

func TestMakeDir(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		must(t, disk.MakeDir(at.fs, at.path("new//")))
		must(t, disk.MakeDir(at.fs, at.path("new")))
		at.link("new", "link")
		must(t, disk.MakeDir(at.fs, at.path("link/other")))
		at.put("new/other/file", oldText)
		info, err := at.fs.Stat(at.path("new/other"))
		must(t, err)
		if want := fs.ModeDir | 0o777&^fs.FileMode(at.fs.Self().Umask); info.Mode != want {
			t.Errorf("the mode is %v, not %v", info.Mode, want)
		}
		at.link("absent", "dangling")
		at.put("file", oldText)
		for _, path := range []string{"dangling/x", "file/x", "absent/x"} {
			if err := disk.MakeDir(at.fs, at.path(path)); err == nil {
				t.Errorf("%s was created", path)
			}
		}
	})
}

// The directory above one that exists need not be there, nor be readable.
func TestMakeDirOfOneThatExists(t *testing.T) {
	for _, path := range []string{".", "/"} {
		must(t, disk.MakeDir(disk.OS, path))
	}
}

func TestMadeDirIsDurable(t *testing.T) {
	m := disktest.NewMemory("/there")
	m.Record()
	must(t, disk.MakeDir(m, "/there/a"))
	for crash := range m.Crashes() {
		if _, err := crash.FS.Stat("/there/a"); crash.Step == m.Steps()-1 && err != nil {
			t.Errorf("%s: %v", crash.What, err)
		}
	}
	faulty, err := disk.OpenRoot(disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "sync" {
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	}), "/there")
	must(t, err)
	mustBe(t, disk.MakeDir(faulty, "c"), unix.EIO)
}
