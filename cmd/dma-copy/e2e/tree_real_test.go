package e2e

import (
	"bytes"
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var treeDirs = flag.String("trees", "",
	"directories that TestRealTrees copies, separated by colons; default: a part of this module")

// TestRealTrees copies directories of this machine in both directions, and compares the copies with what find and, if
// it is installed, rsync say of them. The same commands then find nothing to do.
func TestRealTrees(t *testing.T) {
	t.Parallel()
	dirs := filepath.SplitList(*treeDirs)
	if len(dirs) == 0 {
		dirs = []string{filepath.Join(moduleRoot, "internal", "dmaxfer")}
	}
	for _, dir := range dirs {
		source, err := filepath.Abs(dir)
		must(t, err)
		t.Run(filepath.Base(source), func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) { f.copyRealTree(sender, source) })
		})
	}
}

func (f *fixture) copyRealTree(sender, source string) {
	f.t.Helper()
	target := f.tree(peerOf(sender))
	paths := map[string]string{sender: source, peerOf(sender): target}
	for range 2 {
		host := f.start("host", "dma-copy -p b1:00.1 --preserve links -f "+paths["host"])
		dpu := f.start("dpu", "dma-copy -p 03:00.1 -r b1:00.1 --preserve links -f "+paths["dpu"])
		host.expectExit(exitOK)
		dpu.expectExit(exitOK)
		c := sameTree
		c.HardLinks = true
		if err := c.Compare(f.t.Context(), source, target); err != nil {
			f.t.Error(err)
		}
	}
	f.expectClean()
	expectSameToFind(f.t, source, target)
	expectSameToRsync(f.t, source, target)
}

// expectSameToFind compares the names, types, permissions, sizes, times and symlinks of two trees as find prints them.
func expectSameToFind(t *testing.T, source, target string) {
	t.Helper()
	var printed [2][]string
	for i, dir := range []string{source, target} {
		// The size of a directory depends on its history.
		find := exec.Command("find", ".",
			"-type", "d", "-printf", `%P %y %m %T@\0`, "-o", "-printf", `%P %y %m %s %T@ %l\0`)
		find.Dir = dir
		output, err := find.Output()
		must(t, err)
		printed[i] = strings.Split(string(output), "\x00")
		slices.Sort(printed[i])
	}
	for i := range min(len(printed[0]), len(printed[1])) {
		if printed[0][i] != printed[1][i] {
			t.Fatalf("find prints %q of the target, want %q", printed[1][i], printed[0][i])
		}
	}
	if len(printed[0]) != len(printed[1]) {
		t.Errorf("find finds %d entries in the target, want %d", len(printed[1]), len(printed[0]))
	}
}

// expectSameToRsync expects rsync to have nothing to do, comparing content by checksum. Owners are not copied.
func expectSameToRsync(t *testing.T, source, target string) {
	t.Helper()
	rsync := exec.Command("rsync", "-anc", "--no-owner", "--no-group", "--delete", "--itemize-changes",
		source+"/", target+"/")
	output, err := rsync.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Log("rsync is not installed: compared by find and by this test alone")
		return
	}
	must(t, err)
	if changes := bytes.TrimSpace(output); len(changes) > 0 {
		t.Errorf("rsync would change the target:\n%s", changes)
	}
}
