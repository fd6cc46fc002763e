package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

// treeMarker is what a receiver keeps beside a tree that a later transfer may continue.
const treeMarker = ".tree.dma-copy-part"

// slowTree makes the transfer of the tree of startSlowTree take eight seconds, and with fasterTree two.
const (
	slowTree   = "--chunk 16KiB --depth 2 --bwlimit 128K "
	fasterTree = "--bwlimit 500K "
)

// unflushed keeps short what a receiver is just committing when the transfer ends: the sender waits for its result for
// half a second, and a busy disk may take longer to flush it.
var unflushed = map[string]string{"host": "--durability none ", "dpu": "--durability none "}

// startSlowTree starts the transfer of a tree of small files and a large one, and waits until some files have been
// committed.
func (f *fixture) startSlowTree(sender string, flags map[string]string) sidePair {
	f.t.Helper()
	f.makeTree(sender, filetree.Small, 150)
	must(f.t, writeRandomFile(f.tree(sender, "large"), "large", 400_000))
	sides := f.startBoth(map[string]string{
		"host": hostTree + flags["host"], "dpu": dpuTree + paced(slowTree, flags["dpu"]),
	})
	f.waitForFiles(peerOf(sender), 30)
	return sides
}

// waitForFiles waits until a side has so many files under their final names. Files of another process cannot be waited
// for, hence the polling.
func (f *fixture) waitForFiles(side string, count int) {
	f.t.Helper()
	for deadline := time.Now().Add(processTimeout); ; time.Sleep(5 * time.Millisecond) {
		files, err := filepath.Glob(f.tree(side, "d*", "f*"))
		must(f.t, err)
		if len(files) >= count {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d files never arrived", count)
		}
	}
}

// expectInterrupted expects the files under their final names to be complete, and to be kept by the same commands,
// which copy the rest.
func (f *fixture) expectInterrupted(sender string) {
	f.t.Helper()
	receiver := peerOf(sender)
	expectOnly(f.t, filepath.Join(f.dir, receiver), "tree", treeMarker)
	before := f.list(receiver)
	committed := committedFiles(before)
	for _, path := range committed {
		must(f.t, compareFiles(f.tree(sender, path), f.tree(receiver, path)))
	}
	if len(committed) < 30 || slices.Contains(committed, "large") {
		f.t.Errorf("the transfer was not interrupted in the middle: the %s has %d files", receiver, len(committed))
	}
	f.startBoth(map[string]string{"host": hostTree, "dpu": dpuTree}).expectExit(exitOK)
	f.expectSameTrees(sender, sameTree)
	for _, path := range filetree.Written(before, f.list(receiver)) {
		if slices.Contains(committed, path) {
			f.t.Errorf("%s was committed, and is written again", path)
		}
	}
}

// committedFiles returns the paths of the files that have their final names.
func committedFiles(entries []filetree.Entry) (paths []string) {
	for _, e := range entries {
		if e.Mode.IsRegular() && !isTemporary(e.Path) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// TestTreeSignal interrupts either side of the transfer of a tree. Both sides end with the signal's code, and the same
// commands copy the rest.
func TestTreeSignal(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		for _, signalled := range bothSides {
			t.Run(unix.SignalName(signal)+"_"+signalled, func(t *testing.T) {
				t.Parallel()
				forEachSender(t, func(f *fixture, sender string) {
					sides := f.startSlowTree(sender, unflushed)
					must(f.t, sides[signalled].signal(signal))
					sides.expectExit(exitSignal + int(signal))
					f.expectInterrupted(sender)
				})
			})
		}
	}
}

// TestTreeStall stops either side of the transfer of a tree. The other ends after its idle timeout, the stopped one
// when it continues, and the same commands copy the rest. A sender may have sent files whose result it does not know.
func TestTreeStall(t *testing.T) {
	t.Parallel()
	for _, stopped := range bothSides {
		t.Run(stopped, func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				peer := peerOf(stopped)
				sides := f.startSlowTree(sender, map[string]string{peer: idleFlag})
				sides[stopped].stop()
				sides[peer].expectExitEither(exitPeer, exitPeer)
				if peer != sender || !strings.Contains(sides[peer].stderr.String(), "transfer outcome unknown") {
					sides[peer].expectStderr("no message from the")
				}
				must(f.t, sides[stopped].signal(syscall.SIGCONT))
				sides[stopped].expectExitEither(exitPeer, exitPeer)
				f.expectInterrupted(sender)
			})
		})
	}
}

// TestTreeStallShorterThanIdleTimeout stops a side for less than the other's idle timeout. The transfer completes.
func TestTreeStallShorterThanIdleTimeout(t *testing.T) {
	t.Parallel()
	forEachStopped(t, func(f *fixture, stopped, sender string) {
		flags := flagsOfStall(stopped)
		flags["dpu"] += fasterTree
		f.expectStallSurvived(f.startSlowTree(sender, flags), stopped)
		f.expectSameTrees(sender, sameTree)
	})
}

// TestTreeOnAFullDisk fills the disk of a receiver, which has space for some of the files. The others fail, with the
// reason, and what is there is complete.
func TestTreeOnAFullDisk(t *testing.T) {
	t.Parallel()
	requireMount(t)
	for _, limits := range []string{"size=400k", "nr_inodes=60"} {
		t.Run(strings.ReplaceAll(limits, "=", "_"), func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				receiver := peerOf(sender)
				f.makeTree(sender, filetree.Small, 150)
				must(f.t, writeRandomFile(f.tree(sender, "large"), "large", 3<<20))
				f.mountSmallDisk(receiver, limits)
				for _, s := range f.startTree(sender, treeFlags{}) {
					s.expectExitIn(exitSomeFailed)
					s.expectStderr("no space left on device")
				}
				committed := committedFiles(f.list(receiver))
				for _, path := range committed {
					must(f.t, compareFiles(f.tree(sender, path), f.tree(receiver, path)))
				}
				if len(committed) < 20 || len(committed) > 120 {
					f.t.Errorf("%d files were copied", len(committed))
				}
				f.enlargeDisk(receiver)
				f.expectRepaired(sender, func(receiver string) sidePair {
					return f.startTree(sender, treeFlags{receiver: receiver})
				})
			})
		})
	}
}

// enlargeDisk removes the limits of mountSmallDisk.
func (f *fixture) enlargeDisk(side string) {
	f.t.Helper()
	dir := filepath.Dir(f.path(side))
	must(f.t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=100m,nr_inodes=10000"))
}

// TestTreeVanishes removes a tree in the middle of its transfer. The sender's files fail. What the receiver has made is
// gone, and its transfer fails; nothing is created again under the name of the tree.
func TestTreeVanishes(t *testing.T) {
	t.Parallel()
	for _, removed := range []string{"source", "target"} {
		t.Run(removed, func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				sides := f.startSlowTree(sender, unflushed)
				root := f.tree(sender)
				if removed == "target" {
					root = f.tree(peerOf(sender))
				}
				moved := filepath.Join(f.dir, "moved")
				must(f.t, os.Rename(root, moved))
				for os.RemoveAll(moved) != nil { // the receiver may still write into it
					time.Sleep(time.Millisecond)
				}
				for _, s := range sides {
					s.expectExitIn(exitSomeFailed, exitTarget, exitSourceChanged)
				}
				if _, err := os.Lstat(root); err == nil {
					f.t.Errorf("%s was created again", root)
				}
			})
		})
	}
}
