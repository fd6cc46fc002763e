package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// requireMount skips the test where it may not mount file systems.
func requireMount(t *testing.T) {
	t.Helper()
	if may, err := canMount(); err != nil || !may {
		t.Skipf("mounting a small disk takes CAP_SYS_ADMIN (%v)", err)
	}
}

// mountSmallDisk mounts a file system with these limits on the directory of a side.
func (f *fixture) mountSmallDisk(side, limits string) {
	f.t.Helper()
	dir := filepath.Dir(f.path(side))
	must(f.t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,"+limits))
	f.t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// TestTargetDirectoryVanishes removes the receiver's directory in the middle of a transfer, which ends with 5 on both
// sides.
func TestTargetDirectoryVanishes(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		f.createFile(sender, slowSize)
		sides := f.startSlowTransfer(nil)
		dir := filepath.Dir(f.path(peerOf(sender)))
		for os.RemoveAll(dir) != nil { // the receiver may still create files in it
			time.Sleep(time.Millisecond)
		}
		sides.expectExit(exitTarget)
		if _, err := os.Lstat(dir); err == nil {
			f.t.Error("the directory was created again")
		}
	})
}

// TestDiskFullWhileReceiving fills a receiver's disk after some of the file has been written.
func TestDiskFullWhileReceiving(t *testing.T) {
	t.Parallel()
	requireMount(t)
	forEachSender(t, func(f *fixture, sender string) {
		f.createSparseFile(sender, 6<<20)
		f.mountSmallDisk(peerOf(sender), "size=4m")
		f.expectDiskFull(sender, "", "no space left on device")
	})
}

// TestNoInodesLeft gives a receiver a disk that has space, but no inode for the partial file or for its journal.
func TestNoInodesLeft(t *testing.T) {
	t.Parallel()
	requireMount(t)
	for inodes := 1; inodes <= 2; inodes++ { // one is the directory's
		t.Run(fmt.Sprint(inodes), func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				f.createFile(sender, 1000)
				f.mountSmallDisk(peerOf(sender), fmt.Sprintf("size=4m,nr_inodes=%d", inodes))
				sides := sidePair{"host": f.start("host", hostCommand), "dpu": f.start("dpu", dpuCommand)}
				sides.expectExit(exitTarget)
				for _, name := range bothSides {
					sides[name].expectStderr("no inode may be left (df -i)")
				}
				expectOnly(f.t, filepath.Dir(f.path(peerOf(sender))))
			})
		})
	}
}

// TestFileSizeLimit gives a receiver a limit on the size of its files.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		f.createSparseFile(sender, 6<<20)
		// In blocks of 512 bytes; 1024 in some shells.
		f.expectDiskFull(sender, f.underLimit("ulimit -f 6144"), "file too large")
	})
}

// expectDiskFull runs a transfer whose receiver is started with a prefix. It expects both sides to end with 5, the old
// file to stay, and nothing else but what can be resumed from.
func (f *fixture) expectDiskFull(sender, prefix, reason string) {
	f.t.Helper()
	target := f.path(peerOf(sender))
	old := filepath.Join(f.dir, "old")
	must(f.t, writeRandomFile(target, "old", 1000))
	must(f.t, writeRandomFile(old, "old", 1000))
	lines := map[string]string{"host": hostCommand, "dpu": dpuCommand + "--chunk 64KiB --depth 2 "}
	lines[peerOf(sender)] = prefix + lines[peerOf(sender)] + "--overwrite"
	sides := f.startBoth(lines)
	sides.expectExit(exitTarget)
	for _, name := range bothSides {
		sides[name].expectStderr(reason)
	}
	must(f.t, compareFiles(old, target))
	expectOnly(f.t, filepath.Dir(target), "file", partialName, journalName)
}
