package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

var previousRelease = flag.String("interop.previous", "",
	"path of the dma-copy of another release, with which TestInterop tests this one; default: this one")

// installPrevious puts the dma-copy of the other release into a directory of its own, where a test that runs as
// another user reaches it as well, and returns its path.
var installPrevious = sync.OnceValues(func() (string, error) {
	program, err := exec.LookPath("dma-copy")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(program), "previous")
	previous := filepath.Join(dir, "dma-copy")
	if *previousRelease != "" {
		program = *previousRelease
	}
	return previous, errors.Join(os.MkdirAll(dir, 0o755), copyProgram(program, previous))
})

// eitherWay returns the ways in which a test combines the two releases: only the first if both are this one, because
// then the others would repeat it.
func eitherWay[T any](ways []T) []T {
	if *previousRelease == "" {
		return ways[:1]
	}
	return ways
}

// commandsOfTheService are the names of processes of the side of the commands.
var commandsOfTheService = []string{"push", "pull", "sync", "ls", "ping"}

// TestInterop copies between this program and that of another release: either of them is the host, sends, and runs the
// daemon. What a promise of compatibility covers is in docs/internals/testing.md.
func TestInterop(t *testing.T) {
	t.Parallel()
	for _, previous := range eitherWay(bothSides) {
		t.Run("previous_is_"+previous, func(t *testing.T) {
			t.Parallel()
			for name, dpuFlags := range map[string]string{"file": "", "reference": referenceFlag, "fast": fastFlag} {
				t.Run(name, func(t *testing.T) { t.Parallel(); testInteropFile(t, previous, dpuFlags) })
			}
			t.Run("tree", func(t *testing.T) { t.Parallel(); testInteropTree(t, previous) })
			t.Run("service", func(t *testing.T) {
				t.Parallel()
				test := func(f *daemonFixture) { f.testInterop(previous) }
				forEachServingSide(t, test)
				forEachUCXPath(t, test)
			})
		})
	}
}

// runPrevious makes a side run the program of the other release.
func (f *fixture) runPrevious(side string) {
	f.t.Helper()
	program, err := installPrevious()
	must(f.t, err)
	f.programs = map[string]string{side: program}
}

func testInteropFile(t *testing.T, previous, dpuFlags string) {
	forEachSender(t, func(f *fixture, sender string) {
		f.runPrevious(previous)
		for _, size := range []int64{1, 65536, 5_000_001} {
			f.createFile(sender, size)
			f.startBoth(map[string]string{"host": hostCommand, "dpu": dpuCommand + dpuFlags}).expectInterop()
			f.expectSameFiles()
			must(f.t, os.Remove(f.path(peerOf(sender))))
		}
		f.expectClean()
	})
}

// expectInterop expects both sides to succeed. The output is that of two releases, whose form may differ.
func (p sidePair) expectInterop() {
	p["host"].t.Helper()
	for _, s := range p {
		s.expectExitIn(exitOK)
	}
}

func testInteropTree(t *testing.T, previous string) {
	forEachSender(t, func(f *fixture, sender string) {
		f.runPrevious(previous)
		f.makeRichTree(sender, false)
		const flags = "--preserve links "
		f.startTree(sender, treeFlags{flags, flags}).expectInterop()
		c := sameTree
		c.HardLinks = true
		f.expectSameTrees(sender, c)

		must(f.t, os.Remove(f.tree(sender, "third")))
		f.writeTree(sender, "new", "sizes/4096", "added/file")
		copied := f.list(peerOf(sender))
		f.startTree(sender, treeFlags{flags, flags + "--overwrite "}).expectInterop()
		f.expectWritten(peerOf(sender), copied, "added/file", "sizes/4096")
	})
}

// testInterop runs each command of the service between the two releases. Each side makes its key with its own program.
func (f *daemonFixture) testInterop(previous string) {
	f.t.Helper()
	f.runPrevious(previous)
	names := commandsOfTheService
	if previous == f.serves {
		names = []string{"daemon"}
	}
	for _, name := range names {
		f.programs[name] = f.programs[previous]
	}
	f.exchangeKeys()
	f.createLocal(3_000_001, "file")
	must(f.t, filetree.New(filetree.Small, 60).Write(f.t.Context(), f.local("tree")))
	d := f.serve("")
	f.expectServed()
	d.stop()
}

// exchangeKeys replaces the keys of both sides by some that their programs make and trust.
func (f *daemonFixture) exchangeKeys() {
	f.t.Helper()
	lines := map[string]string{}
	for _, side := range bothSides {
		must(f.t, os.RemoveAll(filepath.Join(f.dir, side+".keys")))
		lines[side], _, _ = strings.Cut(f.expectKeys(side, "new").stdout.String(), "\n")
	}
	for _, side := range bothSides {
		path := filepath.Join(f.dir, peerOf(side)+".line")
		must(f.t, os.WriteFile(path, []byte(lines[peerOf(side)]+"\n"), 0o644))
		f.expectKeys(side, "trust peer "+peerOf(side)+".line")
	}
}

func (f *daemonFixture) expectKeys(side, arguments string) side {
	f.t.Helper()
	s := f.start(side, fmt.Sprintf("dma-copy keys %s --keys %s.keys", arguments, side))
	s.expectExitIn(exitOK)
	return s
}

// expectServed copies the local file and tree to the share and back, and changes the copies like their source.
func (f *daemonFixture) expectServed() {
	f.t.Helper()
	commands := f.commands()
	run := func(format string) {
		f.t.Helper()
		f.command(strings.ReplaceAll(format, "HERE", commands)).expectExitIn(exitOK)
	}
	same := func(c filetree.Comparison, source, target string) {
		f.t.Helper()
		if err := c.Compare(f.t.Context(), source, target); err != nil {
			f.t.Error(err)
		}
	}
	run("ping :")
	run("push HERE/file HERE/tree :files/")
	f.expectPushed("file")
	same(sameTree, f.local("tree"), f.share("tree"))
	must(f.t, os.Mkdir(f.local("back"), 0o755))
	run("pull :files/file :files/tree HERE/back/")
	must(f.t, compareFiles(f.share("file"), f.local("back", "file")))
	same(sameTree, f.share("tree"), f.local("back", "tree"))

	entries, err := os.ReadDir(f.local("tree"))
	must(f.t, err)
	must(f.t, os.RemoveAll(f.local("tree", entries[0].Name())))
	must(f.t, writeRandomFile(f.local("tree", "added"), "added", 70_000))
	// Without times: the deletion comes last, and changes that of the directory.
	afterDeletion := filetree.Comparison{Modes: true}
	run("sync --delete --max-delete 1000 HERE/tree :files/tree")
	same(afterDeletion, f.local("tree"), f.share("tree"))
	run("sync --delete --max-delete 1000 :files/tree HERE/back/tree")
	same(afterDeletion, f.share("tree"), f.local("back", "tree"))
	list := f.command("ls --recursive :files")
	list.expectExitIn(exitOK)
	if printed := list.stdout.String(); !strings.Contains(printed, "\ntree/added\n") {
		f.t.Errorf("ls does not print tree/added:\n%s", printed)
	}
}

// TestInteropResume interrupts a receiver of one release, as before an upgrade or a downgrade. That of the other
// release resumes from what has arrived.
func TestInteropResume(t *testing.T) {
	t.Parallel()
	for _, upgrade := range eitherWay([]bool{true, false}) {
		t.Run(fmt.Sprintf("upgrade_%t", upgrade), func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) { f.testInteropResume(peerOf(sender), upgrade) })
		})
	}
}

func (f *fixture) testInteropResume(receiver string, upgrade bool) {
	f.t.Helper()
	f.createFile(peerOf(receiver), slowSize)
	if upgrade {
		f.runPrevious(receiver)
	}
	sides := f.startSlowTransfer(slowerFlags)
	f.waitForBytes(filepath.Dir(f.path(receiver)), slowSize/16)
	must(f.t, sides[receiver].signal(syscall.SIGINT))
	for _, s := range sides {
		s.expectExitIn(exitInterrupt)
	}

	f.programs = nil
	if !upgrade {
		f.runPrevious(receiver)
	}
	resumed := f.startBoth(map[string]string{"host": hostCommand, "dpu": dpuCommand + "--chunk 64KiB"})
	resumed.expectInterop()
	resumed[receiver].expectStderr("that the target has")
	f.expectSameFiles()
	f.expectClean()
}
