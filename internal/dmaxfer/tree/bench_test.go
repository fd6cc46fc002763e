package tree_test

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// smallFiles creates a tree of 10,000 files in 100 directories.
func smallFiles(b *testing.B) (root string) {
	root = inMemory(b)
	for i := range 10_000 {
		build(b, root, fmt.Sprintf("directory-%02d/file-%04d", i/100, i))
	}
	return root
}

func BenchmarkWalk(b *testing.B) {
	root := smallFiles(b)
	b.Run("tree", func(b *testing.B) { benchmarkTree(b, root, tree.Options{}, false) })
	b.Run("tree with a filter", func(b *testing.B) {
		rules := []tree.Rule{include("keep.o"), exclude("*.o"), exclude("/build/"), exclude("a/**/b")}
		filter, err := tree.NewFilter(rules)
		must(b, err)
		benchmarkTree(b, root, tree.Options{Filter: filter}, false)
	})
	b.Run("tree and open", func(b *testing.B) { benchmarkTree(b, root, tree.Options{}, true) })
	b.Run("WalkDir", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
				if err == nil {
					_, err = entry.Info()
				}
				return err
			}))
		}
	})
}

func benchmarkTree(b *testing.B, root string, o tree.Options, open bool) {
	b.ReportAllocs()
	for b.Loop() {
		w, err := tree.Open(disk.OS, root, o)
		must(b, err)
		for {
			e, err := w.Next()
			if err == io.EOF {
				break
			}
			must(b, err)
			if open && e.Kind == wire.EntryFile {
				source, err := e.Open()
				must(b, err)
				source.Close()
			}
			e.Release()
		}
		w.Close()
	}
}
