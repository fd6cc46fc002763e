package disk_test

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// crashRun receives a tree in two batches and notes after which step each entry was acknowledged.
type crashRun struct {
	t     *testing.T
	m     *disktest.Memory
	tree  *disk.Tree
	acked map[string]int
}

func (r *crashRun) receive(c treeCase) {
	tree, err := disk.OpenTree(r.m, "/there/tree", c.options())
	must(r.t, err)
	r.tree = tree
	root, meta := tree.Root(), disk.Metadata{Mode: 0o640, UID: r.m.Self().UID}
	dir := mustEnter(r.t, root, "dir")
	var staged []*disk.Staged
	for _, name := range []string{"b", "c"} {
		s, err := dir.Stage(name, []byte(newEntries["dir/"+name]), meta)
		must(r.t, err)
		staged = append(staged, s)
	}
	must(r.t, tree.Sync())
	for _, s := range staged {
		must(r.t, s.Commit())
	}
	must(r.t, dir.Symlink("link", newEntries["dir/link"], meta))
	r.acknowledge("dir/b", "dir/c", "dir/link")
	must(r.t, root.Put("a", []byte(newEntries["a"]), meta))
	must(r.t, dir.Link("hard", "a"))
	dir.Release()
	inner := mustEnter(r.t, root, "new")
	x := mustEnter(r.t, inner, "x")
	must(r.t, x.Put("y", []byte(newEntries["new/x/y"]), meta))
	x.Release()
	inner.Release()
	r.acknowledge("a", "dir/hard", "new/x/y")
	must(r.t, tree.Close(true))
}

func (r *crashRun) acknowledge(names ...string) {
	must(r.t, r.tree.Sync())
	for _, name := range names {
		r.acked[name] = r.m.Steps() - 1
	}
}

func TestCrashesOfATree(t *testing.T) {
	for name, c := range treeCases {
		if c.durability == wire.DurabilityNone {
			continue
		}
		t.Run(name, func(t *testing.T) {
			run := &crashRun{t: t, m: c.prepare(), acked: make(map[string]int)}
			run.m.Record()
			run.receive(c)
			states := 0
			for crash := range run.m.Crashes() {
				states++
				run.check(c, crash)
				if t.Failed() {
					return
				}
			}
			if states < 100 {
				t.Errorf("there were only %d states", states)
			}
		})
	}
}

func (r *crashRun) check(c treeCase, crash disktest.Crash) {
	r.t.Helper()
	for name, acked := range r.acked {
		text, found := entryAt(crash.FS, name)
		before, existed := oldEntries[name]
		existed = existed && c.existing
		old := found == existed && (!found || text == before)
		whole := found && text == newEntries[name]
		switch {
		case !old && !whole:
			r.t.Errorf("%s: %s has %d bytes that are neither old nor new", crash.What, name, len(text))
		case c.durability == wire.DurabilityFull && crash.Step >= acked && !whole:
			r.t.Errorf("%s: %s was acknowledged, and is gone", crash.What, name)
		}
	}
	if c.durability == wire.DurabilityFull && crash.Step < r.m.Steps()-1 {
		r.mustContinue(c, crash)
	}
}

// mustContinue checks that the next transfer can continue what a crash has cut off, and that what is not complete says
// so unless there was a tree before.
func (r *crashRun) mustContinue(c treeCase, crash disktest.Crash) {
	r.t.Helper()
	state, err := disk.FindTree(crash.FS, "/there/tree")
	must(r.t, err)
	if state == disk.TreeExists && !c.existing {
		_, any := crash.FS.Get("/there/tree/a")
		_, whole := crash.FS.Get("/there/tree/new/x/y")
		if any != whole {
			r.t.Errorf("%s: the tree is unfinished, and has no marker", crash.What)
		}
	}
	tree, err := disk.OpenTree(crash.FS, "/there/tree", c.options())
	if err != nil {
		r.t.Errorf("%s: the next copy fails: %v", crash.What, err)
		return
	}
	must(r.t, tree.Close(true))
}

// The model must lose what is not flushed, otherwise the test above could not fail.
func TestCrashesLoseWhatIsNotSynced(t *testing.T) {
	c := treeCases["new, not durable"]
	run := &crashRun{t: t, m: c.prepare(), acked: make(map[string]int)}
	run.m.Record()
	tree, err := disk.OpenTree(run.m, "/there/tree", c.options())
	must(t, err)
	must(t, tree.Root().Put("a", []byte(newText), disk.Metadata{Mode: 0o640, UID: run.m.Self().UID}))
	must(t, tree.Sync())
	must(t, tree.Close(true))
	absent, torn, whole := 0, 0, 0
	for crash := range run.m.Crashes() {
		if crash.Step < run.m.Steps()-1 {
			continue
		}
		switch text, found := crash.FS.Get("/there/tree/a"); {
		case !found:
			absent++
		case text == newText:
			whole++
		default:
			torn++
		}
	}
	if absent == 0 || torn == 0 || whole == 0 {
		t.Errorf("%d states without the file, %d with a part, %d with all of it", absent, torn, whole)
	}
}
