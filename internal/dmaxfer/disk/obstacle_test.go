package disk_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The flags of FS_IOC_SETFLAGS, from <linux/fs.h>.
const (
	immutable  = 0x10
	appendOnly = 0x20
)

// setFlags returns a function that sets flags of a file or directory until the test ends, or skips the test.
func setFlags(flags int) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		file, err := os.Open(path)
		must(t, err)
		t.Cleanup(func() { must(t, file.Close()) })
		fd := int(file.Fd())
		before, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		if err == nil {
			err = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, before|flags)
		}
		if err != nil {
			t.Skipf("chattr(1) takes CAP_LINUX_IMMUTABLE and a file system that has attributes: %v", err)
		}
		t.Cleanup(func() { must(t, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, before)) })
	}
}

// mountOver mounts a file or directory over itself until the test ends, or skips the test.
func mountOver(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("mounting takes CAP_SYS_ADMIN: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(path, unix.MNT_DETACH)) })
}

// What can be neither replaced nor removed is found before anything is written, and named with what to do about it.
func TestObstacles(t *testing.T) {
	for name, c := range map[string]struct {
		obstruct  func(t *testing.T, path string)
		why, next string
	}{
		"mounted":     {mountOver, "it is a mount point", "unmount it"},
		"immutable":   {setFlags(immutable), "it is immutable", "chattr"},
		"append-only": {setFlags(appendOnly), "it is append-only", "chattr"},
	} {
		t.Run(name, func(t *testing.T) {
			at := onDisk(t, t.TempDir())
			at.put("file", oldText)
			c.obstruct(t, at.path("file"))
			_, partialErr := disk.OpenPartial(at.fs, at.path("file"), copies["replacing"])
			tree, err := disk.OpenTree(at.fs, at.folder, disk.TreeOptions{Overwrite: true})
			must(t, err)
			putErr := tree.Root().Put("file", []byte(newText), disk.Metadata{})
			linkErr := tree.Root().Symlink("file", "elsewhere", disk.Metadata{})
			must(t, tree.Close(true))
			dir, err := at.fs.OpenDir(at.folder)
			must(t, err)
			removeErr := disk.RemoveBeneath(dir, "file")
			must(t, dir.Close())
			for _, err := range []error{partialErr, putErr, linkErr, removeErr} {
				mustFail(t, err, disk.ErrTarget, c.why)
				if !strings.Contains(err.Error(), c.next) {
					t.Errorf("%q does not say %q", err, c.next)
				}
			}
			at.mustHold(t, "file")
			at.mustContain(t, "file", oldText)
		})
	}
}

// In a directory in which nothing can be renamed no partial file is made, which could not be removed.
func TestObstacleOfTheDirectory(t *testing.T) {
	at := onDisk(t, t.TempDir())
	setFlags(appendOnly)(t, at.folder)
	_, err := disk.OpenPartial(at.fs, at.path("file"), copies["new"])
	mustFail(t, err, disk.ErrTarget, "it is append-only")
	_, err = disk.OpenTree(at.fs, at.path("tree"), disk.TreeOptions{})
	mustFail(t, err, disk.ErrTarget, "it is append-only")
	at.mustHold(t)
}

// A directory on which something is mounted is written to like any other.
func TestMountedDirectoryIsNoObstacle(t *testing.T) {
	at := onDisk(t, t.TempDir())
	mountOver(t, at.folder)
	p := mustOpen(t, at, "file", copies["no resume"])
	must(t, receive(t, p, newText, wire.DurabilityNone))
	must(t, p.Commit(wire.DurabilityNone))
	at.mustHold(t, "file")
}
