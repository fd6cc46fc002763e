package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

const fewDaemonKills = 2

var (
	daemonKillCount = flag.Int("daemon.kills", fewDaemonKills,
		"how often TestDaemonCrashAtRandomTime kills a daemon, and TestCommandCrashAtRandomTime commands, on each "+
			"side; the default only with two of the places of a daemon, which follow from the seed")
	daemonKillSeed = flag.Uint64("daemon.seed", 0, "seed of their random times; 0: a new one each time")
)

// TestDaemonCrashAtRandomTime kills a daemon with SIGKILL at random times while commands push, pull and sync files and
// trees, and starts it again. Each command ends with 7, or with 0 if its copy was complete or it had not met the daemon
// that was killed. Every file under its final name is complete. The same commands then complete what is missing: they
// resume the files whose beginning was kept, copy none again that was complete, and leave nothing else.
func TestDaemonCrashAtRandomTime(t *testing.T) {
	t.Parallel()
	forEachLoad(t, func(l *load) {
		d := l.serve("")
		for n := range l.kills() {
			commands := l.startAll()
			sleepFraction(l.duration, l.random.Float64())
			d.kill()
			d = l.serve("")
			for i, command := range commands {
				l.expectEnd(l.copies[i], command, exitPeer)
			}
			l.expectRepeated()
			l.checkRound(n)
		}
		d.stop()
	})
}

// TestCommandCrashAtRandomTime kills some of several commands with SIGKILL at random times. The others complete their
// copies with the same daemon, which afterwards holds what it did before, and completes the others when they are
// repeated.
func TestCommandCrashAtRandomTime(t *testing.T) {
	t.Parallel()
	forEachLoad(t, func(l *load) {
		d := l.serve("")
		l.run()
		before := d.resourcesAtRest()
		l.reset()
		for n := range l.kills() {
			commands := l.startAll()
			killed := l.random.Perm(len(commands))[:1+l.random.IntN(len(commands)-1)]
			sleepFraction(l.duration, l.random.Float64())
			for _, i := range killed {
				commands[i].kill()
			}
			for i, command := range commands {
				if slices.Contains(killed, i) {
					l.expectEnd(l.copies[i], command, exitKilled)
				} else {
					l.expectEnd(l.copies[i], command, exitOK)
				}
			}
			d.waitUntilIdle()
			l.expectRepeated()
			l.checkRound(n)
		}
		d.expectResources(before)
		d.stop()
	})
}

// TestDaemonDiesWhileItDeletes kills a daemon that is deleting what the source of a sync lacks. The command, which
// waits until its lines about that are read, says so, and with the next daemon it deletes the rest.
func TestDaemonDiesWhileItDeletes(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	const files = 2000
	for i := range files { // of which some dozen names fit into a message
		must(t, os.WriteFile(f.share(fmt.Sprintf("%0100d", i)), nil, 0o644))
	}
	must(t, os.Mkdir(f.local("empty"), 0o755))
	d := f.serve("")
	const line = "sync --delete=force host/empty/. :files"
	command, rest := f.commandWithFullPipe(line, "deleted ")
	d.kill()
	const lost = "the copy is complete, but the connection to the DPU was lost before everything was deleted"
	if text := rest(); !strings.Contains(text, lost) {
		t.Errorf("the command does not say that it was lost: %s", text)
	}
	command.expectExitIn(exitPeer)
	d = f.serve("")
	if left := namesIn(t, f.share()); len(left) == 0 || len(left) == files {
		t.Errorf("the first daemon has left %d files of %d", len(left), files)
	}
	f.expectCommand(line)
	if left := namesIn(t, f.share()); len(left) > 0 {
		t.Errorf("%d files were not deleted", len(left))
	}
	d.stop()
}

// TestDaemonDiesWhileItAnswers kills a daemon that is answering pings. The command does not speak of a copy.
func TestDaemonDiesWhileItAnswers(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	d := f.serve("")
	command := f.command("ping --count 1000000 :")
	d.waitForStatus("pings", func(s daemonStatus) bool { return len(s.Connections) == 1 && s.Totals.Requests > 0 })
	d.kill()
	command.expectExit(exitPeer)
	command.expectStderr("the connection to the DPU was lost before the ping ended: check the other side and try again")
}

// load is a daemon's share, and commands that push to it, pull from it and sync with it at the same time.
type load struct {
	*daemonFixture
	random   *rand.Rand
	copies   []loadCopy
	duration time.Duration // of all commands, measured
}

// loadCopy is one command of a load, and what it copies.
type loadCopy struct {
	line           string
	source, target string // paths
	tree, deletes  bool
}

// forEachLoad runs a test with a daemon on each side, and over the paths of UCX, without anything copied yet.
func forEachLoad(t *testing.T, test func(l *load)) {
	t.Helper()
	seed := *daemonKillSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	run := func(f *daemonFixture) {
		if *daemonKillCount == fewDaemonKills && !inSample(f.t.Name(), seed) {
			f.t.Log("not in the sample of this seed")
			return
		}
		l := newLoad(f)
		l.random = rand.New(rand.NewPCG(seed, uint64(slices.Index(bothSides, f.serves))))
		d := l.serve("")
		started := time.Now()
		l.run()
		l.duration = time.Since(started)
		d.stop()
		l.reset()
		test(l)
	}
	forEachServingSide(t, run)
	forEachUCXPath(t, run)
}

// inSample reports whether the seed has chosen a load. Over am nothing is killed few times, see kills.
func inSample(test string, seed uint64) bool {
	places := []string{"daemon_on_dpu", "over_rma", "daemon_on_host", "daemon_on_another_machine"}
	i := slices.Index(places, path.Base(test))
	first := int(seed % uint64(len(places)))
	return i == first || i == (first+1)%len(places)
}

// kills returns how often a process of the load is killed. A daemon on the host is found later, so that it is killed
// less often, and so is one for each path of UCX. Over am, UCX may end the process on the other side as well
// (SECURITY.md), so that processes are killed by make test-kill only.
func (l *load) kills() int {
	if l.dataPath == "am" {
		return *daemonKillCount / 10
	}
	if l.serves == "host" || l.dataPath != "" {
		return (*daemonKillCount + 2) / 3
	}
	return *daemonKillCount
}

func newLoad(f *daemonFixture) *load {
	f.t.Helper()
	// Slow enough that a random time is likely to hit each phase of a copy.
	f.environment = append(f.environment, "DMA_COPY_SOFT_LIMITS=task_latency_us=2000")
	l := &load{daemonFixture: f}
	for _, root := range []string{f.share(), f.local()} {
		must(f.t, os.MkdirAll(filepath.Join(root, "out"), 0o755))
		must(f.t, os.MkdirAll(filepath.Join(root, "in"), 0o755))
		// More than an interval of the journal.
		must(f.t, writeRandomFile(filepath.Join(root, "out", "file"), root, 24<<20))
		must(f.t, filetree.New(filetree.Source, 60).Write(f.t.Context(), filepath.Join(root, "out", "tree")))
	}
	const flags = " --chunk 256KiB --depth 4 --wait 60s "
	at := f.commands()
	l.copies = []loadCopy{
		{"push -o json" + flags + at + "/out/file :files/in/", f.local("out/file"), f.share("in/file"), false, false},
		{"pull -o json" + flags + ":files/out/file " + at + "/in/", f.share("out/file"), f.local("in/file"),
			false, false},
		{"push" + flags + at + "/out/tree :files/in/tree", f.local("out/tree"), f.share("in/tree"), true, false},
		{"sync --delete" + flags + ":files/out/tree " + at + "/in/tree", f.share("out/tree"),
			f.local("in/tree"), true, true},
	}
	return l
}

func (l *load) startAll() (commands []side) {
	l.t.Helper()
	for _, c := range l.copies {
		commands = append(commands, l.command(c.line))
	}
	return commands
}

// run makes all copies.
func (l *load) run() {
	l.t.Helper()
	for i, command := range l.startAll() {
		command.expectExit(exitOK)
		l.expectComplete(l.copies[i])
	}
}

// reset removes what was copied.
func (l *load) reset() {
	l.t.Helper()
	for _, c := range l.copies {
		must(l.t, os.RemoveAll(c.target))
	}
}

func (l *load) checkRound(n int) {
	l.t.Helper()
	l.expectLeft()
	if l.t.Failed() {
		l.t.Fatalf("in round %d", n)
	}
	l.reset()
}

// expectEnd expects a command to end with 0 and its copy to be complete, or with another code and no file that has its
// final name and is not complete.
func (l *load) expectEnd(c loadCopy, command side, code int) {
	l.t.Helper()
	if command.exitCode() == exitOK {
		command.expectExit(exitOK)
		l.expectComplete(c)
		return
	}
	if c.deletes && strings.HasPrefix(command.stderr.String(), "ok ") {
		command.expectExitIn(code) // it was lost when the copy was complete, and reported
		l.expectComplete(c)
		return
	}
	if !l.isAborted(command) {
		command.expectExit(code)
	}
	l.committed(c)
}

// isAborted reports whether UCX has ended a command that copies by active messages over TCP, by an assertion that
// SECURITY.md documents: its daemon was killed in the moment in which UCX connected.
func (l *load) isAborted(command side) bool {
	const code, assertion = 2, "got REP message"
	return l.dataPath == "am" && command.exitCode() == code && strings.Contains(command.stderr.String(), assertion)
}

func (l *load) expectComplete(c loadCopy) {
	l.t.Helper()
	if !c.tree {
		if err := compareFiles(c.source, c.target); err != nil {
			l.t.Error(err)
		}
	} else if err := sameTree.Compare(l.t.Context(), c.source, c.target); err != nil {
		l.t.Error(err)
	}
}

// committed returns the files that have their final names. It expects each to be complete.
func (l *load) committed(c loadCopy) (entries []filetree.Entry) {
	l.t.Helper()
	if _, err := os.Lstat(c.target); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := filetree.List(l.t.Context(), c.target)
	must(l.t, err)
	for _, e := range entries {
		if !e.Mode.IsRegular() || isTemporary(e.Path) {
			continue
		}
		if err := compareFiles(filepath.Join(c.source, e.Path), filepath.Join(c.target, e.Path)); err != nil {
			l.t.Errorf("%s has its final name and is not complete: %v", filepath.Join(c.target, e.Path), err)
		}
	}
	return entries
}

// expectRepeated runs all commands again and expects them to complete what is there. Files that are complete are not
// written again, and those that are not are resumed.
func (l *load) expectRepeated() {
	l.t.Helper()
	before, resumable := make([][]filetree.Entry, len(l.copies)), make([]int64, len(l.copies))
	for i, c := range l.copies {
		before[i] = l.committed(c)
		if !c.tree && before[i] == nil {
			resumable[i] = resumableBytes(l.t, filepath.Dir(c.target))
		}
	}
	for i, command := range l.startAll() {
		command.expectExit(exitOK)
		l.expectComplete(l.copies[i])
		if !l.copies[i].tree {
			command.expectResumed(resumable[i])
		}
		if before[i] == nil {
			continue
		}
		for _, path := range filetree.Written(before[i], l.committed(l.copies[i])) {
			existed := func(e filetree.Entry) bool { return e.Path == path && !isTemporary(path) }
			if slices.ContainsFunc(before[i], existed) {
				l.t.Errorf("%s was complete, and is written again", filepath.Join(l.copies[i].target, path))
			}
		}
	}
}
