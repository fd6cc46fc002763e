package tree_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

func TestWithoutFolded(t *testing.T) {
	file := func(path string, number uint64) tree.Listed {
		return tree.Listed{Path: path, Kind: wire.EntryFile, File: number}
	}
	sized := func(path string, number uint64, size int64) tree.Listed {
		return tree.Listed{Path: path, Kind: wire.EntryFile, File: number, Size: size}
	}
	for name, c := range map[string]struct {
		extra, found []tree.Listed
		want         []string
	}{
		"nothing found": {extra: []tree.Listed{file("a", 1)}, want: []string{"a"}},
		"case": {
			extra: []tree.Listed{file("A", 1), file("b", 2)}, found: []tree.Listed{file("a", 1)}, want: []string{"b"},
		},
		"hard link elsewhere": {
			extra: []tree.Listed{file("D/A", 1), file("e/x", 1)}, found: []tree.Listed{file("D/a", 1)},
			want: []string{"e/x"},
		},
		"another number for each name, as in FUSE": {
			extra: []tree.Listed{sized("A", 1, 5), sized("B", 2, 6)}, found: []tree.Listed{sized("a", 3, 5)},
			want: []string{"B"},
		},
		"and other attributes": {
			extra: []tree.Listed{sized("A", 1, 5), {Path: "D", Kind: wire.EntryDirectory, File: 7}},
			found: []tree.Listed{sized("a", 3, 6)}, want: []string{"D"},
		},
		"directory": {
			extra: []tree.Listed{file("D/a", 1), file("D/e/b", 2), file("D/e", 3), file("D", 4), file("E", 5)},
			found: []tree.Listed{file("d", 4)}, want: []string{"E"},
		},
		"another directory with the same begin": {
			extra: []tree.Listed{file("D", 4), file("Dx", 5)}, found: []tree.Listed{file("d", 4)}, want: []string{"Dx"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range tree.WithoutFolded(c.extra, c.found) {
				got = append(got, e.Path)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Extra says what the target lacks, which a target that folds names lists under another one.
func TestExtraNamesWhatIsMissing(t *testing.T) {
	var missing []string
	source := listing("A", "D/", "D/a", "b", "e/", "e/f", "z")
	target := listing("a", "b", "d/", "d/a", "e/", "y")
	isMissing := func(e tree.Listed) { missing = append(missing, e.Path) }
	_, err := collect(tree.Extra(source, target, tree.Removal{}, isMissing))
	must(t, err)
	if want := []string{"A", "D", "D/a", "e/f", "z"}; !slices.Equal(missing, want) {
		t.Errorf("%q are missing, want %q", missing, want)
	}
}

func TestRecord(t *testing.T) {
	add := func(m *tree.Mirror) {
		m.Announced(wire.EntryDirectory, 0, "")
		m.Announced(wire.EntryDirectory, 1, "d")
		m.Announced(wire.EntryFile, 2, "f")
		m.Announced(wire.EntryDirectory, 2, "g")
		m.Announced(wire.EntryHardLink, 3, "h")
		m.Announced(wire.EntrySymlink, 1, "l")
	}
	m := &tree.Mirror{Entries: tree.NewRecord(1000)}
	add(m)
	m.Begin() // an attempt that was given up
	add(m)
	got, err := collect(m.Entries.List())
	must(t, err)
	if want := []string{"d/", "d/f", "d/g/", "d/g/h", "l"}; !slices.Equal(got, want) || m.Entries.Len() != 5 {
		t.Errorf("%d entries: %q, want %q", m.Entries.Len(), got, want)
	}
	small := &tree.Mirror{Entries: tree.NewRecord(10)}
	add(small)
	if _, err := collect(small.Entries.List()); !errors.Is(err, tree.ErrRecordFull) {
		t.Errorf("got %v from a record that is full", err)
	}
	add(nil)
	(&tree.Mirror{}).Announced(wire.EntryFile, 1, "not recorded")
}
