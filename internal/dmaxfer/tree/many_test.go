package tree_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
)

// TestDirectoriesOfManyNamesTakeLittleMemory walks nested directories of many names each, whose lists do not fit
// together.
func TestDirectoriesOfManyNamesTakeLittleMemory(t *testing.T) {
	const levels, count = 4, 20_000
	root := inMemory(t)
	build(t, root, "x")
	in := root
	for range levels {
		in += "/m"
		must(t, os.Mkdir(in, 0o755))
		for i := range count {
			must(t, os.Link(filepath.Join(root, "x"), fmt.Sprintf("%s/name-%05d", in, i)))
		}
	}
	w, err := tree.Open(disk.OS, root, tree.Options{})
	must(t, err)
	defer w.Close()
	const one = count * 15 // bytes of a list
	w.Restrict(tree.Limits{Names: one * 3 / 2})
	before, largest := heap(), 0
	found := 0
	for ; err == nil; found++ {
		var e tree.Entry
		e, err = w.Next()
		e.Release()
		if found%(count/4) == 0 {
			largest = max(largest, heap()-before)
		}
	}
	if err != io.EOF || found-1 != 2+levels*(count+1) {
		t.Errorf("%d entries (%v)", found-1, err)
	}
	if largest > 2*one*5/4 {
		t.Errorf("the walk takes %d bytes, and one list %d", largest, one)
	}
}

// TestOneDirectoryOfManyNamesTakesLittleMemory walks a directory whose list alone does not fit.
func TestOneDirectoryOfManyNamesTakesLittleMemory(t *testing.T) {
	const count = 40_000
	root := inMemory(t)
	build(t, root, "x")
	for i := range count {
		must(t, os.Link(filepath.Join(root, "x"), fmt.Sprintf("%s/name-%05d", root, i*7919%count)))
	}
	w, err := tree.Open(disk.OS, root, tree.Options{})
	must(t, err)
	defer w.Close()
	const limit = 100_000 // bytes, of 600,000 that all names take
	w.Restrict(tree.Limits{Names: limit})
	before, largest := heap(), 0
	first, err := w.Next()
	must(t, err)
	first.Release()
	for i := range count {
		e, err := w.Next()
		must(t, err)
		if want := fmt.Sprintf("name-%05d", i); e.Name != want {
			t.Fatalf("%s, want %s", e.Name, want)
		}
		e.Release()
		if i%(count/20) == 0 {
			largest = max(largest, heap()-before)
		}
	}
	if e, err := w.Next(); err != nil || e.Name != "x" {
		t.Errorf("%s (%v)", e.Name, err)
	} else {
		e.Release()
	}
	if _, err := w.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if largest > 2*limit {
		t.Errorf("the walk takes %d bytes", largest)
	}
}

// heap returns the number of bytes in use.
func heap() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
