package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// fleetPeers names the daemon twice, by the two functions of the host that it serves.
const fleetPeers = `{"peers": {"one": {"device": "b1:00.0"}, "two": {"device": "b1:00.1"}}}`

// pushToFleet starts a push of the file "a" to both peers, with a target of each.
func (f *daemonFixture) pushToFleet(flags string) side {
	f.t.Helper()
	for name, text := range map[string]string{
		"peers.json": fleetPeers, "peers.txt": "one:files/one/\ntwo:files/two/\n",
	} {
		must(f.t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o644))
	}
	return f.start("push", "dma-copy push --mkpath --keys host.keys --json peers.json "+flags+"host/a --to peers.txt")
}

// waitForCopies waits until some of each path has been copied.
func (d daemon) waitForCopies(paths ...string) {
	d.t.Helper()
	for _, path := range paths {
		d.waitForCopy(path)
	}
}

// expectEvent expects a line of stdout that matches the pattern.
func (s side) expectEvent(pattern string) {
	s.t.Helper()
	if printed := s.stdout.String(); !regexp.MustCompile(pattern).MatchString(printed) {
		s.t.Errorf("no event matches %s:\n%s", pattern, printed)
	}
}

// TestFleetIsInterrupted stops a push to several peers while it copies to all of them. The same command resumes all
// copies.
func TestFleetIsInterrupted(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.createLocal(pacedSize, "a")
	d := f.serve("-r b1:00.0 ")
	push := f.pushToFleet("-o json " + endlessFlags)
	d.waitForCopies("one/a", "two/a")
	must(t, push.signal(syscall.SIGINT))
	push.expectExit(exitSignal + int(syscall.SIGINT))
	push.expectEvent(`"type":"peers",.*"peers":2,"failed":2,"not_started":0,`)
	push.expectEvent(`"peer":"one:files/one/",.*"code":130,"message":"host: stopped by SIGINT`)
	d.waitUntilIdle()
	f.expectLeft(f.share("one", ".a.dma-copy-journal"), f.share("one", ".a.dma-copy-part"),
		f.share("two", ".a.dma-copy-journal"), f.share("two", ".a.dma-copy-part"))

	again := f.pushToFleet("")
	again.expectExit(exitOK)
	again.expectStderr("total 2 peers, 2 files copied, ")
	for _, name := range []string{"one", "two"} {
		must(t, compareFiles(f.local("a"), f.share(name, "a")))
	}
	d.stop()
}

// TestFleetNotStarted stops a push that copies to one peer at a time: the second one is not started.
func TestFleetNotStarted(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.createLocal(pacedSize, "a")
	d := f.serve("-r b1:00.0 ")
	push := f.pushToFleet("--parallel 1 -o json " + endlessFlags)
	d.waitForCopy("one/a")
	must(t, push.signal(syscall.SIGTERM))
	push.expectExit(exitSignal + int(syscall.SIGTERM))
	push.expectEvent(`"peer":"two:files/two/",.*"code":143,"message":"stopped by SIGTERM","not_started":true`)
	push.expectEvent(`"type":"peers",.*"peers":2,"failed":1,"not_started":1,`)
	d.expectEndAfterTerm()
}

var logPeerFailed = regexp.MustCompile(`(?m)^fail  one:files/one/: `)

// TestFleetOutlivesAPeer kills the daemon of one peer: its copy fails, and that to the other one goes on.
func TestFleetOutlivesAPeer(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.createLocal(pacedSize, "a")
	d := f.serve("")
	must(t, os.MkdirAll(filepath.Join(f.dir, "other"), 0o755))
	other := f.startWith(processOptions{name: "other", timeout: daemonTimeout},
		"dma-copy serve -p 03:00.0 -r b1:00.0 --keys dpu.keys --runtime-dir other/run --share files=other,rw "+
			"--bwlimit 64KiB") // so that its copy is still running when it is killed
	other.waitForLog(logReady)
	push := f.pushToFleet(pacedFlags)
	d.waitForCopy("two/a")
	must(t, other.signal(syscall.SIGKILL))
	push.waitForLog(logPeerFailed)
	push.expectExit(exitSomeFailed)
	push.expectStderr("ok    two:files/two/: 1 file copied")
	must(t, compareFiles(f.local("a"), f.share("two", "a")))
	other.expectExitIn(exitKilled)
	d.expectEndAfterTerm()
}

// expectEndAfterTerm ends the daemon, where something may be left on purpose.
func (d daemon) expectEndAfterTerm() {
	d.t.Helper()
	must(d.t, d.signal(syscall.SIGTERM))
	d.expectEnd()
}

// TestFleetSaysWhatItWaitsFor asks a push to several peers how far it is: each copy that runs has a line.
func TestFleetSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.createLocal(pacedSize, "a")
	d := f.serve("-r b1:00.0 ")
	push := f.pushToFleet(endlessFlags)
	d.waitForCopies("one/a", "two/a")
	push.askUntil(regexp.MustCompile(`(?m)^0/2 peers  2 running  `))
	for _, name := range []string{"one", "two"} {
		push.askUntil(regexp.MustCompile(`(?m)^run   ` + name + `:files/` + name +
			`/: \d+%  .*; the host (waits|has) .*; last progress \d+\.\ds ago`))
	}
	must(t, push.signal(syscall.SIGINT))
	push.expectExit(exitSignal + int(syscall.SIGINT))
	d.expectEndAfterTerm()
}
