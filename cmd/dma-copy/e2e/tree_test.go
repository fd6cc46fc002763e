package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

// TestTree copies a tree with entries of every kind in both directions: all arrive as they are, except that FIFOs and
// sockets are left out with a warning each.
func TestTree(t *testing.T) {
	t.Parallel()
	withXattrs, err := canSetXattr()
	must(t, err)
	forEachSender(t, func(f *fixture, sender string) {
		f.makeRichTree(sender, withXattrs)
		const preserve = "--preserve links,xattr "
		sides := f.startTree(sender, treeFlags{preserve, preserve})
		if err := sides[sender].checkExit(exitOK, true); err != nil {
			f.t.Error(err)
		}
		sides[peerOf(sender)].expectExit(exitOK)
		sides[sender].expectStderr("fifo", "socket")
		c := sameTree
		c.HardLinks, c.Xattrs = true, withXattrs
		f.expectSameTrees(sender, c)
	})
}

// TestTreeShapes copies many files, a deep tree and a large directory, and then finds nothing to do.
func TestTreeShapes(t *testing.T) {
	t.Parallel()
	for _, shape := range filetree.Shapes {
		t.Run(string(shape), func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				f.makeTree(sender, shape, 600)
				f.expectTree(sender, treeFlags{receiver: "--durability full "})
				f.expectSameTrees(sender, sameTree)
				copied := f.list(peerOf(sender))
				f.expectTree(sender, treeFlags{receiver: "--overwrite "})
				f.expectWritten(peerOf(sender), copied)
				f.expectSameTrees(sender, sameTree)
			})
		})
	}
}

// TestTreeUpToDate repeats the same commands after a complete copy. They find both trees the same and change neither.
func TestTreeUpToDate(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		f.makeTree(sender, filetree.Small, 150)
		f.expectTree(sender, treeFlags{})
		f.expectUpToDate(sender, treeFlags{})
		f.expectClean()
	})
}

// TestTreeUpdate copies over an older copy of a tree: what has changed is replaced, what is new is added, and what only
// the target has stays.
func TestTreeUpdate(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		receiver := peerOf(sender)
		f.makeTree(sender, filetree.Small, 150)
		f.expectTree(sender, treeFlags{})
		f.writeTree(sender, "new", "d00/f000003", "added/new")
		f.writeTree(receiver, "own", "d00/zz-only-here")
		must(f.t, os.Symlink("f000004", f.tree(sender, "d00/link")))
		must(f.t, os.Chmod(f.tree(sender, "d00"), 0o711))
		copied := f.list(receiver)
		f.expectTree(sender, treeFlags{receiver: "--overwrite "})
		f.expectWritten(receiver, copied, "added/new", "d00/f000003")
		must(f.t, os.Remove(f.tree(receiver, "d00/zz-only-here")))
		f.expectSameTrees(sender, filetree.Comparison{Modes: true})
	})
}

// treeDifferences are what may differ between two trees.
var treeDifferences = []struct {
	name  string
	apply func(f *fixture, side string)
}{
	{"a_file_of_the_same_size", func(f *fixture, side string) { f.writeTree(side, "other", "d00/f000003") }},
	{"a_file_of_another_size", func(f *fixture, side string) {
		must(f.t, os.Truncate(f.tree(side, "d00/f000003"), 5))
	}},
	{"a_file_more", func(f *fixture, side string) { f.writeTree(side, "", "d00/f000003.more") }},
	{"a_file_more_at_the_end", func(f *fixture, side string) { f.writeTree(side, "", "zz") }},
	{"a_directory_more", func(f *fixture, side string) { must(f.t, os.Mkdir(f.tree(side, "d00/a"), 0o755)) }},
	{"a_symlink_more", func(f *fixture, side string) { must(f.t, os.Symlink("x", f.tree(side, "a"))) }},
	{"another_symlink", func(f *fixture, side string) {
		must(f.t, os.Remove(f.tree(side, "link")))
		must(f.t, os.Symlink("d00/f000004", f.tree(side, "link")))
	}},
	{"a_file_for_a_symlink", func(f *fixture, side string) {
		must(f.t, os.Remove(f.tree(side, "link")))
		f.writeTree(side, "", "link")
	}},
	{"a_directory_for_a_file", func(f *fixture, side string) {
		must(f.t, os.Remove(f.tree(side, "d00/f000003")))
		must(f.t, os.Mkdir(f.tree(side, "d00/f000003"), 0o755))
	}},
	{"a_hard_link_less", func(f *fixture, side string) { must(f.t, os.Remove(f.tree(side, "second"))) }},
	{"another_file_for_a_hard_link", func(f *fixture, side string) {
		must(f.t, os.Remove(f.tree(side, "second")))
		f.writeTree(side, "other", "second")
	}},
}

// TestTreeOverATreeIsRefused repeats the commands of a complete copy after one of the trees has been changed. Neither
// side overwrites, so both sides end with 4 and name --overwrite, and both trees stay as they are.
func TestTreeOverATreeIsRefused(t *testing.T) {
	t.Parallel()
	for _, difference := range treeDifferences {
		t.Run(difference.name, func(t *testing.T) {
			t.Parallel()
			for _, changed := range byChance(bothSides) {
				t.Run("on_the_"+changed, func(t *testing.T) {
					t.Parallel()
					f := newFixture(t)
					f.makeTree("host", filetree.Small, 30)
					must(t, os.Symlink("d00/f000003", f.tree("host", "link")))
					must(t, os.Link(f.tree("host", "d00/f000007"), f.tree("host", "second")))
					const flags = "--preserve links "
					f.expectTree("host", treeFlags{flags, flags})
					difference.apply(f, changed)
					before := [2][]filetree.Entry{f.list("host"), f.list("dpu")}
					for _, s := range f.startTree("host", treeFlags{flags, flags}) {
						s.expectExit(exitSource)
						s.expectStderr("--overwrite")
					}
					f.expectUnchanged("host", before[0])
					f.expectUnchanged("dpu", before[1])
					f.expectClean()
				})
			}
		})
	}
}

// TestTreeChecksum compares content instead of size and time, which another program has restored.
func TestTreeChecksum(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		f.makeTree(sender, filetree.Small, 30)
		f.expectTree(sender, treeFlags{})
		changed := f.tree(sender, "d00/f000007")
		must(f.t, rewriteAndRestoreTime(changed))
		copied := f.list(peerOf(sender))
		f.expectTree(sender, treeFlags{receiver: "--overwrite "})
		f.expectWritten(peerOf(sender), copied)
		f.expectTree(sender, treeFlags{"--checksum ", "--overwrite "})
		f.expectWritten(peerOf(sender), copied, "d00/f000007")
		f.expectSameTrees(sender, sameTree)
	})
}

// TestTreeDryRun expects a dry run to list what it would copy, and to change nothing.
func TestTreeDryRun(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		receiver := peerOf(sender)
		f.writeTree(sender, "old", "dir/kept", "dir/replaced")
		must(f.t, os.Symlink("dir", f.tree(sender, "link")))
		f.expectDryRun(sender, treeFlags{sender: "--dry-run "}, "./", "dir/", "dir/kept", "dir/replaced", "link")
		if left := expectOnly(f.t, filepath.Dir(f.tree(receiver))); len(left) > 0 {
			f.t.Errorf("a dry run has made %q", left)
		}
		f.expectTree(sender, treeFlags{})
		f.writeTree(sender, "new", "dir/replaced", "dir/added")
		before := f.list(receiver)
		f.expectDryRun(sender, treeFlags{receiver: "--overwrite --dry-run "}, "dir/replaced", "dir/added")
		f.expectUnchanged(receiver, before)
		f.expectClean()
	})
}

// expectDryRun expects the side with --dry-run to print these paths on stdout, and the other one nothing.
func (f *fixture) expectDryRun(sender string, flags treeFlags, paths ...string) {
	f.t.Helper()
	sides := f.expectTree(sender, flags)
	asked := sender
	if strings.Contains(flags.receiver, "--dry-run") {
		asked = peerOf(sender)
	}
	printed := sides[asked].stdout.String()
	for _, path := range paths {
		if !regexp.MustCompile(`(?m)^copy +\w+ +\S+  ` + regexp.QuoteMeta(path) + "$").MatchString(printed) {
			f.t.Errorf("the dry run does not print that %s would be copied:\n%s", path, printed)
		}
	}
	if strings.Contains(printed, "copied") {
		f.t.Errorf("the dry run prints that something was copied:\n%s", printed)
	}
	if printed := sides[peerOf(asked)].stdout.String(); printed != "" {
		f.t.Errorf("the side without --dry-run prints:\n%s", printed)
	}
}

// filterTest is a selection of the files of one tree.
type filterTest struct {
	name  string
	flags string // of the sender
	want  []string
}

// filteredTree is what the tests select from.
var filteredTree = []string{
	"a.c", "a.o", "build/a.o", "build/keep.o", "docs/a.md", "docs/build", "src/a.c", "src/deep/a.o", "src/keep.o",
}

// filterFiles are the files that the flags name.
var filterFiles = map[string]string{
	"patterns": "# objects\n*.o\n\nbuild/\n",
	"list":     "a.c\nsrc/deep/a.o\n",
	"list0":    "docs/a.md\x00docs/build\x00",
}

var filterTests = []filterTest{
	{"exclude", "--exclude *.o",
		[]string{"a.c", "build", "docs", "docs/a.md", "docs/build", "src", "src/a.c", "src/deep"}},
	{"exclude_a_directory", "--exclude build/",
		[]string{
			"a.c", "a.o", "docs", "docs/a.md", "docs/build", "src", "src/a.c", "src/deep", "src/deep/a.o", "src/keep.o",
		}},
	{"exclude_anchored", "--exclude /a.* --exclude docs",
		[]string{"build", "build/a.o", "build/keep.o", "src", "src/a.c", "src/deep", "src/deep/a.o", "src/keep.o"}},
	{"first_match_wins", "--include keep.o --exclude *.o --exclude docs --exclude *.c",
		[]string{"build", "build/keep.o", "src", "src/deep", "src/keep.o"}},
	{"order_matters", "--exclude *.o --include keep.o --exclude docs --exclude *.c",
		[]string{"build", "src", "src/deep"}},
	{"exclude_from", "--exclude-from patterns",
		[]string{"a.c", "docs", "docs/a.md", "docs/build", "src", "src/a.c", "src/deep"}},
	{"size", "--max-size 2999", []string{"build", "docs", "src", "src/deep"}},
	{"sizes", "--min-size 3000 --max-size 3000 -x --newer-than 1d --exclude *.o --exclude /docs",
		[]string{"a.c", "build", "src", "src/a.c", "src/deep"}},
	{"files_from", "--files-from list",
		[]string{"a.c", "src", "src/deep", "src/deep/a.o"}},
	{"files_from_nul", "--files-from list0 -0",
		[]string{"docs", "docs/a.md", "docs/build"}},
}

// TestTreeFilters copies the selected entries of a tree only. The same commands then find nothing to do.
func TestTreeFilters(t *testing.T) {
	t.Parallel()
	for _, test := range filterTests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				f.writeTree(sender, "", filteredTree...)
				for name, text := range filterFiles {
					must(f.t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o644))
				}
				f.expectTree(sender, treeFlags{sender: test.flags})
				f.expectPaths(peerOf(sender), test.want...)
				f.expectUpToDate(sender, treeFlags{sender: test.flags})
				f.expectClean()
			})
		})
	}
}

// TestTreeLinks follows symlinks within the tree, or leaves all of them out.
func TestTreeLinks(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string][]string{
		"--links copy":   {"dir", "dir/file", "to-dir", "to-file"},
		"--links skip":   {"dir", "dir/file"},
		"--links follow": {"dir", "dir/file", "to-dir", "to-dir/file", "to-file"},
	} {
		t.Run(strings.Fields(flags)[1], func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				f.writeTree(sender, "", "dir/file")
				must(f.t, os.Symlink("dir", f.tree(sender, "to-dir")))
				must(f.t, os.Symlink("dir/file", f.tree(sender, "to-file")))
				f.expectTree(sender, treeFlags{sender: flags})
				f.expectPaths(peerOf(sender), want...)
				// A comparison follows no symlinks on the DPU.
				if sender == "host" || !strings.Contains(flags, "follow") {
					f.expectUpToDate(sender, treeFlags{sender: flags})
				}
				f.expectPaths(peerOf(sender), want...)
				if strings.Contains(flags, "follow") {
					must(f.t, compareFiles(f.tree(sender, "dir/file"), f.tree(peerOf(sender), "to-file")))
				}
				f.expectClean()
			})
		})
	}
}

// TestTreeDoesNotSetID expects set-id bits not to be copied.
func TestTreeDoesNotSetID(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		f.writeTree(sender, "", "setuid", "setgid")
		must(f.t, os.Chmod(f.tree(sender, "setuid"), 0o755|os.ModeSetuid))
		must(f.t, os.Chmod(f.tree(sender, "setgid"), 0o755|os.ModeSetgid))
		f.expectTree(sender, treeFlags{})
		for _, name := range []string{"setuid", "setgid"} {
			f.expectMode(f.tree(peerOf(sender), name), 0o755)
		}
		f.expectClean()
	})
}

// TestTreeEntriesInTheWay has a directory where a file should be and the reverse. These entries fail, those below them
// with them, and the rest is copied.
func TestTreeEntriesInTheWay(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		receiver := peerOf(sender)
		f.writeTree(sender, "", "a", "file", "dir/below", "z")
		f.writeTree(receiver, "own", "file/below", "dir")
		own := filepath.Join(f.dir, "own")
		must(f.t, writeRandomFile(own, "owndir", 3000))
		start := func(string) sidePair { return f.startTree(sender, treeFlags{receiver: "--overwrite "}) }
		start("").expectSomeFailed("file", "dir")
		f.expectPaths(receiver, "a", "dir", "file", "file/below", "z")
		must(f.t, compareFiles(own, f.tree(receiver, "dir")))
		must(f.t, compareFiles(f.tree(sender, "z"), f.tree(receiver, "z")))
		must(f.t, os.RemoveAll(f.tree(receiver, "file")))
		must(f.t, os.Remove(f.tree(receiver, "dir")))
		f.expectRepaired(sender, start)
	})
}

// TestTreeUnreadableEntries has a file and a directory that the user may not read. They fail, and the rest is copied.
func TestTreeUnreadableEntries(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		f.writeTree(sender, "", "a", "dir/file", "secret", "z")
		must(f.t, os.Chmod(f.tree(sender, "secret"), 0))
		must(f.t, os.Chmod(f.tree(sender, "dir"), 0))
		f.t.Cleanup(func() { _ = os.Chmod(f.tree(sender, "dir"), 0o755) }) // so that it can be removed
		start := f.unprivilegedTree(sender)
		start("").expectSomeFailed("secret", "dir")
		for _, name := range []string{"a", "z"} {
			must(f.t, compareFiles(f.tree(sender, name), f.tree(peerOf(sender), name)))
		}
		for _, name := range []string{"secret", "dir/file"} {
			if _, err := os.Lstat(f.tree(peerOf(sender), name)); err == nil {
				f.t.Errorf("%s was copied", name)
			}
		}
		must(f.t, os.Chmod(f.tree(sender, "secret"), 0o644))
		must(f.t, os.Chmod(f.tree(sender, "dir"), 0o755))
		f.expectRepaired(sender, start)
	})
}

// unprivilegedTree returns startTree with both sides as user nobody, if the test runs as root.
func (f *fixture) unprivilegedTree(sender string) (start func(receiver string) sidePair) {
	f.t.Helper()
	f.unprivileged = true
	prefix := ""
	if os.Geteuid() == 0 {
		shared := filepath.Join(f.dir, "shared")
		must(f.t, os.Mkdir(shared, 0o700))
		for _, path := range []string{shared, filepath.Join(f.dir, peerOf(sender))} {
			must(f.t, os.Chown(path, unprivilegedID, unprivilegedID))
		}
		prefix = "env DMA_COPY_SOFT_DIR=shared " // instead of the one of its own that such a process has
	}
	return func(receiver string) sidePair {
		flags := map[string]string{peerOf(sender): receiver}
		return sidePair{
			"host": f.start("host", prefix+hostTree+flags["host"]), "dpu": f.start("dpu", prefix+dpuTree+flags["dpu"]),
		}
	}
}

// TestTreeSourceChanges changes a file while it is sent. That file fails, and all others are copied.
func TestTreeSourceChanges(t *testing.T) {
	t.Parallel()
	for _, change := range sourceChanges {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				receiver := peerOf(sender)
				f.writeTree(sender, "", "a", "dir/below", "z")
				changed := f.tree(sender, "file")
				must(f.t, writeRandomFile(changed, "file", slowSize))
				start := func(receiver string) sidePair {
					return f.startTree(sender, treeFlags{"--bwlimit 2M ", "--chunk 64KiB " + receiver})
				}
				sides := start("")
				f.waitForBytes(f.tree(receiver), slowSize/4)
				sides[sender].stop() // so that the file is still being sent when it has changed
				must(f.t, change.apply(changed))
				must(f.t, sides[sender].signal(syscall.SIGCONT))
				sides.expectSomeFailed("file")
				f.expectPaths(receiver, "a", "dir", "dir/below", "z")
				for _, name := range []string{"a", "dir/below", "z"} {
					must(f.t, compareFiles(f.tree(sender, name), f.tree(receiver, name)))
				}
				f.expectRepaired(sender, start)
			})
		})
	}
}
