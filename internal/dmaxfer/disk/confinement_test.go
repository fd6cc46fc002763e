package disk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// flips is how often another process exchanges each directory with a symlink.
const flips = 100_000

// flipper exchanges directories of a tree with symlinks that lead out of it.
type flipper struct {
	t     *testing.T
	ended sync.WaitGroup
	done  atomic.Int32 // flippers that have flipped often enough
	stop  atomic.Bool
}

// flip exchanges a directory and a symlink beside it until stop is set, at least as often as flips. It uses the handle
// of the directory that contains both, so that it does not follow another flipper's symlinks itself.
func (f *flipper) flip(parent, name, text string) {
	in, err := unix.Open(parent, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(f.t, err)
	must(f.t, unix.Symlinkat(text, in, name+".other"))
	f.ended.Go(func() {
		defer unix.Close(in)
		for i := 0; i < flips || !f.stop.Load(); i++ {
			if err := unix.Renameat2(in, name, in, name+".other", unix.RENAME_EXCHANGE); err != nil {
				f.t.Error(err)
				f.done.Add(2)
				return
			}
			if i == flips {
				f.done.Add(1)
			}
		}
	})
}

// TestNothingLeadsOut receives files while directories of the target are exchanged with symlinks to a directory
// outside. Nothing may ever be created or changed there.
func TestNothingLeadsOut(t *testing.T) {
	t.Run("disk", func(t *testing.T) { mustStayInside(t, t.TempDir()) })
	t.Run("tmpfs", func(t *testing.T) { mustStayInside(t, shared(t)) })
	t.Run("old kernel", func(t *testing.T) {
		disk.OldKernel(t)
		mustStayInside(t, shared(t))
	})
}

func mustStayInside(t *testing.T, parent string) {
	outside := filepath.Join(parent, "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "inner"), 0o700))
	must(t, os.WriteFile(filepath.Join(outside, "precious"), []byte(oldText), 0o600))
	before := listing(t, outside)
	must(t, os.MkdirAll(filepath.Join(parent, "tree/flipped/inner"), 0o700))
	tree := mustOpenTree(t, onDisk(t, parent), "tree", disk.TreeOptions{Overwrite: true, Preserve: allTimes})
	f := &flipper{t: t}
	f.flip(filepath.Join(parent, "tree/flipped"), "inner", "../../outside/inner")
	f.flip(filepath.Join(parent, "tree"), "flipped", outside)
	r := &flippedReceiver{tree: tree, held: holdMany(t, tree)}
	for f.done.Load() < 2 || r.done < 60 || r.refused < 60 {
		r.receive()
	}
	f.stop.Store(true)
	f.ended.Wait()
	for _, d := range r.held {
		d.Release()
	}
	must(t, tree.Close(true))
	if after := listing(t, outside); after != before {
		t.Errorf("outside there was\n%sand is\n%s", before, after)
	}
	for _, err := range r.wrong {
		t.Error(err)
	}
}

// holdMany enters so many directories that the tree has to close others.
func holdMany(t *testing.T, tree *disk.Tree) (held []*disk.Directory) {
	for i := range 70 {
		held = append(held, mustEnter(t, tree.Root(), fmt.Sprint("many", i)))
	}
	return held
}

// listing returns everything about the files below a directory that a receiver could change.
func listing(t *testing.T, root string) string {
	t.Helper()
	var text strings.Builder
	must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			return err
		}
		fmt.Fprintln(&text, path, stat.Ino, stat.Mode, stat.Nlink, stat.Size, stat.Mtim, stat.Ctim)
		return nil
	}))
	return text.String()
}

// flippedReceiver uses every operation of a tree in directories that are exchanged meanwhile.
type flippedReceiver struct {
	tree          *disk.Tree
	held          []*disk.Directory
	done, refused int
	wrong         []error // that are no Error of a target
}

func (r *flippedReceiver) note(err error) {
	switch _, is := errors.AsType[*disk.Error](err); {
	case err == nil:
		r.done++
	case is && errors.Is(err, disk.ErrTarget):
		r.refused++
	case len(r.wrong) < 10:
		r.wrong = append(r.wrong, err)
	}
}

func (r *flippedReceiver) receive() {
	flipped, _, err := r.tree.Root().Enter("flipped", true)
	r.note(err)
	r.note(r.tree.Root().Link("linked", "flipped/inner/file"))
	if err != nil {
		return
	}
	defer flipped.Release()
	inner, _, err := flipped.Enter("inner", true)
	r.note(err)
	if err != nil {
		return
	}
	defer inner.Release()
	r.fill(inner)
	r.fill(flipped)
	for _, d := range r.held { // so that the others are opened again
		_, _ = d.Stat("absent")
	}
	r.fill(inner)
	r.fill(flipped)
}

func (r *flippedReceiver) fill(d *disk.Directory) {
	meta := disk.Metadata{Mode: 0o600, Modified: disk.Timestamp{Sec: 3}}
	r.note(d.Put("file", []byte(newText), meta))
	r.note(d.Symlink("symlink", "/", meta))
	r.note(receivePartial(d))
	child, _, err := d.Enter("child", true)
	r.note(err)
	if err == nil {
		child.Release()
	}
	r.note(d.Leave(disk.Metadata{Mode: 0o711, Modified: disk.Timestamp{Sec: 3}}))
}

func receivePartial(d *disk.Directory) error {
	want := wanted(100)
	want.Resume = false
	p, err := d.Partial("precious", want)
	if err != nil {
		return err
	}
	defer p.Discard()
	return p.WriteAt([]byte(newText[:100]), 0)
}

// openDescriptors returns the number of descriptors of this process.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// mostDescriptors is the number of descriptors that a tree may have open: directories, marker, and one call.
const mostDescriptors = 64 + 16

func TestDeepTree(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		at, m := inMemory()
		fillDeepTree(t, at)
		if open := m.Handles(); open != 0 {
			t.Errorf("%d handles are open", open)
		}
	})
	t.Run("tmpfs", func(t *testing.T) { fillDeepTree(t, onDisk(t, shared(t))) })
}

// fillDeepTree uses the directories of a deep tree from the top down and back.
func fillDeepTree(t *testing.T, at testDir) {
	const depth = 1000
	before := openDescriptors(t)
	tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Preserve: allTimes})
	d, held := tree.Root(), []*disk.Directory{}
	for range depth {
		d = mustEnter(t, d, "d")
		held = append(held, d)
	}
	for i, d := range held {
		must(t, d.Put("file", fmt.Append(nil, i), disk.Metadata{Mode: 0o600}))
	}
	if open := openDescriptors(t) - before; open > mostDescriptors {
		t.Errorf("%d descriptors are open", open)
	}
	for i := depth - 1; i >= 0; i-- {
		if info, err := held[i].Stat("file"); err != nil || info.Size != int64(len(fmt.Sprint(i))) {
			t.Fatalf("in level %d there is %+v, %v", i, info, err)
		}
		must(t, held[i].Leave(disk.Metadata{Mode: 0o700}))
		held[i].Release()
	}
	must(t, tree.Close(true))
	at.mustHold(t, "tree")
}

func TestManyDirectoriesAreHeld(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		const count = 500
		before := openDescriptors(t)
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{})
		var held []*disk.Directory
		for i := range count {
			outer := mustEnter(t, tree.Root(), fmt.Sprint(i))
			held = append(held, mustEnter(t, outer, "inner"))
			outer.Release()
		}
		for i, d := range held {
			must(t, d.Put("file", fmt.Append(nil, i), disk.Metadata{}))
		}
		if open := openDescriptors(t) - before; open > mostDescriptors {
			t.Errorf("%d descriptors are open", open)
		}
		for _, d := range held {
			d.Release()
		}
		must(t, tree.Close(true))
		for i := range count {
			at.mustContain(t, fmt.Sprintf("tree/%d/inner/file", i), fmt.Sprint(i))
		}
	})
}

// A directory that was moved away is not opened a second time, nor is another one in its place.
func TestReplacedDirectoryIsNotUsed(t *testing.T) {
	at := onDisk(t, t.TempDir())
	tree := mustOpenTree(t, at, "tree", disk.TreeOptions{})
	outer := mustEnter(t, tree.Root(), "outer")
	inner := mustEnter(t, outer, "inner")
	held := holdMany(t, tree)
	must(t, os.Rename(at.path("tree/outer/inner"), at.path("moved")))
	mustFail(t, inner.Put("file", nil, disk.Metadata{}), disk.ErrChanged, "cannot open outer/inner again")
	must(t, os.Mkdir(at.path("tree/outer/inner"), 0o700))
	mustFail(t, inner.Put("file", nil, disk.Metadata{}), disk.ErrChanged, "it is another directory")
	for _, d := range append(held, inner, outer) {
		d.Release()
	}
	must(t, tree.Close(true))
	if names := onDisk(t, at.path("moved")).names(t); len(names) > 0 {
		t.Errorf("there is %q", names)
	}
}

// Lanes create files in the same and in different directories while others are entered.
func TestLanesFillATree(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		const count = 300
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Durability: wire.DurabilityNone, Preserve: allTimes})
		type work struct {
			in   *disk.Directory
			file int
		}
		queue := make(chan work)
		var lanes sync.WaitGroup
		for range 2 {
			lanes.Go(func() {
				for w := range queue {
					if err := w.in.Put(fmt.Sprint(w.file), fmt.Append(nil, w.file), metaOf("")); err != nil {
						t.Error(err)
					}
					w.in.Release()
				}
			})
		}
		shared := mustEnter(t, tree.Root(), "shared")
		must(t, shared.Put("first", []byte(newText), metaOf(newText)))
		for i := range count {
			own := mustEnter(t, tree.Root(), fmt.Sprint("own", i))
			for _, in := range []*disk.Directory{shared, own} {
				in.Hold()
				queue <- work{in, i}
			}
			if err := own.Link("again", "shared/first"); err != nil {
				t.Error(err)
			}
			own.Release()
		}
		close(queue)
		lanes.Wait()
		must(t, shared.Leave(metaOf("")))
		shared.Release()
		must(t, tree.Close(true))
		for i := range count {
			at.mustContain(t, fmt.Sprint("tree/shared/", i), fmt.Sprint(i))
			at.mustContain(t, fmt.Sprintf("tree/own%d/%d", i, i), fmt.Sprint(i))
			at.mustContain(t, fmt.Sprintf("tree/own%d/again", i), newText)
		}
	})
}
