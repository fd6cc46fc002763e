package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The benchmarks create files of 4 KiB, 100 in each directory, below TMPDIR. They leave them to be removed at the end:
// ext4 without a journal does not use the inodes of removed files again for a while, and searching for others takes
// longer than the rest.

const (
	benchSize  = 4096
	benchFiles = 100 // in one directory
)

var benchMeta = Metadata{Size: benchSize, Mode: 0o644, Modified: Timestamp{Sec: 1_000_000_000}}

// BenchmarkCreate compares Put with what cp does: create a file under its final name and write it.
func BenchmarkCreate(b *testing.B) {
	content := make([]byte, benchSize)
	b.Run("plain", func(b *testing.B) {
		folder := b.TempDir()
		for i := range b.N {
			in := filepath.Join(folder, fmt.Sprint(i/benchFiles))
			if i%benchFiles == 0 {
				mustBench(b, os.Mkdir(in, 0o700))
			}
			mustBench(b, os.WriteFile(filepath.Join(in, fmt.Sprint(i)), content, 0o644))
		}
	})
	b.Run("put", func(b *testing.B) {
		fill := newBenchTree(b, wire.DurabilityNone, true)
		for i := range b.N {
			mustBench(b, fill.next(i).Put(fmt.Sprint(i), content, benchMeta))
		}
		fill.end()
	})
}

// BenchmarkDurable compares the ways to make files and their names durable, with different numbers of files between
// two acknowledgements. An operation is one file.
func BenchmarkDurable(b *testing.B) {
	for _, batch := range []int{1, 16, 64, 256} {
		for _, way := range []string{"fsync", "syncfs"} {
			b.Run(fmt.Sprintf("%s/batch=%d", way, batch), func(b *testing.B) {
				fill := newBenchTree(b, wire.DurabilityFull, way == "syncfs")
				for i := 0; i < b.N; i += batch {
					fill.commit(i, min(batch, b.N-i))
				}
				fill.end()
			})
		}
	}
}

// benchTree fills a tree, one directory after the other.
type benchTree struct {
	b    *testing.B
	tree *Tree
	in   *Directory
}

func newBenchTree(b *testing.B, durability Durability, syncfs bool) *benchTree {
	tree, err := OpenTree(OS, filepath.Join(b.TempDir(), "tree"), TreeOptions{
		Durability: durability, Preserve: Preserve{Mode: true, Times: true},
	})
	mustBench(b, err)
	system := tree.root.system
	switch {
	case system.dir == nil && durability == wire.DurabilityFull && syncfs:
		b.Skip("syncfs(2) is not used on this file system")
	case system.dir != nil && !syncfs:
		mustBench(b, system.dir.Close())
		system.dir = nil
	}
	b.ResetTimer()
	return &benchTree{b: b, tree: tree}
}

// next returns the directory of file i.
func (f *benchTree) next(i int) *Directory {
	if i%benchFiles != 0 {
		return f.in
	}
	if f.in != nil {
		f.in.Release()
	}
	in, _, err := f.tree.Root().Enter(fmt.Sprint(i/benchFiles), true)
	mustBench(f.b, err)
	f.in = in
	return in
}

// commit creates files from number from on, and makes them durable together.
func (f *benchTree) commit(from, count int) {
	content := make([]byte, benchSize)
	staged := make([]*Staged, 0, count)
	for i := from; i < from+count; i++ {
		s, err := f.next(i).Stage(fmt.Sprint(i), content, benchMeta)
		mustBench(f.b, err)
		staged = append(staged, s)
	}
	mustBench(f.b, f.tree.Sync())
	for _, s := range staged {
		mustBench(f.b, s.Commit())
	}
	mustBench(f.b, f.tree.Sync())
}

func (f *benchTree) end() {
	f.b.StopTimer()
	f.in.Release()
	mustBench(f.b, f.tree.Close(true))
}

func mustBench(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}
