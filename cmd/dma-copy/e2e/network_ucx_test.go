package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/internal/ucx"
)

// TestUCXIsLoadedOnlyIfAskedFor looks at the libraries of a daemon and a command in the middle of a copy. Neither has
// UCX unless the daemon permits a path of UCX and the command names it.
func TestUCXIsLoadedOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	f := newNetworkFixture(t)
	f.createLocal(pacedSize, "a", "b")
	d := f.serve("")
	running := d.push(f.commands(), "a")
	d.expectUCX(false)
	running.expectUCX(false)
	refused := f.command("push --path am host/b :files/")
	refused.expectExitIn(exitPeer, exitDevice)
	refused.expectStderr("--path")
	d.expectUCX(false)
	running.expectExitIn(exitOK)
	d.stop()

	skipWithoutUCX(t)
	d = f.serve("--path tls,am ")
	running = d.push(f.commands(), "b")
	running.expectUCX(false)
	running.expectExitIn(exitOK)
	f.expectCommand("push --overwrite --path am host/a :files/b")
	d.expectUCX(true)
	d.stop()
}

// TestStopsOverUCX stops a command and then the daemon in the middle of a copy over each path of UCX, for longer than
// the idle timeout of the other side. That side gives up, the daemon holds nothing of the copy, and the same command
// completes it.
func TestStopsOverUCX(t *testing.T) {
	const slowFlags = "--bwlimit 64KiB " // pacedSize takes 32 s, of which the copy has only the first moments
	t.Parallel()
	forEachUCXPath(t, func(f *daemonFixture) {
		f.createLocal(pacedSize, "pushed", "first", "stopped")
		d := f.serve(patientFlag)
		f.expectCommand("push host/first :files/")
		before := d.resources()

		pushed := d.pushWith(slowFlags, "host", "pushed")
		must(f.t, pushed.signal(syscall.SIGSTOP))
		d.waitForStatus("without transfers", func(s daemonStatus) bool { return s.Running == 0 })
		must(f.t, pushed.signal(syscall.SIGCONT))
		pushed.expectExitIn(exitPeer)
		f.expectCommand("push host/pushed :files/")
		f.expectPushed("pushed")

		pushed = d.pushWith(idleFlag+slowFlags, "host", "stopped")
		pulled := f.command("pull " + idleFlag + slowFlags + ":files/first host/pulled")
		d.waitForCopy("first")
		must(f.t, d.signal(syscall.SIGSTOP))
		pushed.expectExitIn(exitPeer)
		pulled.expectExitIn(exitPeer)
		must(f.t, d.signal(syscall.SIGCONT))
		d.expectResources(before)
		for _, line := range []string{"push host/stopped :files/", "pull :files/first host/pulled"} {
			f.expectCommand(line).expectStderr("blake3:")
		}
		f.expectPushed("stopped")
		must(f.t, compareFiles(f.share("first"), f.local("pulled")))
		d.expectResources(before)
		d.stop()
	})
}

// TestDaemonEndsOverUCX ends a daemon with two signals in the middle of a copy over each path of UCX. The next daemon
// completes it.
func TestDaemonEndsOverUCX(t *testing.T) {
	t.Parallel()
	forEachUCXPath(t, (*daemonFixture).endInTheMiddle)
}

// forEachUCXPath runs a test with a daemon on another machine that permits one path of UCX, which the commands name.
func forEachUCXPath(t *testing.T, test func(f *daemonFixture)) {
	t.Helper()
	for _, path := range []string{"am", "rma"} {
		t.Run("over_"+path, func(t *testing.T) {
			skipWithoutUCX(t)
			t.Parallel()
			f := newNetworkFixture(t)
			f.dataPath = path
			f.environment = append(f.environment, "DMA_COPY_PATH="+path)
			test(f)
		})
	}
}

// expectUCX expects that the running process has loaded UCX, or that it has not.
func (s side) expectUCX(want bool) {
	s.t.Helper()
	libraries := readFile(s.t, fmt.Sprintf("/proc/%d/maps", s.command.Process.Pid))
	if loaded := strings.Contains(libraries, "/libuc"); loaded != want || !strings.Contains(libraries, "/libc.") {
		s.t.Errorf("UCX is loaded: %t, want %t", loaded, want)
	}
}

// skipWithoutUCX skips the rest of a test that needs UCX.
func skipWithoutUCX(t *testing.T) {
	t.Helper()
	if found, err := hasUCX(); err != nil {
		t.Fatal(err)
	} else if !found {
		t.Skip("no UCX in this build or on this machine")
	}
}

// hasUCX reports whether this build and this machine have UCX.
func hasUCX() (bool, error) {
	c, err := ucx.Open(ucx.Settings{})
	if err != nil {
		return false, nil
	}
	return true, c.Close()
}
