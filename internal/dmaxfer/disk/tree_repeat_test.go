package disk_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// What an earlier transfer did not make durable is durable after one that finds it unchanged, root and all.
func TestUnchangedTreeIsMadeDurable(t *testing.T) {
	for name, lacking := range map[string]disktest.Lacking{"syncfs": {}, "fsync": {SyncFS: true}} {
		t.Run(name, func(t *testing.T) {
			at, m := inMemory()
			m.Without(lacking)
			m.Record()
			tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Preserve: allTimes})
			dir := mustEnter(t, tree.Root(), "dir")
			must(t, dir.Put("file", []byte(newText), metaOf(newText)))
			dir.Release()
			must(t, tree.Close(true))
			if !mayBeLost(m) {
				t.Error("it was durable before")
			}
			tree = mustOpenTree(t, at, "tree", disk.TreeOptions{
				Overwrite: true, Durability: wire.DurabilityFull, Preserve: allTimes,
			})
			dir = mustEnter(t, tree.Root(), "dir")
			must(t, dir.Flush("file"))
			must(t, dir.Leave(metaOf("")))
			dir.Release()
			must(t, tree.Root().Leave(metaOf("")))
			must(t, tree.Sync())
			must(t, tree.Close(true))
			if mayBeLost(m) {
				t.Error("a loss of power may remove it, or bring the marker back")
			}
		})
	}
}

// mayBeLost reports whether a loss of power after the last operation may leave another tree, or a marker.
func mayBeLost(m *disktest.Memory) bool {
	for crash := range m.Crashes() {
		if crash.Step < m.Steps()-1 {
			continue
		}
		text, found := crash.FS.Get("/there/tree/dir/file")
		_, marked := crash.FS.Get("/there/.tree.dma-copy-part")
		if !found || text != newText || marked {
			return true
		}
	}
	return false
}

// A transfer that is killed after the final rename leaves its journal. It is removed when the file is found complete.
func TestLeftoversOfACompleteFileAreRemoved(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{})
		must(t, tree.Root().Put("file", []byte(newText), metaOf(newText)))
		must(t, tree.Close(false))
		in := inside(at, "tree")
		in.put(journalName, "journal")
		in.put(".file.dma-copy-new", newText)
		tree = mustOpenTree(t, at, "tree", disk.TreeOptions{})
		tree.Root().RemoveLeftovers("file")
		tree.Root().RemoveLeftovers("absent")
		must(t, tree.Close(true))
		in.mustHold(t, "file")

		p := mustOpen(t, in, "file", with(func(w *disk.Wanted) { w.Overwrite = true }))
		must(t, write(t, p, newText))
		if p.Keep() == 0 {
			t.Error("nothing was kept")
		}
		in.put(".other.dma-copy-journal", "journal")
		tree = mustOpenTree(t, at, "tree", disk.TreeOptions{Overwrite: true})
		tree.Root().RemoveLeftovers("file") // no interrupted transfer has left the tree
		in.mustHold(t, journalName, partialName, ".other.dma-copy-journal", "file")
		must(t, tree.Close(true))
		disk.RemoveLeftovers(at.fs, at.path("tree/file"))
		in.mustHold(t, ".other.dma-copy-journal", "file")
		disk.RemoveLeftovers(at.fs, at.path("absent/file"))
	})
}

// What another process is receiving, or what belongs to another user, stays.
func TestForeignLeftoversStay(t *testing.T) {
	at, m := inMemory()
	at.put("file", oldText)
	p := mustOpen(t, at, "file", with(func(w *disk.Wanted) { w.Overwrite = true }))
	disk.RemoveLeftovers(at.fs, at.path("file"))
	at.mustHold(t, journalName, partialName, "file")
	p.Discard()
	m.SetSelf(disk.Self{UID: 7})
	at.put(journalName, "journal")
	m.SetSelf(disk.Self{UID: 1000})
	disk.RemoveLeftovers(at.fs, at.path("file"))
	at.mustHold(t, journalName, "file")
	if open := m.Handles(); open != 0 {
		t.Errorf("%d handles are open", open)
	}
}

// Each failure leaves nothing new, and no open handle.
func TestRemovingLeftoversFails(t *testing.T) {
	for n, fired := 0, true; fired; n++ {
		at, m := inMemory()
		at.put("file", newText)
		at.put(journalName, "journal")
		faulty := disktest.NewFaulty(m, disktest.FailAt(n, disktest.Fault{Err: unix.EIO}))
		disk.RemoveLeftovers(faulty, at.path("file"))
		fired = faulty.Fired()
		disk.RemoveLeftovers(m, at.path("file"))
		at.mustHold(t, "file")
		if open := m.Handles(); open != 0 {
			t.Errorf("%d handles are open", open)
		}
	}
}
