package filetree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// everything compares all that a Comparison knows.
var everything = Comparison{
	Modes: true, Times: time.Nanosecond, Owners: true, Xattrs: true, HardLinks: true, Holes: true,
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// makeTree makes a tree below a new directory and returns its root.
func makeTree(t *testing.T, s Shape, files int) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tree")
	must(t, New(s, files).Write(t.Context(), root))
	return root
}

func TestShapesAreAsPlanned(t *testing.T) {
	for _, s := range Shapes {
		plan, root := New(s, 200), makeTree(t, s, 200)
		entries, err := List(t.Context(), root)
		must(t, err)
		if err := plan.Check(entries); err != nil || plan.Files != 200 {
			t.Errorf("%s with %d files: %v", s, plan.Files, err)
		}
		must(t, os.Remove(filepath.Join(root, filepath.FromSlash(plan.nodes[len(plan.nodes)-1].path))))
		entries, err = List(t.Context(), root)
		must(t, err)
		if plan.Check(entries) == nil {
			t.Errorf("%s: a missing entry is accepted", s)
		}
		must(t, everything.Compare(t.Context(), makeTree(t, s, 200), makeTree(t, s, 200)))
	}
}

// The full trees are what the benchmarks say they are. They are planned and not written.
func TestFullShapes(t *testing.T) {
	small := New(Small, 0)
	if small.Files != 10_000 || small.Directories != 100 || small.Bytes != 10_000*4096 {
		t.Errorf("small has %d files in %d directories, %d bytes", small.Files, small.Directories, small.Bytes)
	}
	source := New(Source, 0)
	mean, sizes := source.Bytes/int64(source.Files), map[bool]int{}
	for _, n := range source.nodes {
		if n.mode.IsRegular() {
			sizes[n.size < minSourceSize || n.size > maxSourceSize]++
		}
	}
	if source.Files != 5_000 || sizes[true] > 0 || mean < 8<<10 || mean > 20<<10 || source.Symlinks == 0 {
		t.Errorf("source has %d files, %d of other sizes, of %d bytes on average, %d symlinks",
			source.Files, sizes[true], mean, source.Symlinks)
	}
	if deep := New(Deep, 0); deep.Directories != 300 || deep.Files != 900 {
		t.Errorf("deep has %d files in %d directories", deep.Files, deep.Directories)
	}
	deep, longest := New(Deep, 10_000), 0
	for _, n := range deep.nodes {
		longest = max(longest, len(n.path))
	}
	if deep.Directories != 1_000 || longest > 2_100 {
		t.Errorf("deep has %d directories, and a path of %d bytes", deep.Directories, longest)
	}
	if huge := New(HugeDir, 0); huge.Files != 100_000 || huge.Directories != 1 {
		t.Errorf("huge-dir has %d files in %d directories", huge.Files, huge.Directories)
	}
}

// change is one way in which a tree can differ from another, and what Compare says of it.
type change struct {
	apply func(root string) error
	want  string
}

func removeFile(root string) error { return os.Remove(filepath.Join(root, "d00/f000001")) }
func addFile(root string) error {
	return keepTime(root, os.WriteFile(filepath.Join(root, "extra"), nil, 0o644))
}

func shorten(root string) error { return os.Truncate(filepath.Join(root, "d00/f000002"), 4000) }
func flip(root string) error {
	file, err := os.OpenFile(filepath.Join(root, "d00/f000003"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte{0}, 4000)
	return errors.Join(err, file.Close())
}

func changeMode(root string) error { return os.Chmod(filepath.Join(root, "d00/f000004"), 0o600) }
func changeTime(root string) error {
	return setModified(filepath.Join(root, "d00/f000005"), 1)
}

func changeDirectoryTime(root string) error { return setModified(filepath.Join(root, "d00"), 5) }
func makeSymlink(root string) error         { return replace(root, "d00/f000006", "f000007") }
func changeSymlink(root string) error       { return replace(root, "link", "elsewhere") }
func makeDirectory(root string) error {
	path := filepath.Join(root, "d00/f000008")
	return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
}

func breakHardLink(root string) error {
	path := filepath.Join(root, "second")
	content, err := os.ReadFile(path)
	return errors.Join(err, os.Remove(path), os.WriteFile(path, content, 0o644), setModified(path, 1))
}

func fillHole(root string) error {
	return errors.Join(os.WriteFile(filepath.Join(root, "sparse"), make([]byte, sparseSize), 0o644),
		setModified(filepath.Join(root, "sparse"), 1))
}

func addFIFO(root string) error { return unix.Mkfifo(filepath.Join(root, "pipe"), 0o644) }

const sparseSize = 4 << 20

// replace replaces what has that name by a symlink.
func replace(root, name, text string) error {
	path := filepath.Join(root, name)
	return errors.Join(os.Remove(path), os.Symlink(text, path))
}

// keepTime gives the root the time that it had before an entry was made in it.
func keepTime(root string, err error) error { return errors.Join(err, setModified(root, 0)) }

// makeRichTree makes a tree with an entry of each kind.
func makeRichTree(t *testing.T) string {
	t.Helper()
	root := makeTree(t, Small, 30)
	must(t, os.Symlink("nowhere", filepath.Join(root, "link")))
	must(t, setModified(filepath.Join(root, "link"), 1))
	must(t, os.WriteFile(filepath.Join(root, "first"), []byte("content"), 0o644))
	must(t, os.Link(filepath.Join(root, "first"), filepath.Join(root, "second")))
	must(t, setModified(filepath.Join(root, "first"), 1))
	must(t, os.WriteFile(filepath.Join(root, "sparse"), nil, 0o644))
	must(t, os.Truncate(filepath.Join(root, "sparse"), sparseSize))
	must(t, setModified(filepath.Join(root, "sparse"), 1))
	must(t, setModified(root, 0))
	return root
}

func TestEveryDifferenceIsFound(t *testing.T) {
	must(t, everything.Compare(t.Context(), makeRichTree(t), makeRichTree(t)))
	for _, tc := range []change{
		{removeFile, `"d00/f000001" is missing`},
		{addFile, `"extra" is additional`},
		{shorten, `"d00/f000002" has 4000 bytes, want 4096`},
		{flip, `"d00/f000003" differs at offset 4000`},
		{changeMode, `"d00/f000004" has mode -rw-------, want -rw-r--r--`},
		{changeTime, `"d00/f000005" was modified at 2020-09-13T`},
		{changeDirectoryTime, `"d00" was modified at 2020-09-13T`},
		{makeSymlink, `"d00/f000006" is a symlink, want a file`},
		{changeSymlink, `"link" leads to "elsewhere", want "nowhere"`},
		{makeDirectory, `"d00/f000008" is a directory, want a file`},
		{breakHardLink, `"second" is the same file as "second", want "first"`},
		{fillHole, `"sparse" takes`},
		{addFIFO, `"pipe" is additional`},
	} {
		want, got := makeRichTree(t), makeRichTree(t)
		must(t, tc.apply(got))
		err := everything.Compare(t.Context(), want, got)
		if _, is := errors.AsType[*Differences](err); !is || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

func TestXattrsAreCompared(t *testing.T) {
	want, got := makeTree(t, Small, 1), makeTree(t, Small, 1)
	err := unix.Setxattr(filepath.Join(got, "d00"), "user.origin", []byte("north"), 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("the file system has no extended attributes")
	}
	must(t, err)
	err = Comparison{Xattrs: true}.Compare(t.Context(), want, got)
	if err == nil || !strings.Contains(err.Error(), `"d00" has the attributes map["user.origin":"north"], want map[]`) {
		t.Errorf("error %v", err)
	}
	must(t, Comparison{}.Compare(t.Context(), want, got))
}

// What is not asked for is not compared, and times only as precisely as asked for.
func TestLooseComparison(t *testing.T) {
	for _, apply := range []func(string) error{changeMode, changeTime, breakHardLink, fillHole} {
		want, got := makeRichTree(t), makeRichTree(t)
		must(t, apply(got))
		must(t, Comparison{}.Compare(t.Context(), want, got))
	}
	want, got := makeTree(t, Small, 1), makeTree(t, Small, 1)
	path := filepath.Join(got, "d00/f000000")
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.Chtimes(path, time.Time{}, info.ModTime().Truncate(time.Second)))
	must(t, Comparison{Times: time.Second}.Compare(t.Context(), want, got))
	if err := (Comparison{Times: time.Nanosecond}).Compare(t.Context(), want, got); err == nil {
		t.Error("another nanosecond is accepted")
	}
}

func TestSpecialFilesAreLeftOut(t *testing.T) {
	want, got := makeRichTree(t), makeRichTree(t)
	must(t, addFIFO(want))
	c := Comparison{WithoutSpecial: true}
	must(t, c.Compare(t.Context(), want, got))
	must(t, addFIFO(got))
	if err := c.Compare(t.Context(), want, got); err == nil {
		t.Error("a copied FIFO is accepted")
	}
}

func TestManyDifferencesAreCounted(t *testing.T) {
	want, got := makeTree(t, Small, 30), makeTree(t, HugeDir, 30)
	err := Comparison{}.Compare(t.Context(), want, got)
	d, is := errors.AsType[*Differences](err)
	if !is || d.Count != 62 || len(d.First) != maxListed || !strings.HasPrefix(err.Error(), "62 differences: ") {
		t.Errorf("error %v", err)
	}
}

func TestWritten(t *testing.T) {
	root := makeTree(t, Small, 3)
	before, err := List(t.Context(), root)
	must(t, err)
	for {
		must(t, changeDirectoryTime(root)) // which is not a file
		must(t, os.Chmod(filepath.Join(root, "d00/f000001"), 0o644))
		must(t, os.WriteFile(filepath.Join(root, "d00/new"), nil, 0o644))
		after, err := List(t.Context(), root)
		must(t, err)
		// The clock of the file system may not have advanced since the tree was made.
		if written := Written(before, after); slices.Equal(written, []string{"d00/f000001", "d00/new"}) {
			break
		} else if !slices.Equal(written, []string{"d00/new"}) {
			t.Fatalf("written %q", written)
		}
	}
}

func TestInterruptions(t *testing.T) {
	root := makeTree(t, Small, 3)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")
	cancel(reason)
	if err := New(Small, 3).Write(ctx, root+"2"); !errors.Is(err, reason) {
		t.Errorf("writing: error %v", err)
	}
	if err := (Comparison{}).Compare(ctx, root, root); !errors.Is(err, reason) {
		t.Errorf("comparing: error %v", err)
	}
	if err := New(Small, 3).Write(t.Context(), root); !errors.Is(err, fs.ErrExist) {
		t.Errorf("writing over a tree: error %v", err)
	}
}
