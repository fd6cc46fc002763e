package tree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// listing returns the Listing of names in the form of build: one with a slash at the end is a directory. One that ends
// with "|" is special, and with "/@" a mount point.
func listing(names ...string) tree.Listing {
	return func(yield func(tree.Listed, error) bool) {
		for _, name := range names {
			if !yield(listed(name), nil) {
				return
			}
		}
	}
}

func listed(name string) tree.Listed {
	if path, isSpecial := strings.CutSuffix(name, "|"); isSpecial {
		return tree.Listed{Path: path, Kind: wire.EntrySpecial}
	}
	name, isMounted := strings.CutSuffix(name, "@")
	path, isDirectory := strings.CutSuffix(name, "/")
	path, _, isLink := strings.Cut(path, " -> ")
	switch {
	case isDirectory:
		return tree.Listed{Path: path, Kind: wire.EntryDirectory, Mounted: isMounted}
	case isLink:
		return tree.Listed{Path: path, Kind: wire.EntrySymlink}
	default:
		return tree.Listed{Path: path, Kind: wire.EntryFile}
	}
}

// listOf returns the Listing of a directory on disk.
func listOf(root string, o tree.Options) tree.Listing {
	return tree.List(func() (*tree.Walk, error) { return tree.Open(disk.OS, root, o) })
}

// collect returns the paths of a listing, those of directories with a slash at the end.
func collect(listing tree.Listing) (paths []string, err error) {
	for entry, err := range listing {
		if err != nil {
			return paths, err
		}
		if entry.Kind == wire.EntryDirectory {
			entry.Path += "/"
		}
		paths = append(paths, entry.Path)
	}
	return paths, nil
}

func mustFilter(t testing.TB, rules ...tree.Rule) *tree.Filter {
	t.Helper()
	f, err := tree.NewFilter(rules)
	must(t, err)
	return f
}

var extraCases = map[string]struct {
	source, target []string
	rules          rules
	want           []string
}{
	"equal": {source: []string{"a", "d/", "d/b"}, target: []string{"a", "d/", "d/b"}},
	"empty": {source: []string{"a"}},
	"all":   {target: []string{"a", "d/", "d/b", "e/"}, want: []string{"a", "d/b", "d/", "e/"}},
	"deeper": {
		source: []string{"d/"}, target: []string{"d/", "d/b/", "d/b/c/", "d/b/c/f", "d/x"},
		want: []string{"d/b/c/f", "d/b/c/", "d/b/", "d/x"},
	},
	"order of components": {
		source: []string{"a/", "a/b", "a-b"}, target: []string{"a/", "a/b", "a/c", "a-b", "a-c"},
		want: []string{"a/c", "a-c"},
	},
	"symlinks are removed": {
		source: []string{"f"}, target: []string{"f", "link -> d", "out -> /etc"}, want: []string{"link", "out"},
	},
	"symlink in place of a directory": {
		source: []string{"d -> e"}, target: []string{"d/", "d/a", "d/b/", "d/b/c", "x"}, want: []string{"x"},
	},
	"file in place of a directory": {source: []string{"d"}, target: []string{"d/", "d/a"}},
	"directory in place of a file": {source: []string{"d/", "d/a"}, target: []string{"d", "e"}, want: []string{"e"}},
	"excluded": {
		target: []string{"a.o", "b", "d/", "d/c.o", "d/x", "e/", "e/f"}, rules: rules{exclude("*.o")},
		want: []string{"b", "d/x", "e/f", "e/"},
	},
	"excluded below": {
		target: []string{"a/", "a/b/", "a/b/c/", "a/b/c/keep", "a/d/", "a/d/e"}, rules: rules{exclude("keep")},
		want: []string{"a/d/e", "a/d/"},
	},
	"excluded directory": {
		target: []string{"cache/", "cache/a", "cache/b/", "cache/b/c", "d/", "d/cache/", "d/cache/e"},
		rules:  rules{exclude("cache/")},
	},
	"excluded directory of both": {
		source: []string{"cache/"}, target: []string{"cache/", "cache/a", "x"}, rules: rules{exclude("cache/")},
		want: []string{"x"},
	},
	"special files": {
		source: []string{"f"}, target: []string{"d/", "d/pipe|", "f", "pipe|"}, want: []string{"d/pipe", "d/", "pipe"},
	},
	"special file in place of a file":      {source: []string{"f"}, target: []string{"f|"}},
	"special file in place of a directory": {source: []string{"f/", "f/x"}, target: []string{"f|"}},
	"included again": {
		target: []string{"a.o", "b.o"}, rules: rules{include("a.o"), exclude("*.o")}, want: []string{"a.o"},
	},
}

// What is in the way of entries of the source, and with it what is extra. Nothing below a mount point is either. A
// directory that will be set aside is alone, unless something in it has to stay where it is.
func TestInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		source, target []string
		rules          rules
		aside          bool
		want, both     []string
	}{
		"nothing": {
			source: []string{"a", "d/", "l -> a"}, target: []string{"a -> d", "d/", "d/x", "l", "x"},
			both: []string{"d/x", "x"},
		},
		"directories": {
			source: []string{"a", "l -> a"}, target: []string{"a/", "a/b/", "a/b/c", "a/p|", "a-", "l/", "l/x"},
			want: []string{"a/b/c", "a/b/", "a/p", "a/", "l/x", "l/"},
			both: []string{"a/b/c", "a/b/", "a/p", "a/", "a-", "l/x", "l/"},
		},
		"no directories": {
			source: []string{"a/", "b/", "c/"}, target: []string{"a", "b -> a", "c|", "d|"},
			want: []string{"a", "b", "c"}, both: []string{"a", "b", "c", "d"},
		},
		"special files": {
			source: []string{"a", "l -> a"}, target: []string{"a|", "l|", "x|"},
			want: []string{"a", "l"}, both: []string{"a", "l", "x"},
		},
		"excluded": {
			source: []string{"a"}, target: []string{"a/", "a/b.o", "a/x"}, rules: rules{exclude("*.o")},
			want: []string{"a/x"}, both: []string{"a/x"},
		},
		"one after the other": {
			source: []string{"a", "b/", "b/c", "d -> x", "e/", "f -> y"},
			target: []string{"a/", "a/x/", "a/x/y", "b", "d/", "d/z", "e/", "e/extra", "extra/", "extra/x", "f"},
			want:   []string{"a/x/y", "a/x/", "a/", "b", "d/z", "d/"},
			both:   []string{"a/x/y", "a/x/", "a/", "b", "d/z", "d/", "e/extra", "extra/x", "extra/"},
		},
		"mount points": {
			source: []string{"a", "d/", "m/"},
			target: []string{"a/@", "a/x", "d/", "d/e/", "d/e/m/@", "d/e/m/x", "m/@", "m/x"},
			want:   []string{"a/"}, both: []string{"a/", "d/e/m/", "m/x"},
		},
		"mount point in what is in the way": {
			source: []string{"a"}, target: []string{"a/", "a/m/@", "a/m/x", "a/x"},
			want: []string{"a/m/", "a/x"}, both: []string{"a/m/", "a/x"},
		},
		"set aside as a whole": {
			source: []string{"a", "b/", "l -> a"}, target: []string{"a/", "a/b/", "a/b/c", "a/p|", "b", "l/", "l/x~"},
			aside: true, want: []string{"a/", "b", "l/"}, both: []string{"a/", "b", "l/"},
		},
		"set aside, with names of backups": {
			source: []string{"a~", "b~/", "c~"}, target: []string{"a~/", "a~/x", "b~", "c~", "d~", "e~/", "e~/x"},
			aside: true, want: []string{"a~/", "b~"}, both: []string{"a~/", "b~"},
		},
		"set aside, with what holds them": {
			source: []string{"a"}, target: []string{"a/", "a/x", "d/", "d/e/", "d/e/f", "d/g/", "d/p|", "f/", "f/x~"},
			aside: true, want: []string{"a/"}, both: []string{"a/", "d/e/f", "d/g/", "d/p"},
		},
		"not set aside": {
			source: []string{"a", "b"}, target: []string{"a/", "a/m/@", "a/m/x", "a/x", "b/", "b/c.o", "b/x"},
			rules: rules{exclude("*.o")}, aside: true, want: []string{"a/m/"}, both: []string{"a/m/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			removal := tree.Removal{Protect: mustFilter(t, c.rules...), Aside: c.aside}
			source, target := listing(c.source...), listing(c.target...)
			both := tree.ExtraOrInTheWay(source, target, removal, nil)
			got, err := collect(inTheWay(both))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			got, err = collect(both)
			if err != nil || !slices.Equal(got, c.both) {
				t.Errorf("with the extra ones got %q, %v, want %q", got, err, c.both)
			}
		})
	}
}

// inTheWay leaves out what is only extra.
func inTheWay(both tree.Listing) tree.Listing {
	return func(yield func(tree.Listed, error) bool) {
		for e, err := range both {
			if (e.InTheWay || err != nil) && !yield(e, err) {
				return
			}
		}
	}
}

func TestFoldedInTheWay(t *testing.T) {
	file, directory, special := wire.EntryFile, wire.EntryDirectory, wire.EntrySpecial
	missing := []tree.Listed{{Path: "A", Kind: file}, {Path: "B", Kind: directory}, {Path: "C", Kind: file},
		{Path: "D", Kind: directory}, {Path: "E", Kind: file}}
	found := []tree.Listed{{Path: "A", Kind: directory}, {Path: "B", Kind: file}, {Path: "D", Kind: directory},
		{Path: "E", Kind: special}}
	var paths string
	for _, e := range tree.FoldedInTheWay(missing, found) {
		if paths += e.Path; !e.InTheWay {
			t.Errorf("%s is not in the way", e.Path)
		}
	}
	if paths != "ABE" {
		t.Errorf("%s are in the way, want A, B and E", paths)
	}
}

func TestExtra(t *testing.T) {
	for name, c := range extraCases {
		t.Run(name, func(t *testing.T) {
			removal := tree.Removal{Protect: mustFilter(t, c.rules...)}
			got, err := collect(tree.Extra(listing(c.source...), listing(c.target...), removal, nil))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			mustRemoveExtra(t, c.source, c.target, removal, len(c.want))
		})
	}
}

// mustRemoveExtra does the same on disk, where the source excludes the same entries.
func mustRemoveExtra(t *testing.T, source, target []string, removal tree.Removal, want int) {
	t.Helper()
	from, to := t.TempDir(), t.TempDir()
	build(t, from, source...)
	build(t, to, target...)
	dir, err := disk.OS.OpenDir(to)
	must(t, err)
	defer dir.Close()
	all := tree.Options{All: true}
	before, err := collect(listOf(to, all))
	must(t, err)
	extra := tree.Extra(listOf(from, tree.Options{Filter: removal.Protect}), listOf(to, all), removal, nil)
	paths, err := collect(extra)
	must(t, err)
	for _, path := range paths {
		must(t, disk.RemoveExtra(dir, strings.TrimSuffix(path, "/")))
	}
	after, err := collect(listOf(to, all))
	must(t, err)
	if len(paths) != want || len(after) != len(before)-len(paths) {
		t.Errorf("%q were removed, and %q remain of %q", paths, after, before)
	}
}

// A list of a peer may be in any order, or end early. Nothing may be removed then.
func TestExtraNeedsSortedLists(t *testing.T) {
	good := listing("a", "b", "c/", "c/d")
	for _, wrong := range []tree.Listing{
		listing("b", "a"), listing("a", "a"), listing("c/d", "c/"), listing("a-b", "a/b"), listing("a", ""),
	} {
		for _, lists := range [][2]tree.Listing{{wrong, good}, {good, wrong}} {
			_, err := collect(tree.Extra(lists[0], lists[1], tree.Removal{}, nil))
			if !errors.Is(err, tree.ErrNotSorted) {
				t.Errorf("the error is %v", err)
			}
		}
	}
}

var errList = errors.New("the connection was lost")

// broken yields the names, and then an error.
func broken(names ...string) tree.Listing {
	return func(yield func(tree.Listed, error) bool) {
		for entry := range listing(names...) {
			if !yield(entry, nil) {
				return
			}
		}
		yield(tree.Listed{}, errList)
	}
}

func TestExtraNeedsWholeLists(t *testing.T) {
	for _, lists := range [][2]tree.Listing{
		{broken("a"), listing("a", "b")}, {listing("a"), broken("a", "b")},
		{broken(), listing("a")}, {listing("a"), broken()},
	} {
		if _, err := collect(tree.Extra(lists[0], lists[1], tree.Removal{}, nil)); !errors.Is(err, errList) {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestExtraIsAStream takes the first extra entries of lists that never end.
func TestExtraIsAStream(t *testing.T) {
	numbers := func(step int) tree.Listing {
		return func(yield func(tree.Listed, error) bool) {
			for i := 0; yield(tree.Listed{Path: fmt.Sprintf("%012d", i), Kind: wire.EntryFile}, nil); i += step {
			}
		}
	}
	want := 0
	for entry, err := range tree.Extra(numbers(2), numbers(1), tree.Removal{}, nil) {
		must(t, err)
		want++
		if entry.Path != fmt.Sprintf("%012d", 2*want-1) {
			t.Fatalf("%s is number %d", entry.Path, want)
		}
		if want == 1000 {
			return
		}
	}
}

func TestListReportsWhatCannotBeRead(t *testing.T) {
	m := disktest.NewMemory("/there", "/there/in")
	m.Put("/there/in/file", "x")
	m.Put("/there/last", "x")
	for n := 0; ; n++ {
		on := disktest.NewFaulty(m, disktest.FailAt(n, disktest.Fault{Err: unix.EIO}))
		paths, err := collect(tree.List(func() (*tree.Walk, error) { return tree.Open(on, "/there", tree.Options{}) }))
		if !on.Fired() {
			must(t, err)
			if want := []string{"in/", "in/file", "last"}; !slices.Equal(paths, want) {
				t.Errorf("got %q, want %q", paths, want)
			}
			return
		}
		if err == nil && len(paths) < 3 {
			t.Errorf("operation %d of %q failed, and %q was listed without an error", n, on.Trace(), paths)
		}
	}
}

func TestListLeavesOutWhatWasRemovedMeanwhile(t *testing.T) {
	m := disktest.NewMemory("/there")
	m.Put("/there/a", "x")
	m.Put("/there/b", "x")
	on := disktest.NewFaulty(m, func(_ int, op, name string) *disktest.Fault {
		if op == "stat" && name == "a" {
			return &disktest.Fault{Err: unix.ENOENT}
		}
		return nil
	})
	paths, err := collect(tree.List(func() (*tree.Walk, error) { return tree.Open(on, "/there", tree.Options{}) }))
	must(t, err)
	if !slices.Equal(paths, []string{"b"}) {
		t.Errorf("got %q", paths)
	}
	_, err = collect(listOf(filepath.Join(t.TempDir(), "absent"), tree.Options{}))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent directory: %v", err)
	}
}

// TestAnyExtra compares Extra of random trees with a model, and removes in its order.
func TestAnyExtra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, target := drawTree(t, "source"), drawTree(t, "target")
		var filter *tree.Filter
		if pattern := rapid.SampledFrom([]string{"", "a", "b/", "/a/b", "c*"}).Draw(t, "pattern"); pattern != "" {
			var err error
			if filter, err = tree.NewFilter(rules{exclude(pattern)}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := collect(tree.Extra(source.listing(), target.listing(), tree.Removal{Protect: filter}, nil))
		if err != nil {
			t.Fatal(err)
		}
		want := target.extra(source, filter)
		for _, path := range got {
			clean := strings.TrimSuffix(path, "/")
			if !slices.Contains(want, clean) {
				t.Fatalf("%q is not extra", path)
			}
			if below := target.below(clean); len(below) > 0 {
				t.Fatalf("%q is removed before %q", path, below)
			}
			delete(target, clean)
		}
		if len(got) != len(want) {
			t.Fatalf("%q are extra, not %q", got, want)
		}
	})
}

// modelTree has the kinds of entries by their paths.
type modelTree map[string]wire.EntryKind

func drawTree(t *rapid.T, label string) modelTree {
	made := modelTree{}
	dirs := []string{""}
	for range rapid.IntRange(0, 20).Draw(t, label) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "a-", "b!"})
		path := rapid.SampledFrom(dirs).Draw(t, "in") + name.Draw(t, "name")
		kind := rapid.SampledFrom([]wire.EntryKind{
			wire.EntryFile, wire.EntryDirectory, wire.EntryDirectory, wire.EntrySymlink,
		}).Draw(t, "kind")
		if _, found := made[path]; found {
			continue
		}
		made[path] = kind
		if kind == wire.EntryDirectory {
			dirs = append(dirs, path+"/")
		}
	}
	return made
}

// listing sorts by components.
func (m modelTree) listing() tree.Listing {
	var paths []string
	for path := range m {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	return func(yield func(tree.Listed, error) bool) {
		for _, path := range paths {
			if !yield(tree.Listed{Path: path, Kind: m[path]}, nil) {
				return
			}
		}
	}
}

func (m modelTree) below(path string) (found []string) {
	for other := range m {
		if strings.HasPrefix(other, path+"/") {
			found = append(found, other)
		}
	}
	return found
}

// extra returns what of m may be removed.
func (m modelTree) extra(source modelTree, filter *tree.Filter) (extra []string) {
	for path := range m {
		if m.mayRemove(path, source, filter) {
			extra = append(extra, path)
		}
	}
	return extra
}

func (m modelTree) mayRemove(path string, source modelTree, filter *tree.Filter) bool {
	if _, found := source[path]; found {
		return false
	}
	for at := path; at != ""; at = at[:max(0, strings.LastIndexByte(at, '/'))] {
		if filter.Excludes(at, m[at] == wire.EntryDirectory) {
			return false
		}
		if kind, found := source[at]; found && kind != wire.EntryDirectory {
			return false
		}
	}
	for _, below := range m.below(path) {
		if !m.mayRemove(below, source, filter) {
			return false
		}
	}
	return true
}
