package tree_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build creates a tree: a name with a slash at the end is a directory, "a -> b" a symlink, "a = b" a hard link to b,
// and anything else a file that contains its name. Directories above are created.
func build(t testing.TB, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		link, text, isSymlink := strings.Cut(name, " -> ")
		other, first, isLink := strings.Cut(name, " = ")
		path := filepath.Join(root, link)
		if isLink {
			path = filepath.Join(root, other)
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case isSymlink:
			must(t, os.Symlink(text, path))
		case isLink:
			must(t, os.Link(filepath.Join(root, first), path))
		case strings.HasSuffix(name, "|"):
			must(t, unix.Mkfifo(strings.TrimSuffix(path, "|"), 0o644))
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(path, 0o755))
		default:
			must(t, os.WriteFile(path, []byte(name), 0o644))
		}
	}
}

// list walks a tree on disk and describes each entry after the root.
func list(t *testing.T, root string, o tree.Options) (found []string) {
	t.Helper()
	return describeAll(t, openLimited(t, root, o, tree.Limits{}))
}

func openLimited(t *testing.T, root string, o tree.Options, limits tree.Limits) *tree.Walk {
	t.Helper()
	w, err := tree.Open(disk.OS, root, o)
	must(t, err)
	t.Cleanup(w.Close)
	w.Restrict(limits)
	return w
}

// describeAll describes all entries after the root, and releases them.
func describeAll(t *testing.T, w *tree.Walk) (found []string) {
	t.Helper()
	for _, e := range walk(t, w)[1:] {
		found = append(found, describe(t, &e))
		e.Release()
	}
	return found
}

// walk returns all entries, of which the first must be the root.
func walk(t *testing.T, w *tree.Walk) (entries []tree.Entry) {
	t.Helper()
	for {
		e, err := w.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		t.Fatal("there is no entry")
	}
	if root := entries[0]; root.Depth != 0 || root.Name != "" || root.Path() != "" ||
		root.Kind != wire.EntryDirectory || root.Err != nil {
		t.Fatalf("the root is %+v", root)
	}
	return entries
}

// describe returns an entry in the form of build, or its error.
func describe(t *testing.T, e *tree.Entry) string {
	t.Helper()
	if e.Err != nil {
		return "! " + e.Err.Error()
	}
	if e.Depth != strings.Count(e.Path(), "/")+1 || e.Name != e.Path()[strings.LastIndexByte(e.Path(), '/')+1:] {
		t.Errorf("%s has depth %d and name %s", e.Path(), e.Depth, e.Name)
	}
	switch e.Kind {
	case wire.EntryFile:
		content, err := contentOf(e)
		must(t, err)
		if content == e.Path() {
			return e.Path()
		}
		return fmt.Sprintf("%s (%s)", e.Path(), content)
	case wire.EntryDirectory:
		return e.Path() + "/"
	case wire.EntrySymlink:
		return e.Path() + " -> " + e.Link
	case wire.EntryHardLink:
		return e.Path() + " = " + e.Link
	}
	return fmt.Sprintf("%s of kind %d", e.Path(), e.Kind)
}

func mustList(t *testing.T, root string, o tree.Options, want ...string) {
	t.Helper()
	if got := list(t, root, o); !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOrderIsDepthFirstAndBytewise(t *testing.T) {
	root := t.TempDir()
	build(t, root, "b/x", "b.c", "b-d/", "a/c/deep", "a/b", "a/empty/", "Z", "\xff", "line\nbreak", "link -> a/c")
	mustList(t, root, tree.Options{},
		"Z", "a/", "a/b", "a/c/", "a/c/deep", "a/empty/", "b/", "b/x", "b-d/", "b.c", "line\nbreak", "link -> a/c",
		"\xff")
}

func TestEmptyDirectory(t *testing.T) { mustList(t, t.TempDir(), tree.Options{}) }

func TestRootThatIsNoDirectory(t *testing.T) {
	root := t.TempDir()
	build(t, root, "file", "to -> dir", "dir/x")
	for _, name := range []string{"file", "absent"} {
		_, err := tree.Open(disk.OS, filepath.Join(root, name), tree.Options{})
		mustBeSource(t, err, disk.ErrSource, name)
	}
	w, err := tree.Open(disk.OS, filepath.Join(root, "to"), tree.Options{})
	must(t, err)
	defer w.Close()
	if entries := walk(t, w); len(entries) != 2 || entries[1].Name != "x" {
		t.Errorf("through a symlink there is %+v", entries)
	}
}

// mustBeSource checks for an Error of this kind with these words and a next step.
func mustBeSource(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	failed, is := errors.AsType[*disk.Error](err)
	if !is || !errors.Is(err, kind) || failed.Next == "" {
		t.Fatalf("got %v, want an Error about the %v", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestSpecialFilesAreLeftOutWithAWarning(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a", "dir/b", "excluded/")
	must(t, unix.Mkfifo(filepath.Join(root, "dir/fifo"), 0o600))
	must(t, unix.Mkfifo(filepath.Join(root, "excluded/fifo"), 0o600))
	must(t, unix.Mknod(filepath.Join(root, "socket"), unix.S_IFSOCK|0o600, 0))
	filter, err := tree.NewFilter([]tree.Rule{{Pattern: "/excluded/"}})
	must(t, err)
	var warnings []string
	warn := func(path, why string) { warnings = append(warnings, path+" "+why) }
	mustList(t, root, tree.Options{Warn: warn, Filter: filter}, "a", "dir/", "dir/b")
	want := []string{"dir/fifo is a FIFO, which cannot be copied", "socket is a socket, which cannot be copied"}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings: %q, want %q", warnings, want)
	}
}

func TestSymlinksAreCopiedOrSkipped(t *testing.T) {
	root := t.TempDir()
	build(t, root, "dangling -> nowhere", "dir/up -> ../..", "file", "out -> /etc/passwd", "to -> dir")
	mustList(t, root, tree.Options{},
		"dangling -> nowhere", "dir/", "dir/up -> ../..", "file", "out -> /etc/passwd", "to -> dir")
	w, err := tree.Open(disk.OS, root, tree.Options{Links: tree.LinksSkip})
	must(t, err)
	defer w.Close()
	if entries := walk(t, w); len(entries) != 3 || w.Skipped() != 4 {
		t.Errorf("there are %d entries, and %d skipped, want 3 and 4", len(entries), w.Skipped())
	}
}

func TestEntriesHaveTheirInfo(t *testing.T) {
	root := t.TempDir()
	build(t, root, "dir/file", "dir/link -> file")
	must(t, os.Chmod(filepath.Join(root, "dir"), 0o750))
	must(t, os.Chmod(filepath.Join(root, "dir/file"), 0o640))
	w, err := tree.Open(disk.OS, root, tree.Options{})
	must(t, err)
	defer w.Close()
	for _, e := range walk(t, w) {
		found, err := os.Lstat(filepath.Join(root, e.Path()))
		must(t, err)
		modified := found.ModTime()
		if e.Info.Mode.Perm() != found.Mode().Perm() || e.Info.Mode.Type() != found.Mode().Type() ||
			e.Info.Modified.Sec != modified.Unix() || int(e.Info.Modified.Nsec) != modified.Nanosecond() ||
			e.Info.Size != found.Size() && e.Kind != wire.EntryDirectory {
			t.Errorf("%s is %+v, want %v of %d bytes", e.Path(), e.Info, found.Mode(), found.Size())
		}
		if (e.Dir != nil) != (e.Kind == wire.EntryFile) {
			t.Errorf("%s of kind %d has the folder %v", e.Path(), e.Kind, e.Dir)
		}
		e.Release()
	}
}

func TestXattrsOfDirectories(t *testing.T) {
	root := t.TempDir()
	build(t, root, "dir/")
	if err := unix.Setxattr(filepath.Join(root, "dir"), "user.origin", []byte("here"), 0); err != nil {
		t.Skipf("no extended attributes in %s: %v", root, err)
	}
	for _, asked := range []bool{false, true} {
		w, err := tree.Open(disk.OS, root, tree.Options{Xattrs: asked})
		must(t, err)
		defer w.Close()
		var want []disk.Xattr
		if asked {
			want = []disk.Xattr{{Name: "user.origin", Value: []byte("here")}}
		}
		if got := walk(t, w)[1].Xattrs; !reflect.DeepEqual(got, want) {
			t.Errorf("asked %t, got %+v, want %+v", asked, got, want)
		}
	}
}

func TestMaxEntriesEndsTheWalk(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a", "b", "dir/c")
	for limit := int64(1); limit <= 5; limit++ {
		w, err := tree.Open(disk.OS, root, tree.Options{MaxEntries: limit})
		must(t, err)
		defer w.Close()
		found := int64(0)
		for err == nil {
			_, err = w.Next()
			found++
		}
		if want := limit >= 5; errors.Is(err, io.EOF) != want || errors.Is(err, tree.ErrTooManyEntries) == want {
			t.Errorf("%d entries with a limit of %d: %v", found-1, limit, err)
		}
		if _, again := w.Next(); again != err {
			t.Errorf("after %v, Next returns %v", err, again)
		}
		if found-1 != min(limit, 5) {
			t.Errorf("%d entries with a limit of %d", found-1, limit)
		}
	}
}

func TestNextAfterClose(t *testing.T) {
	w, err := tree.Open(disk.OS, t.TempDir(), tree.Options{})
	must(t, err)
	w.Close()
	w.Close()
	if _, err := w.Next(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// makeDeep creates directories inside of one another, whose path may be longer than system calls accept.
func makeDeep(t *testing.T, root string, names ...string) {
	t.Helper()
	at, err := unix.Open(root, unix.O_DIRECTORY, 0)
	must(t, err)
	for _, name := range names {
		must(t, unix.Mkdirat(at, name, 0o755))
		next, err := unix.Openat(at, name, unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(at))
		at = next
	}
	must(t, unix.Close(at))
}

// inMemory returns a directory on tmpfs where there is one, for trees that take long to create and remove elsewhere.
func inMemory(t testing.TB) string {
	t.Helper()
	const parent = "/dev/shm"
	if unix.Access(parent, unix.W_OK) != nil {
		return t.TempDir()
	}
	folder, err := os.MkdirTemp(parent, "dma-copy-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(folder)) })
	return folder
}

func TestDepthIsLimited(t *testing.T) {
	root := inMemory(t)
	const made = 2500
	makeDeep(t, root, slices.Repeat([]string{"d"}, made)...)
	build(t, root, "z")
	w, err := tree.Open(disk.OS, root, tree.Options{})
	must(t, err)
	defer w.Close()
	entries := walk(t, w)
	mostOpen := openDescriptors(t)
	if len(entries) != tree.MaxDepth+3 {
		t.Fatalf("%d entries in %d levels", len(entries), made)
	}
	if mostOpen > 100 {
		t.Errorf("%d descriptors are open", mostOpen)
	}
	for depth, e := range entries[:tree.MaxDepth+1] {
		if e.Depth != depth || e.Err != nil {
			t.Fatalf("entry %d has depth %d (%v)", depth, e.Depth, e.Err)
		}
	}
	mustBeSource(t, entries[tree.MaxDepth+1].Err, disk.ErrSource, "2047", "d/d")
	if last := entries[tree.MaxDepth+2]; last.Path() != "z" || last.Err != nil {
		t.Errorf("the last entry is %q (%v)", last.Path(), last.Err)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(open)
}

func TestLengthOfPathsIsLimited(t *testing.T) {
	root := t.TempDir()
	long := strings.Repeat("n", 255)
	makeDeep(t, root, slices.Repeat([]string{long}, 20)...)
	w, err := tree.Open(disk.OS, root, tree.Options{})
	must(t, err)
	defer w.Close()
	entries := walk(t, w)
	if len(entries) != 1+16+1 {
		t.Fatalf("%d entries", len(entries))
	}
	if longest := entries[16].Path(); len(longest) != 16*256-1 {
		t.Errorf("the longest path has %d bytes", len(longest))
	}
	mustBeSource(t, entries[17].Err, disk.ErrSource, "4351", "4096")
}

func TestShallowWalk(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/", "a/below", "b", "link -> a", "closed/", "closed/below")
	must(t, os.Chmod(filepath.Join(root, "closed"), 0))
	t.Cleanup(func() { must(t, os.Chmod(filepath.Join(root, "closed"), 0o700)) })
	found := list(t, root, tree.Options{Shallow: true})
	if len(found) != 4 || strings.Contains(strings.Join(found, " "), "below") {
		t.Errorf("found %q", found)
	}
	w := openLimited(t, root, tree.Options{Shallow: true, Links: tree.LinksFollow}, tree.Limits{})
	for _, e := range walk(t, w) {
		followed := e.Kind == wire.EntryDirectory && e.Info.Mode.IsDir()
		if e.Err != nil || e.Depth > 1 || e.Name == "link" && !followed {
			t.Errorf("followed, %s is %+v", e.Path(), e)
		}
		e.Release()
	}
}

func TestLeftoversAreSkipped(t *testing.T) {
	root := t.TempDir()
	build(t, root, ".file.dma-copy-part", ".file.dma-copy-journal", "file", ".dir.dma-copy-part/",
		".dir.dma-copy-part/file", ".link.dma-copy-part -> file")
	w := openLimited(t, root, tree.Options{SkipLeftovers: true}, tree.Limits{})
	var got []string
	for _, e := range walk(t, w) {
		got = append(got, e.Path())
		e.Release()
	}
	want := []string{"", ".dir.dma-copy-part", ".dir.dma-copy-part/file", ".link.dma-copy-part", "file"}
	if !slices.Equal(got, want) || w.Skipped() != 0 {
		t.Errorf("found %q and skipped %d, want %q", got, w.Skipped(), want)
	}
	if all := list(t, root, tree.Options{}); len(all) != 6 {
		t.Errorf("without the option, found %q", all)
	}
}
