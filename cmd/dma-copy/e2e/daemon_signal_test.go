package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/identity"
)

var logReloaded = regexp.MustCompile(`(?m)^reloaded: `)

const (
	// pacedFlags make a copy of pacedSize take four seconds, in which other commands start even on a busy machine.
	pacedFlags = "--bwlimit 512KiB --chunk 64KiB "
	pacedSize  = 2 << 20

	// stoppableFlags make it take a quarter of a minute, in which a copy that was seen can be stopped.
	stoppableFlags = "--bwlimit 128KiB --chunk 64KiB "

	// endlessFlags make it take half a minute: one that the test ends.
	endlessFlags = "--bwlimit 64KiB --chunk 64KiB "
)

// createLocal makes files of random bytes on the side of the commands.
func (f *daemonFixture) createLocal(size int64, names ...string) {
	f.t.Helper()
	for _, name := range names {
		must(f.t, writeRandomFile(f.local(name), name, size))
	}
}

// push starts a push of a file of the same name that takes four seconds, and waits until it has begun.
func (d daemon) push(key, name string) side {
	d.t.Helper()
	return d.pushWith(pacedFlags, key, name)
}

// pushWith is push with other flags. On a busy machine the test may not see the copy before it is complete: then it is
// made again, and takes longer.
func (d daemon) pushWith(flags, key, name string) side {
	d.t.Helper()
	f := d.fixture
	for _, paced := range []string{flags, endlessFlags} {
		s := f.commandWithKey(key, "push "+paced+filepath.Join(f.commands(), name)+" :files/"+name)
		if d.seesCopy(name, s) {
			return s
		}
		s.expectExit(exitOK)
		must(d.t, os.Remove(f.share(name)))
	}
	d.t.Fatalf("the copy of %s is never seen", name)
	return side{}
}

// seesCopy reports whether the daemon's status shows that some of a file has been copied, before the command ends.
func (d daemon) seesCopy(name string, command side) bool {
	d.t.Helper()
	for !command.hasEnded() {
		if moved, _ := d.status().movedOf(name); moved > 0 {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// waitForCopy waits until some of a file has been copied.
func (d daemon) waitForCopy(name string) {
	d.t.Helper()
	d.waitForStatus("copying "+name, func(s daemonStatus) bool {
		moved, _ := s.movedOf(name)
		return moved > 0
	})
}

// movedOf returns how many bytes of a file have been copied, and whether a request for it runs.
func (s daemonStatus) movedOf(name string) (moved int64, runs bool) {
	for _, c := range s.Connections {
		if c.Request != nil && c.Request.Path == name {
			moved, runs = max(moved, c.Request.Moved), true
		}
	}
	return moved, runs
}

func (f *daemonFixture) expectPushed(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if err := compareFiles(f.local(name), f.share(name)); err != nil {
			f.t.Error(err)
		}
	}
}

// TestDaemonDrains ends a daemon with SIGTERM while some copies run and others are queued. The running ones
// complete, the waiting and new ones end with 7, and a daemon that is started again completes those.
func TestDaemonDrains(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	names := []string{"a", "b", "c", "d"}
	f.createLocal(pacedSize, names...)
	d := f.serve("--max-transfers 2 --idle-timeout 5m --drain-timeout 5m") // longer than the commands are stopped
	var running []side
	for _, name := range names[:2] {
		command := d.pushWith(stoppableFlags, "host", name)
		command.stop() // so that its copy still runs when the others are queued, however busy the machine is
		running = append(running, command)
	}
	waiting := []side{f.command("push host/c :files/"), f.command("push host/d :files/")}
	d.waitForStatus("full", func(s daemonStatus) bool { return s.Running == 2 && s.Waiting == 2 })
	must(t, d.signal(syscall.SIGTERM))
	for _, s := range waiting {
		s.expectExit(exitPeer)
		s.expectStderr("the daemon is shutting down")
	}
	late := f.command("push --wait 100ms host/c :files/")
	for _, s := range running {
		must(t, s.signal(syscall.SIGCONT))
	}
	for _, s := range running {
		s.expectExit(exitOK)
	}
	late.expectExit(exitPeer)
	f.expectPushed("a", "b")
	d.expectEnd()
	f.expectNothingLeft()
	d = f.serve("")
	for _, name := range names {
		f.expectCommand("push host/" + name + " :files/")
	}
	f.expectPushed(names...)
	d.stop()
}

// TestSecondSignalEndsTheDaemon sends SIGTERM to a daemon that drains already. It ends at once, the copy that was
// running ends with 7, and the next daemon completes it.
func TestSecondSignalEndsTheDaemon(t *testing.T) {
	t.Parallel()
	forEachServingSide(t, (*daemonFixture).endInTheMiddle)
}

// endInTheMiddle ends a daemon by two signals in the middle of a copy, which the next daemon completes.
func (f *daemonFixture) endInTheMiddle() {
	f.t.Helper()
	f.createLocal(pacedSize, "a")
	d := f.serve("")
	running := d.pushWith(endlessFlags, f.commands(), "a")
	running.stop() // so that its copy still runs at the second signal, however busy the machine is
	must(f.t, d.signal(syscall.SIGTERM))
	d.waitForStatus("draining", func(s daemonStatus) bool { return s.Draining })
	must(f.t, d.signal(syscall.SIGTERM))
	d.expectExitIn(exitTerminated)
	must(f.t, running.signal(syscall.SIGCONT))
	running.expectExitIn(exitPeer)
	if _, err := os.Lstat(f.share("a")); err == nil {
		f.t.Error("the file has its final name")
	}
	d = f.serve("")
	f.expectCommand("push " + f.commands() + "/a :files/")
	f.expectPushed("a")
	d.stop()
}

// TestReloadUnderLoad changes shares and keys of a daemon with SIGHUP while others copy. A running copy goes on when
// its share is removed, or its key is no longer trusted; then each new request of that key is refused.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.createLocal(pacedSize, "a", "b", "c", "other")
	second := f.createKey("second")
	f.trustAs("dpu", "second", second)
	daemonKey, err := f.keys("dpu").Key()
	must(t, err)
	f.trust("second", daemonKey.Public())
	f.setShares("files", "more")
	d := f.serveWith("-j serve.json ")
	other := d.push("host", "other")

	running := d.push("second", "a")
	must(t, f.keys("dpu").Remove("second"))
	f.setShares("files")
	d.reload(1)
	refused := f.commandWithKey("second", "ls :")
	refused.expectExit(exitRefused)
	refused.expectStderr("does not trust the key")
	running.expectExitIn(exitOK)
	f.expectPushed("a")

	f.setShares("more")
	running = d.push("host", "b")
	d.reload(2)
	f.command("push host/c :files/").expectExit(exitRefused)
	running.expectExitIn(exitOK)
	other.expectExitIn(exitOK)
	f.expectPushed("b", "other")

	f.trustAs("dpu", "second", second)
	f.setShares("files")
	d.reload(3)
	f.commandWithKey("second", "push host/c :files/").expectExit(exitOK)
	f.expectPushed("c")
	d.stop()
}

// TestKeyRevokedBetweenSources removes a key while the first of two files is copied with it. That copy completes, and
// the next one is refused.
func TestKeyRevokedBetweenSources(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.createLocal(pacedSize, "a", "b")
	other := f.createKey("other")
	f.trustAs("dpu", "other", other)
	d := f.serve("")
	running := f.command("push " + stoppableFlags + "host/a host/b :files/")
	d.waitForCopy("a")
	running.stop() // so that the first copy still runs when the key is gone, however busy the machine is
	must(t, f.keys("dpu").Remove("peer"))
	d.reload(1)
	must(t, running.signal(syscall.SIGCONT))
	running.expectExitIn(exitRefused, exitSomeFailed)
	f.expectPushed("a")
	if _, err := os.Lstat(f.share("b")); err == nil {
		t.Error("a copy was made with a key that was not trusted any more")
	}
	d.stop()
}

// trustAs makes a key trusted under a name.
func (f *daemonFixture) trustAs(keys, name string, key identity.Public) {
	f.t.Helper()
	must(f.t, f.keys(keys).Trust(identity.Grant{Name: name, Key: key}, true))
}

// setShares writes a parameter file in which each share is the same directory.
func (f *daemonFixture) setShares(names ...string) {
	f.t.Helper()
	shares := ""
	for i, name := range names {
		if i > 0 {
			shares += ", "
		}
		shares += fmt.Sprintf("%q", name+"="+f.serves+"/share,rw")
	}
	must(f.t, os.WriteFile(filepath.Join(f.dir, "serve.json"), []byte(`{"serve": {"share": [`+shares+`]}}`), 0o644))
}

// reload sends SIGHUP and waits until the daemon has reloaded so many times.
func (d daemon) reload(times int) {
	d.t.Helper()
	must(d.t, d.signal(syscall.SIGHUP))
	for {
		changed := d.stderr.changed()
		if len(logReloaded.FindAllString(d.stderr.String(), -1)) >= times {
			return
		}
		select {
		case <-changed:
		case <-d.done:
			d.t.Fatalf("the daemon has ended:\n%s", d.stderr.String())
		}
	}
}

// TestDaemonEndsWithItsTerminal closes the terminal of a daemon, to which SIGHUP is a reload as long as it has one.
func TestDaemonEndsWithItsTerminal(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	control, device, err := openTerminal()
	must(t, err)
	f.setShares("files")
	d := f.serveAs(processOptions{terminal: device}, "-j serve.json ")
	must(t, device.Close())
	d.reload(1)
	f.createLocal(1000, "a")
	f.command("push host/a :files/").expectExit(exitOK)
	must(t, control.Close())
	d.expectExit(exitOK)
}

// TestStoppedCommands stops as many of 16 commands as there may be copies at once. The others wait for at most the
// daemon's idle timeout, and then complete; the daemon gives up the stopped ones, and holds nothing of them. One that
// is stopped for a shorter time completes.
func TestStoppedCommands(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.createLocal(pacedSize, "a", "b", "shortly")
	d := f.serve("--max-transfers 2 " + patientFlag)
	before := d.resources()
	var stopped []side
	for _, name := range []string{"a", "b"} {
		s := d.pushWith(endlessFlags, "host", name)
		s.stop()
		stopped = append(stopped, s)
	}
	f.expectClients(14)
	// The others need only one of the two copies to be given up.
	d.waitForStatus("without transfers", func(s daemonStatus) bool { return s.Running == 0 })
	stopped[0].kill()
	must(t, stopped[1].signal(syscall.SIGCONT))
	stopped[1].expectExitIn(exitPeer)
	d.waitUntilIdle()

	shortly := d.push("host", "shortly")
	shortly.stop()
	f.expectClients(3)
	must(t, shortly.signal(syscall.SIGCONT))
	shortly.expectExitIn(exitOK, exitPeer) // it may have been stopped for too long
	d.waitUntilIdle()
	for _, name := range []string{"a", "b", "shortly"} {
		f.expectCommand("push host/" + name + " :files/")
	}
	f.expectPushed("a", "b", "shortly")
	d.expectResources(before)
	d.stop()
}

// expectClients pushes so many small files at once.
func (f *daemonFixture) expectClients(count int) {
	f.t.Helper()
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("client%d", i))
	}
	f.createLocal(100_000, names...)
	var clients []side
	for _, name := range names {
		clients = append(clients, f.command("push host/"+name+" :files/"))
	}
	for _, s := range clients {
		s.expectExit(exitOK)
	}
	f.expectPushed(names...)
}
