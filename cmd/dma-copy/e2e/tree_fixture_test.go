package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

// The command lines of both sides for a tree; more flags follow.
const (
	hostTree = "dma-copy -p b1:00.1 -f host/tree "
	dpuTree  = "dma-copy -p 03:00.1 -r b1:00.1 -f dpu/tree "
)

// sameTree is what a copy preserves without being asked to.
var sameTree = filetree.Comparison{Modes: true, Times: time.Nanosecond, Holes: true, WithoutSpecial: true}

// tree returns the path of a side's tree, or of something in it.
func (f *fixture) tree(side string, elements ...string) string {
	return filepath.Join(append([]string{f.dir, side, "tree"}, elements...)...)
}

// treeFlags are more flags for the two sides.
type treeFlags struct{ sender, receiver string }

// startTree starts the transfer of a tree.
func (f *fixture) startTree(sender string, flags treeFlags) sidePair {
	f.t.Helper()
	lines := map[string]string{"host": hostTree, "dpu": dpuTree}
	lines[sender] += flags.sender
	lines[peerOf(sender)] += flags.receiver
	return f.startBoth(lines)
}

// expectTree runs the transfer of a tree that has to succeed without a warning.
func (f *fixture) expectTree(sender string, flags treeFlags) sidePair {
	f.t.Helper()
	sides := f.startTree(sender, flags)
	sides.expectExit(exitOK)
	return sides
}

// expectSomeFailed expects both sides to end with 12 and to name each path that failed.
func (p sidePair) expectSomeFailed(paths ...string) {
	p["host"].t.Helper()
	for _, name := range bothSides {
		p[name].expectExitIn(exitSomeFailed)
		p[name].expectStderr("dma-copy: ")
		p[name].expectStderr(paths...)
	}
}

// expectExitIn expects one of several exit codes, with any output.
func (s side) expectExitIn(codes ...int) {
	s.t.Helper()
	if code := s.exitCode(); !slices.Contains(codes, code) {
		s.t.Errorf("%s: exit code %d, want one of %v; stderr:\n%s", s.name, code, codes, s.stderr.String())
	}
}

// makeTree makes a tree of one of the shapes of the benchmarks on one side.
func (f *fixture) makeTree(side string, shape filetree.Shape, files int) {
	f.t.Helper()
	must(f.t, filetree.New(shape, files).Write(f.t.Context(), f.tree(side)))
}

// writeTree makes a tree of small files on one side. Their content follows from the names and the seed.
func (f *fixture) writeTree(side, seed string, names ...string) {
	f.t.Helper()
	for _, name := range names {
		path := f.tree(side, name)
		must(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(f.t, writeRandomFile(path, seed+name, 3000))
	}
}

// expectSameTrees expects both sides to have the same tree, and nothing else to be left.
func (f *fixture) expectSameTrees(sender string, c filetree.Comparison) {
	f.t.Helper()
	if err := c.Compare(f.t.Context(), f.tree(sender), f.tree(peerOf(sender))); err != nil {
		f.t.Error(err)
	}
	f.expectClean()
}

// expectRepaired runs the same transfer again, after what some entries have failed of has been repaired. Both sides
// have the directory and the transfer before has come to its end, so start is given a flag that says who receives.
func (f *fixture) expectRepaired(sender string, start func(receiver string) sidePair) {
	f.t.Helper()
	f.expectClean()
	start("--ignore-existing ").expectExit(exitOK)
	f.expectSameTrees(sender, sameTree)
}

// expectUpToDate expects the transfer to find nothing to do, and to change nothing.
func (f *fixture) expectUpToDate(sender string, flags treeFlags) {
	f.t.Helper()
	before := [2][]filetree.Entry{f.list("host"), f.list("dpu")}
	for _, s := range f.expectTree(sender, flags) {
		s.expectStderr("is already up to date")
	}
	f.expectUnchanged("host", before[0])
	f.expectUnchanged("dpu", before[1])
}

// expectMode expects a file to have this mode, and no bits besides.
func (f *fixture) expectMode(path string, want os.FileMode) {
	f.t.Helper()
	info, err := os.Lstat(path)
	must(f.t, err)
	if info.Mode() != want {
		f.t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
	}
}

// list returns the entries of a side's tree.
func (f *fixture) list(side string) []filetree.Entry {
	f.t.Helper()
	entries, err := filetree.List(f.t.Context(), f.tree(side))
	must(f.t, err)
	return entries
}

// expectPaths expects a side's tree to have these entries besides its root, and no others.
func (f *fixture) expectPaths(side string, want ...string) {
	f.t.Helper()
	var got []string
	for _, e := range f.list(side)[1:] {
		got = append(got, e.Path)
	}
	if want := slices.Sorted(slices.Values(want)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		f.t.Errorf("the %s has %q, want %q", side, got, want)
	}
}

// expectWritten expects a side to have written these files of its tree, and no others, since it was listed.
func (f *fixture) expectWritten(side string, before []filetree.Entry, want ...string) {
	f.t.Helper()
	if got := filetree.Written(before, f.list(side)); !slices.Equal(got, want) {
		f.t.Errorf("the %s has written %q, want %q", side, got, want)
	}
}

// expectUnchanged expects a side's tree to be what it was when it was listed, times of directories included.
func (f *fixture) expectUnchanged(side string, before []filetree.Entry) {
	f.t.Helper()
	if after := f.list(side); !slices.Equal(after, before) {
		f.t.Errorf("the tree of the %s has changed from\n%+v\nto\n%+v", side, before, after)
	}
}

// oddNames are names that a file system of Unix accepts.
var oddNames = []string{
	"with space", "new\nline", "tab\t", "\xff\xfe not UTF-8", "-dash", "'quoted\"", `back\slash`, "*?[x]", "größe",
	"..two", ".hidden", "\x01control", "$HOME", "~", "#", "trailing ", strings.Repeat("n", 255),
}

// makeRichTree makes a tree with an entry of every kind, and more than one of most.
func (f *fixture) makeRichTree(side string, withXattrs bool) {
	f.t.Helper()
	root := f.tree(side)
	for _, dir := range []string{"sizes", "empty/nested", "names", "directories", "modes", "links", "hard/deeper"} {
		must(f.t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, size := range []int64{0, 1, 4095, 4096, 4097, 1<<16 - 1, 1 << 16, 1<<16 + 1, largestTask + 1, 5_000_000} {
		must(f.t, writeRandomFile(filepath.Join(root, "sizes", fmt.Sprint(size)), fmt.Sprint(size), size))
	}
	for _, name := range oddNames {
		must(f.t, os.WriteFile(filepath.Join(root, "names", name), []byte(name), 0o644))
		must(f.t, os.Mkdir(filepath.Join(root, "directories", name), 0o755))
	}
	must(f.t, makeSparse(filepath.Join(root, "sparse")))
	makeLinks(f.t, root)
	makeModes(f.t, root)
	must(f.t, unix.Mkfifo(filepath.Join(root, "fifo"), 0o644))
	must(f.t, makeSocket(filepath.Join(root, "socket")))
	if withXattrs {
		for _, path := range []string{"sizes", "sizes/4096", "sizes/5000000"} {
			must(f.t, unix.Setxattr(filepath.Join(root, path), "user.origin", []byte("north of "+path), 0))
		}
	}
	setTimes(f.t, root)
}

func makeSparse(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte("in the middle"), 9<<20)
	return errors.Join(err, file.Truncate(32<<20), file.Close())
}

func makeLinks(t *testing.T, root string) {
	t.Helper()
	for name, text := range map[string]string{
		"file": "../sizes/4096", "directory": "../sizes", "dangling": "no/such/thing", "absolute": "/etc/hostname",
		"odd": "\xff\n", "itself": "itself", "outside": "../../..", "long": strings.Repeat("long/", 800),
	} {
		must(t, os.Symlink(text, filepath.Join(root, "links", name)))
	}
	must(t, os.WriteFile(filepath.Join(root, "hard/first"), []byte("one file of three names"), 0o640))
	for _, name := range []string{"hard/deeper/second", "third"} {
		must(t, os.Link(filepath.Join(root, "hard/first"), filepath.Join(root, name)))
	}
}

func makeModes(t *testing.T, root string) {
	t.Helper()
	for _, mode := range []os.FileMode{0o400, 0o444, 0o600, 0o640, 0o755, 0o777} {
		path := filepath.Join(root, "modes", fmt.Sprintf("%o", mode))
		must(t, os.WriteFile(path, []byte(path), 0o600))
		must(t, os.Chmod(path, mode))
	}
	for _, mode := range []os.FileMode{0o700, 0o711, 0o750, 0o777} {
		path := filepath.Join(root, "modes", fmt.Sprintf("%o-directory", mode))
		must(t, os.Mkdir(path, 0o700))
		must(t, os.Chmod(path, mode))
	}
}

func makeSocket(path string) error {
	// The path of a socket may have at most 108 bytes, so it is made under a short one.
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	short := filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	return errors.Join(listener.Close(), os.Rename(short, path))
}

// setTimes gives every entry of a tree a time of its own, with nanoseconds: some before 1970, some in the future.
func setTimes(t *testing.T, root string) {
	t.Helper()
	entries, err := filetree.List(t.Context(), root)
	must(t, err)
	seconds := []int64{-1_000_000_000, -1, 0, 1, 1_000_000_000, 1_700_000_000, 1<<31 + 5, 4_000_000_000}
	for i, e := range slices.Backward(entries) { // directories after their content
		modified := unix.Timespec{Sec: seconds[i%len(seconds)], Nsec: int64(i) * 7_654_321 % 1e9}
		times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, modified}
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(root, e.Path), times, unix.AT_SYMLINK_NOFOLLOW))
	}
}
