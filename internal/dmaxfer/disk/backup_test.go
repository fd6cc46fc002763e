package disk_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A backup never takes the place of what has its name, and what takes the name of a backup keeps that: in any order of
// the entries every name of the source gets its content, and nothing that was there is lost.
func TestBackupsReplaceNothing(t *testing.T) {
	source := map[string]string{"x": "new x", "x~": "new x~"}
	for _, order := range [][]string{{"x", "x~"}, {"x~", "x"}, {"x~ opened first", "x"}} {
		for _, before := range []map[string]string{
			{"x": "old x"},
			{"x": "old x", "x~": "old x~"},
			{"x": "old x", "x~": "new x~"},
			{"x": "old x", "x~": "old x~", "x~2~": "older x"},
		} {
			everywhere(t, func(t *testing.T, at testDir) {
				must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
				for name, content := range before {
					at.put("tree/"+name, content)
				}
				tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Overwrite: true, Backup: true})
				var last func() error
				for _, name := range order {
					if name == "x~ opened first" {
						last = stagePartial(t, tree.Root(), "x~", source["x~"])
					} else if source[name] != before[name] {
						must(t, tree.Root().Put(name, []byte(source[name]), metaOf(source[name])))
					}
				}
				if last != nil {
					must(t, last())
				}
				must(t, tree.Close(true))
				mustHaveAll(t, at, source, before)
			})
		}
	}
}

// stagePartial receives a large file, and returns what gives it its name.
func stagePartial(t *testing.T, in *disk.Directory, name, content string) (commit func() error) {
	t.Helper()
	want := wanted(len(content))
	want.Backup = true
	p, err := in.Partial(name, want)
	must(t, err)
	must(t, receive(t, p, content, wire.DurabilityNone))
	return func() error { return p.Commit(wire.DurabilityNone) }
}

// mustHaveAll checks that the names of the source have its content, and that every content from before is still there.
func mustHaveAll(t *testing.T, at testDir, source, before map[string]string) {
	t.Helper()
	found := map[string]bool{}
	for _, name := range inside(at, "tree").names(t) {
		content, _ := at.get("tree/" + name)
		found[content] = true
	}
	for name, content := range source {
		at.mustContain(t, "tree/"+name, content)
	}
	for name, content := range before {
		if !found[content] {
			t.Errorf("the %s that was there is lost", name)
		}
	}
}

// What is set aside gets the next free name of a backup, a directory with its content. Empty ones are removed. A long
// name becomes shorter.
func TestSetAside(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{})
		mustEnter(t, tree.Root(), "empty").Release()
		mustEnter(t, tree.Root(), "full").Release()
		must(t, tree.Root().Symlink("link", "nowhere", metaOf("")))
		must(t, tree.Close(true))
		at.put("tree/x", "x")
		at.put("tree/x~", "x~")
		at.put("tree/full/in", "in")
		at.put("tree/full~", "full~")
		long := strings.Repeat("n", 253) + "é" // as many bytes as a name may have
		at.put("tree/"+long, "long")
		dir, err := at.fs.OpenDir(at.path("tree"))
		must(t, err)
		defer dir.Close()
		for _, name := range []string{"x", "link", "empty", "full", long} {
			must(t, disk.SetAsideExtra(dir, name))
		}
		inside(at, "tree").mustHold(t, "full~", "full~2~", "link~", long[:253]+"~", "x~", "x~2~")
		at.mustContain(t, "tree/x~", "x~")
		at.mustContain(t, "tree/x~2~", "x")
		at.mustContain(t, "tree/full~2~/in", "in")
		mustBe(t, disk.SetAsideExtra(dir, "absent"), fs.ErrNotExist)
	})
}

// What links replace is kept in the same way.
func TestBackupsOfLinksReplaceNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{}).Close(true))
		before := map[string]string{"x": "old x", "x~": "old x~", "y": "old y"}
		for name, content := range before {
			at.put("tree/"+name, content)
		}
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Overwrite: true, Backup: true})
		root := tree.Root()
		must(t, root.Put("first", []byte("first"), metaOf("first")))
		must(t, root.Symlink("x", "first", metaOf("")))
		must(t, root.Link("x~", "first"))
		must(t, root.Symlink("y", "first", metaOf("")))
		must(t, root.Symlink("y~", "first", metaOf(""))) // the backup of y
		must(t, tree.Close(true))
		mustHaveAll(t, at, map[string]string{"x": "first", "x~": "first", "y": "first", "y~": "first"}, before)
	})
}
