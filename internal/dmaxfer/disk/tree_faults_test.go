package disk_test

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Every file operation of a tree's transfer fails, one after the other.

// treeCase is one situation in which a tree is received.
type treeCase struct {
	existing   bool // there is a tree with other content, and it is overwritten
	lacking    disktest.Lacking
	durability disk.Durability
	mount      bool // the directory in the existing tree is on another file system
}

var treeCases = map[string]treeCase{
	"new":                      {durability: wire.DurabilityFull},
	"new, not durable":         {},
	"replacing":                {existing: true, durability: wire.DurabilityFull},
	"new, without syncfs":      {lacking: disktest.Lacking{SyncFS: true}, durability: wire.DurabilityFull},
	"new, with names":          {lacking: disktest.Lacking{Unnamed: true}, durability: wire.DurabilityFile},
	"replacing, with names":    {existing: true, lacking: disktest.Lacking{Unnamed: true}},
	"replacing, without these": {true, disktest.Lacking{SyncFS: true, Unnamed: true}, wire.DurabilityFull, false},
	"two file systems":         {existing: true, durability: wire.DurabilityFull, mount: true},
}

func (c treeCase) prepare() *disktest.Memory {
	m := disktest.NewMemory("/there")
	if c.existing {
		m = disktest.NewMemory("/there", "/there/tree", "/there/tree/dir")
		m.SetDirectory("/there/tree", 0o755, m.Self().UID)
		m.SetDirectory("/there/tree/dir", 0o700, m.Self().UID)
		if c.mount {
			m.Mount("/there/tree/dir")
		}
		for name, text := range oldEntries {
			if name != "dir/link" {
				m.Put("/there/tree/"+name, text)
			}
		}
		m.Symlink(oldEntries["dir/link"], "/there/tree/dir/link", m.Self().UID)
	}
	m.Without(c.lacking)
	return m
}

func (c treeCase) options() disk.TreeOptions {
	return disk.TreeOptions{
		Overwrite: c.existing, Durability: c.durability,
		Preserve: disk.Preserve{Mode: true, Times: true, Owner: true, Xattrs: true},
	}
}

// The content of the tree before, and after a transfer of everything. The value of dir/link is its text.
var (
	oldEntries = map[string]string{
		"a": oldText, "dir/b": "", "dir/c": oldText[:100], "dir/link": "../a", "dir/hard": oldText[:7],
		"dir/large": oldText,
	}
	newEntries = map[string]string{
		"a": newText[:5000], "dir/b": "b", "dir/c": newText[:10], "dir/link": "c", "dir/hard": newText[:5000],
		"dir/large": newText, "new/x/y": newText[:6],
	}
)

// treeReceiver receives newEntries and notes the result of each.
type treeReceiver struct {
	t       *testing.T
	tree    *disk.Tree
	meta    disk.Metadata
	results map[string]error
	other   error // of directories and of the end
}

func receiveTree(t *testing.T, on disk.FS, c treeCase) *treeReceiver {
	r := &treeReceiver{t: t, results: make(map[string]error)}
	r.meta = disk.Metadata{
		Mode: 0o750, UID: on.Self().UID, Modified: disk.Timestamp{Sec: 9}, Xattrs: xattrs(disk.Xattr{Name: "user.x"}),
	}
	tree, err := disk.OpenTree(on, "/there/tree", c.options())
	if err != nil {
		r.note("", err)
		return r
	}
	r.tree = tree
	root := tree.Root()
	r.note("", root.SetXattrs(r.meta.Xattrs))
	r.note("a", root.Put("a", []byte(newEntries["a"]), r.meta))
	if dir := r.enter(root, "dir"); dir != nil {
		r.receiveDir(dir)
		r.note("", dir.Leave(r.meta))
		dir.Release()
	}
	if dir := r.enter(root, "new"); dir != nil {
		if inner := r.enter(dir, "x"); inner != nil {
			r.note("new/x/y", inner.Put("y", []byte(newEntries["new/x/y"]), r.meta))
			r.note("", inner.Leave(r.meta))
			inner.Release()
		}
		r.note("", dir.Leave(r.meta))
		dir.Release()
	}
	r.note("", root.Leave(r.meta))
	r.note("", tree.Sync())
	r.note("", tree.Close(r.failures() == 0))
	return r
}

func (r *treeReceiver) enter(in *disk.Directory, name string) *disk.Directory {
	child, _, err := in.Enter(name, true)
	r.note("", err)
	if child != nil {
		r.note("", child.SetXattrs(r.meta.Xattrs))
	}
	return child
}

func (r *treeReceiver) receiveDir(dir *disk.Directory) {
	b, err := dir.Stage("b", []byte(newEntries["dir/b"]), r.meta)
	r.note("dir/b", err)
	c, err := dir.Stage("c", []byte(newEntries["dir/c"]), r.meta)
	r.note("dir/c", err)
	flushed := r.tree.Sync()
	r.note("", flushed)
	r.finish("dir/b", b, flushed)
	r.finish("dir/c", c, flushed)
	r.note("dir/link", dir.Symlink("link", newEntries["dir/link"], r.meta))
	if r.results["a"] == nil {
		r.note("dir/hard", dir.Link("hard", "a"))
	}
	r.note("dir/large", r.receiveLarge(dir))
	_, err = dir.Stat("c")
	r.note("", err)
	r.note("", dir.Flush("c"))
}

// finish commits a staged file if it was flushed.
func (r *treeReceiver) finish(name string, s *disk.Staged, flushed error) {
	switch {
	case s == nil:
	case flushed != nil:
		s.Discard()
		r.note(name, flushed)
	default:
		r.note(name, s.Commit())
	}
}

func (r *treeReceiver) receiveLarge(dir *disk.Directory) error {
	want := wanted(len(newText))
	want.Preserve = disk.Preserve{Mode: true, Times: true}
	p, err := dir.Partial("large", want)
	if err != nil {
		return err
	}
	defer p.Discard()
	if err := write(r.t, p, newText); err != nil {
		return err
	}
	meta := r.meta
	meta.Size = int64(len(newText))
	if err := p.Prepare(r.t.Context(), meta, wire.DurabilityFile, nil); err != nil {
		return err
	}
	return p.Commit(wire.DurabilityFull)
}

// note records the first error of an entry; an empty name is for everything else.
func (r *treeReceiver) note(name string, err error) {
	if name == "" {
		r.other = errors.Join(r.other, err)
	} else if err != nil || r.results[name] == nil {
		r.results[name] = err
	}
}

func (r *treeReceiver) failures() (count int) {
	if r.other != nil {
		count++
	}
	for _, err := range r.results {
		if err != nil {
			count++
		}
	}
	return count
}

// entryAt returns the content of a file or the text of a symlink.
func entryAt(m *disktest.Memory, name string) (text string, found bool) {
	dir, base := disk.Split("/there/tree/" + name)
	at, err := m.OpenDir(dir)
	if err != nil {
		return "", false
	}
	defer at.Close()
	if link, err := at.ReadLink(base); err == nil {
		return link.Text, true
	}
	if _, err := at.Stat(base); err != nil {
		return "", false
	}
	return m.Get("/there/tree/" + name)
}

// mustBeWhole checks that every entry has its old content or the new one, and the new one if it was acknowledged.
func (r *treeReceiver) mustBeWhole(t *testing.T, m *disktest.Memory, c treeCase, op string) {
	t.Helper()
	for name, whole := range newEntries {
		text, found := entryAt(m, name)
		before, existed := oldEntries[name]
		existed = existed && c.existing
		old := found == existed && (!found || text == before)
		err, tried := r.results[name]
		switch {
		case tried && err == nil && text != whole:
			t.Errorf("after a fault in %q %s was received, and has %d bytes", op, name, len(text))
		case !old && text != whole:
			t.Errorf("after a fault in %q %s has %d bytes that are neither old nor new", op, name, len(text))
		}
	}
}

// treeMayFailSilently reports whether a failure of the operation does not affect the result.
func treeMayFailSilently(op string) bool {
	return slices.Contains([]string{
		"close there", "close tree", "close dir", "close new", "close x", "close .", // directories are only read
		"close c",                   // the same
		"close .tree.dma-copy-part", // of which only the lock is used
		"close .large.dma-copy-journal", "stat .large.dma-copy-journal",
	}, op)
}

func TestEveryOperationOfATreeFails(t *testing.T) {
	for name, c := range treeCases {
		for _, fault := range []disktest.Fault{{Err: unix.EIO}, {Err: unix.ENOSPC}, {Err: unix.EIO, Done: true}} {
			t.Run(name, func(t *testing.T) {
				operations := 0
				for fired := true; fired; operations++ {
					fired = failTree(t, c, operations, fault)
				}
				if operations < 60 {
					t.Errorf("there were only %d operations", operations)
				}
			})
		}
	}
}

// failTree receives a tree while operation n fails, and then again.
func failTree(t *testing.T, c treeCase, n int, fault disktest.Fault) (fired bool) {
	m := c.prepare()
	faulty := disktest.NewFaulty(m, disktest.FailAt(n, fault))
	r := receiveTree(t, faulty, c)
	op := ""
	if faulty.Fired() {
		op = faulty.Trace()[n]
	}
	r.mustBeWhole(t, m, c, op)
	switch {
	case op == "" && r.failures() > 0:
		t.Errorf("without a fault there are %v and %v", r.results, r.other)
	case op != "" && r.failures() == 0 && !treeMayFailSilently(op):
		t.Errorf("the fault in %q was not reported", op)
	}
	for _, err := range append(slices.Collect(maps.Values(r.results)), r.other) {
		if _, is := errors.AsType[*disk.Error](err); err != nil && (!is || !errors.Is(err, disk.ErrTarget)) {
			t.Errorf("after a fault in %q there is %v", op, err)
		}
	}
	mustHaveNoTemporaries(t, m, fault, op)
	if open := m.Handles(); open != 0 {
		t.Errorf("after a fault in %q %d handles are open", op, open)
	}
	if again := receiveTree(t, m, treeCase{existing: true}); again.failures() > 0 {
		t.Errorf("after a fault in %q the next copy failed: %v and %v", op, again.results, again.other)
	}
	return op != ""
}

// mustHaveNoTemporaries checks that no temporary names are left, except those that could not be removed, or that a
// failed operation made.
func mustHaveNoTemporaries(t *testing.T, m *disktest.Memory, fault disktest.Fault, op string) {
	t.Helper()
	if fault.Done || strings.HasPrefix(op, "remove ") || strings.HasSuffix(op, ".large.dma-copy-journal") {
		return
	}
	for _, path := range []string{"/there/tree", "/there/tree/dir", "/there/tree/new/x"} {
		dir, err := m.OpenDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		names, err := disk.Names(dir)
		must(t, err)
		must(t, dir.Close())
		for _, name := range names {
			if disk.IsReserved(name) {
				t.Errorf("after a fault in %q %s/%s is left", op, path, name)
			}
		}
	}
}
