package disk_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

var allTimes = disk.Preserve{Mode: true, Times: true}

func mustOpenTree(t *testing.T, at testDir, name string, o disk.TreeOptions) *disk.Tree {
	t.Helper()
	tree, err := disk.OpenTree(at.fs, at.path(name), o)
	must(t, err)
	return tree
}

func mustEnter(t *testing.T, d *disk.Directory, name string) *disk.Directory {
	t.Helper()
	child, _, err := d.Enter(name, true)
	must(t, err)
	return child
}

func metaOf(text string) disk.Metadata {
	return disk.Metadata{Size: int64(len(text)), Mode: 0o640, Modified: disk.Timestamp{Sec: 1_000_000_000, Nsec: 5}}
}

func TestTreeIsReceived(t *testing.T) {
	for _, durability := range durabilities {
		everywhere(t, func(t *testing.T, at testDir) {
			tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Durability: durability, Preserve: allTimes})
			root := tree.Root()
			must(t, root.Put("a", []byte(oldText), metaOf(oldText)))
			child := mustEnter(t, root, "dir")
			must(t, child.Put("b", nil, metaOf("")))
			staged, err := child.Stage("c", []byte(newText), metaOf(newText))
			must(t, err)
			must(t, tree.Sync())
			must(t, staged.Commit())
			must(t, child.Symlink("link", "../a", metaOf("")))
			must(t, child.Link("hard", "dir/c"))
			must(t, root.Link("again", "a"))
			p, err := child.Partial("large", wanted(len(newText)))
			must(t, err)
			must(t, receive(t, p, newText, durability))
			must(t, p.Commit(durability))
			must(t, child.Leave(metaOf("")))
			child.Release()
			must(t, root.Leave(metaOf("")))
			must(t, tree.Sync())
			must(t, tree.Close(true))
			at.mustHold(t, "tree")
			at.mustContain(t, "tree/a", oldText)
			at.mustContain(t, "tree/again", oldText)
			at.mustContain(t, "tree/dir/b", "")
			at.mustContain(t, "tree/dir/c", newText)
			at.mustContain(t, "tree/dir/hard", newText)
			at.mustContain(t, "tree/dir/link", oldText)
			at.mustContain(t, "tree/dir/large", newText)
			for name, mode := range map[string]fs.FileMode{
				"tree/a": 0o640, "tree/dir": fs.ModeDir | 0o640, "tree": fs.ModeDir | 0o640,
			} {
				info, err := at.fs.Stat(at.path(name))
				must(t, err)
				if info.Mode != mode || info.Modified != metaOf("").Modified {
					t.Errorf("%s is %+v", name, info)
				}
			}
		})
	}
}

func TestInterruptedTreeIsContinued(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		for _, want := range []disk.TreeState{disk.TreeAbsent, disk.TreeUnfinished, disk.TreeUnfinished} {
			state, err := disk.FindTree(at.fs, at.path("tree"))
			must(t, err)
			if state != want {
				t.Errorf("the tree is in state %d, not %d", state, want)
			}
			tree := mustOpenTree(t, at, "tree/", disk.TreeOptions{})
			_, err = disk.OpenTree(at.fs, at.path("tree"), disk.TreeOptions{})
			mustFail(t, err, disk.ErrBusy, "is being received by another process")
			if err := tree.Root().Put("a", []byte(newText), metaOf(newText)); want == disk.TreeAbsent {
				must(t, err)
			} else {
				mustFail(t, err, disk.ErrExists, "a already exists")
			}
			must(t, tree.Close(false))
		}
		must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
		state, err := disk.FindTree(at.fs, at.path("tree"))
		if err != nil || state != disk.TreeExists {
			t.Errorf("the tree is in state %d, %v", state, err)
		}
		at.mustHold(t, "tree")
	})
}

func TestWhatIsInTheWay(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Durability: wire.DurabilityNone})
		root := tree.Root()
		must(t, root.Put("file", []byte(oldText), metaOf(oldText)))
		mustEnter(t, root, "dir").Release()
		must(t, root.Symlink("link", "dir", metaOf("")))
		for _, name := range []string{"file", "link"} {
			_, _, err := root.Enter(name, true)
			mustFail(t, err, disk.ErrTarget, "cannot create the directory "+name)
		}
		mustFail(t, root.Put("dir", nil, metaOf("")), disk.ErrTarget, "a directory has its name")
		mustFail(t, root.Symlink("dir", "x", metaOf("")), disk.ErrTarget, "a directory has its name")
		mustFail(t, root.Link("dir", "file"), disk.ErrTarget)
		mustFail(t, root.Put("file", nil, metaOf("")), disk.ErrExists)
		_, _, err := root.Enter("absent", false)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
		must(t, tree.Close(true))
		at.mustContain(t, "tree/file", oldText)
	})
}

// A file that a symlink or a hard link replaces is kept if backups are wanted, and another symlink is not.
func TestBackupsOfWhatLinksReplace(t *testing.T) {
	for _, backup := range []bool{true, false} {
		everywhere(t, func(t *testing.T, at testDir) {
			must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
			tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Overwrite: true, Backup: backup})
			root := tree.Root()
			for _, name := range []string{"first", "symlink", "hard", "hard~"} {
				must(t, root.Put(name, []byte("old "+name), metaOf("old "+name)))
			}
			must(t, root.Symlink("dangling", "nowhere", metaOf("")))
			must(t, root.Symlink("symlink", "first", metaOf("")))
			must(t, root.Link("hard", "first"))
			must(t, root.Link("hard", "first")) // is one of its names now, which needs no backup
			must(t, root.Symlink("dangling", "first", metaOf("")))
			must(t, root.Symlink("new", "first", metaOf("")))
			must(t, tree.Close(true))
			at.mustContain(t, "tree/hard", "old first")
			if backup {
				at.mustContain(t, "tree/symlink~", "old symlink")
				at.mustContain(t, "tree/hard~2~", "old hard")
			}
			at.mustContain(t, "tree/hard~", "old hard~")
			for name, want := range map[string]bool{"symlink~": backup, "dangling~": false, "new~": false} {
				if _, err := at.fs.Stat(at.path("tree/" + name)); (err == nil) != want {
					t.Errorf("with backups %t, %s: %v", backup, name, err)
				}
			}
		})
	}
}

// What is still open when a tree is given up can be released afterwards.
func TestTreeIsClosedFirst(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		before := openDescriptors(t)
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Durability: wire.DurabilityFull})
		dir := mustEnter(t, tree.Root(), "dir")
		var staged []*disk.Staged
		for _, name := range []string{"discarded", "committed"} {
			s, err := dir.Stage(name, []byte(newText), metaOf(newText))
			must(t, err)
			staged = append(staged, s)
		}
		must(t, tree.Close(false))
		mustFail(t, dir.Put("file", nil, metaOf("")), disk.ErrTarget, "file already closed")
		mustFail(t, tree.Root().Put("file", nil, metaOf("")), disk.ErrTarget, "file already closed")
		staged[0].Discard()
		mustFail(t, staged[1].Commit(), disk.ErrTarget, "file already closed")
		dir.Release()
		inside(at, "tree/dir").mustHold(t)
		if open := openDescriptors(t); open != before {
			t.Errorf("%d descriptors are open, and not %d", open, before)
		}
	})
}

func TestWhatIsNotATree(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("file", oldText)
		at.link("absent", "dangling")
		at.link("file", "link")
		for name, want := range map[string]disk.TreeState{
			"absent": disk.TreeAbsent, "file": disk.TreeNotADirectory, "link": disk.TreeNotADirectory,
		} {
			if state, err := disk.FindTree(at.fs, at.path(name)); state != want || err != nil {
				t.Errorf("%s is in state %d, %v", name, state, err)
			}
		}
		for _, name := range []string{"file", "link", "dangling", "absent/tree"} {
			_, err := disk.OpenTree(at.fs, at.path(name), disk.TreeOptions{Overwrite: true})
			mustFail(t, err, disk.ErrTarget)
		}
		_, err := disk.FindTree(at.fs, at.path("dangling"))
		mustFail(t, err, disk.ErrTarget, "dangling symlink")
		at.mustHold(t, "dangling", "file", "link")
	})
}

// The root may be named by a symlink. The marker is beside the directory itself.
func TestTreeBehindASymlink(t *testing.T) {
	at := onDisk(t, t.TempDir())
	must(t, os.MkdirAll(at.path("elsewhere/tree"), 0o700))
	at.link("elsewhere/tree", "link")
	tree := mustOpenTree(t, at, "link", disk.TreeOptions{Overwrite: true})
	must(t, tree.Root().Put("file", nil, metaOf("")))
	must(t, tree.Close(false))
	inside(at, "elsewhere").mustHold(t, ".tree.dma-copy-part", "tree")
	for _, name := range []string{"link", "link/", "elsewhere/tree//"} {
		if state, err := disk.FindTree(at.fs, at.path(name)); state != disk.TreeUnfinished || err != nil {
			t.Errorf("%s is in state %d, %v", name, state, err)
		}
	}
	must(t, mustOpenTree(t, at, "link/", disk.TreeOptions{}).Close(true))
	inside(at, "elsewhere").mustHold(t, "tree")
}

// Where no marker can be created an existing directory is received into, and nothing tells that it is unfinished.
func TestTreeWithoutMarker(t *testing.T) {
	at, m := inMemory()
	unwritable := disktest.NewFaulty(m, func(_ int, op, name string) *disktest.Fault {
		if op == "create" && name == ".tree.dma-copy-part" {
			return &disktest.Fault{Err: unix.EACCES}
		}
		return nil
	})
	_, err := disk.OpenTree(unwritable, at.path("tree"), disk.TreeOptions{Overwrite: true})
	mustFail(t, err, disk.ErrTarget, "permission denied")
	must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
	for range 2 {
		tree, err := disk.OpenTree(unwritable, at.path("tree"), disk.TreeOptions{Overwrite: true})
		must(t, err)
		must(t, tree.Root().Put("file", []byte(newText), metaOf(newText)))
		must(t, tree.Close(false))
		if state, err := disk.FindTree(at.fs, at.path("tree")); state != disk.TreeExists || err != nil {
			t.Errorf("the tree is in state %d, %v", state, err)
		}
	}
	tree, err := disk.OpenTree(at.fs, at.path("tree/."), disk.TreeOptions{Overwrite: true})
	must(t, err)
	at.mustHold(t, "tree")
	must(t, tree.Close(true))
	if open := m.Handles(); open != 0 {
		t.Errorf("%d handles are open", open)
	}
}

// A file that cannot be this user's marker is neither used nor changed, and does not make a directory an unfinished
// tree.
func TestForeignMarkers(t *testing.T) {
	const name = ".tree.dma-copy-part"
	for what, make := range map[string]func(in testDir){
		"symlink": func(in testDir) {
			in.put("precious", markerText)
			in.link("precious", name)
		},
		"directory": func(in testDir) { must(t, os.Mkdir(in.path(name), 0o700)) },
		"second hard link": func(in testDir) {
			in.put("precious", markerText)
			must(t, os.Link(in.path("precious"), in.path(name)))
		},
		"another user's": func(in testDir) {
			in.put(name, markerText)
			must(t, os.Chown(in.path(name), 65534, 65534))
		},
		"partial of a file": func(in testDir) { in.put(name, oldText) },
		"empty placeholder": func(in testDir) { in.put(name, "") },
	} {
		t.Run(what, func(t *testing.T) {
			if what == "another user's" && os.Geteuid() != 0 {
				t.Skip("only root can change the owner of a file")
			}
			at := onDisk(t, t.TempDir())
			must(t, os.Mkdir(at.path("tree"), 0o700))
			make(at)
			if state, err := disk.FindTree(at.fs, at.path("tree")); state != disk.TreeExists || err != nil {
				t.Errorf("the tree is in state %d, %v", state, err)
			}
			before := at.names(t)
			if tree, err := disk.OpenTree(at.fs, at.path("tree"), disk.TreeOptions{Overwrite: true}); err == nil {
				must(t, tree.Close(true)) // it was a leftover of this user's transfer of a file
				at.mustHold(t, "tree")
				return
			} else if what == "partial of a file" || what == "empty placeholder" {
				t.Error(err)
			} else {
				mustFail(t, err, disk.ErrTarget, "cannot use "+name)
			}
			at.mustHold(t, before...)
			if text, found := at.get("precious"); found && text != markerText {
				t.Errorf("there is %q", text)
			}
		})
	}
}

// markerText names no directory.
var markerText = fmt.Sprintf("dma-copy tree %016x %016x\n", 0, 0)

// In a sticky directory another user's file of that name cannot be removed. The marker gets another name, which the
// next transfer finds.
func TestMarkerBesideAForeignFile(t *testing.T) {
	at, m := inMemory()
	m.SetDirectory("/there", fs.ModeSticky|0o777, 0)
	m.SetSelf(disk.Self{UID: 7})
	m.Put("/there/.tree.dma-copy-part", markerText)
	m.SetSelf(disk.Self{UID: 1000})
	tree := mustOpenTree(t, at, "tree", disk.TreeOptions{})
	if tree.Renamed() == "" {
		t.Error("nothing says that the marker has another name")
	}
	must(t, tree.Close(false))
	if state, err := disk.FindTree(at.fs, at.path("tree")); state != disk.TreeUnfinished || err != nil {
		t.Errorf("the tree is in state %d, %v", state, err)
	}
	must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
	at.mustHold(t, ".tree.dma-copy-part", "tree")
}

// A marker is of one directory. Another one in its place is not unfinished, whichever transfer ran before, and neither
// is one with content beside a marker that names none.
func TestMarkerOfAnotherDirectory(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		mustBeIn := func(want disk.TreeState) {
			t.Helper()
			if state, err := disk.FindTree(at.fs, at.path("tree")); state != want || err != nil {
				t.Errorf("the tree is in state %d, %v, and not in %d", state, err, want)
			}
		}
		must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(false))
		mustBeIn(disk.TreeUnfinished)
		folder, err := at.fs.OpenDir(at.folder)
		must(t, err)
		defer folder.Close()
		if folder.Rename("tree", "moved") != nil { // that in memory renames no directories, nor reuses inodes
			must(t, folder.RemoveDir("tree"))
		}
		must(t, folder.MakeDir("tree", 0o700))
		mustBeIn(disk.TreeExists)
		must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(false))
		mustBeIn(disk.TreeUnfinished)
		must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
		at.put(".tree.dma-copy-part", markerText)
		mustBeIn(disk.TreeUnfinished)
		at.put("tree/user's", oldText)
		mustBeIn(disk.TreeExists)
	})
}

// FindPartials tells a marker from the partial file of a file.
func TestMarkerIsFound(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		interrupt(t, at, 8192)
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{})
		for _, inUse := range []bool{true, false} {
			found, err := disk.FindPartials(at.fs, at.folder)
			must(t, err)
			if len(found) != 2 || found[0].Tree || !found[1].Tree || found[1].InUse != inUse {
				t.Errorf("there is %+v", found)
			}
			if inUse {
				must(t, tree.Close(false))
			}
		}
		must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
	})
}

// What a failed flush has lost is unknown, and the system reports it once, so that all later ones fail, too.
func TestFailedSyncIsNotRepeated(t *testing.T) {
	for _, op := range []string{"syncfs", "sync"} {
		_, m := inMemory()
		m.Without(disktest.Lacking{SyncFS: op == "sync"})
		failures, received := 0, false
		faulty := disktest.NewFaulty(m, func(_ int, found, _ string) *disktest.Fault {
			if found == op && received && failures == 0 {
				failures++
				return &disktest.Fault{Err: unix.EIO}
			}
			return nil
		})
		tree, err := disk.OpenTree(faulty, "/there/tree", disk.TreeOptions{Durability: wire.DurabilityFull})
		must(t, err)
		dir := mustEnter(t, tree.Root(), "dir")
		must(t, dir.Put("file", []byte(newText), metaOf(newText)))
		received = true
		for range 2 {
			mustFail(t, tree.Sync(), disk.ErrTarget, "flushing")
			mustBe(t, tree.Sync(), unix.EIO)
		}
		dir.Release()
		if err := tree.Close(false); err != nil || failures != 1 {
			t.Errorf("%s: %v, %d failures", op, err, failures)
		}
		if open := m.Handles(); open != 0 {
			t.Errorf("%d handles are open", open)
		}
	}
}

// The system reports a failed write to one caller only. All that wait for the same flush fail.
func TestFailedSyncIsReportedToAll(t *testing.T) {
	_, m := inMemory()
	failures := 0
	faulty := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "syncfs" && failures == 0 {
			failures++
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	})
	tree, err := disk.OpenTree(faulty, "/there/tree", disk.TreeOptions{Durability: wire.DurabilityFull})
	must(t, err)
	results := make(chan error)
	const callers = 8
	for range callers {
		go func() { results <- tree.Sync() }()
	}
	for range callers {
		mustFail(t, <-results, disk.ErrTarget, "flushing the file system of /there/tree")
	}
	must(t, tree.Close(false))
}

// A flush may take long. Meanwhile directories are entered and files created.
func TestTreeIsFilledWhileItIsFlushed(t *testing.T) {
	_, m := inMemory()
	hanging, hang := make(chan struct{}), make(chan struct{})
	faulty := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op != "syncfs" {
			return nil
		}
		close(hanging)
		return &disktest.Fault{Hang: hang}
	})
	tree, err := disk.OpenTree(faulty, "/there/tree", disk.TreeOptions{Durability: wire.DurabilityFull})
	must(t, err)
	flushed := make(chan error)
	go func() { flushed <- tree.Sync() }()
	<-hanging
	dir := mustEnter(t, tree.Root(), "dir")
	staged, err := dir.Stage("file", []byte(newText), metaOf(newText))
	must(t, err)
	must(t, staged.Commit())
	must(t, dir.Leave(metaOf("")))
	dir.Release()
	select {
	case err := <-flushed:
		t.Errorf("the flush has ended: %v", err)
	default:
	}
	close(hang)
	must(t, <-flushed)
	must(t, tree.Close(true))
}

// More directories than are collected are flushed before Sync.
func TestManyDirectoriesAreSynced(t *testing.T) {
	_, m := inMemory()
	m.Without(disktest.Lacking{SyncFS: true})
	synced := 0
	counting := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "sync" {
			synced++
		}
		return nil
	})
	tree, err := disk.OpenTree(counting, "/there/tree", disk.TreeOptions{Durability: wire.DurabilityFull})
	must(t, err)
	const count = 1500
	for i := range count {
		mustEnter(t, tree.Root(), fmt.Sprint(i)).Release()
	}
	if synced < 1000 || synced > count {
		t.Errorf("%d directories are flushed", synced)
	}
	must(t, tree.Sync())
	if synced < count {
		t.Errorf("only %d directories are flushed", synced)
	}
	must(t, tree.Close(true))
	if open := m.Handles(); open != 0 {
		t.Errorf("%d handles are open", open)
	}
}

// Closing a directory may take long. Meanwhile the tree can be used.
func TestTreeIsFilledWhileADirectoryIsClosed(t *testing.T) {
	_, m := inMemory()
	hanging, hang := make(chan struct{}), make(chan struct{})
	faulty := disktest.NewFaulty(m, func(_ int, op, name string) *disktest.Fault {
		if op != "close" || name != "slow" {
			return nil
		}
		close(hanging)
		return &disktest.Fault{Hang: hang}
	})
	tree, err := disk.OpenTree(faulty, "/there/tree", disk.TreeOptions{})
	must(t, err)
	slow := mustEnter(t, tree.Root(), "slow")
	released := make(chan struct{})
	go func() {
		slow.Release()
		close(released)
	}()
	<-hanging
	dir := mustEnter(t, tree.Root(), "dir")
	must(t, dir.Put("file", []byte(newText), metaOf(newText)))
	dir.Release()
	select {
	case <-released:
		t.Error("the directory has been closed")
	default:
	}
	close(hang)
	<-released
	must(t, tree.Close(true))
	if open := m.Handles(); open != 0 {
		t.Errorf("%d handles are open", open)
	}
}

// A failed call that has created the root nevertheless leaves no directory, which the next transfer would not continue.
func TestRootOfAFailedCallIsRemoved(t *testing.T) {
	at, m := inMemory()
	faulty := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "mkdir" {
			return &disktest.Fault{Err: unix.EIO, Done: true}
		}
		return nil
	})
	_, err := disk.OpenTree(faulty, "/there/tree", disk.TreeOptions{})
	mustFail(t, err, disk.ErrTarget, "cannot create /there/tree")
	at.mustHold(t)
	others := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "mkdir" {
			dir, err := m.OpenDir("/there")
			must(t, err)
			must(t, dir.MakeDir("tree", 0o755))
			must(t, dir.Close())
		}
		return nil
	})
	_, err = disk.OpenTree(others, "/there/tree", disk.TreeOptions{})
	mustFail(t, err, disk.ErrTarget, "file exists")
	at.mustHold(t, "tree")
}
