package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/share"
)

// relayFixture has daemons on several machines, in the directories "n1", "n2" and so on. They trust each other and the
// command, and relay to each other.
type relayFixture struct {
	*daemonFixture
	peers   []*daemonFixture
	daemons []daemon
}

// newRelayFixture starts the daemons. What any of them sends to the second one has a bandwidth limit, so that a test
// has the time to interfere.
func newRelayFixture(t *testing.T, peers int) *relayFixture {
	t.Helper()
	f := &relayFixture{daemonFixture: newDaemonFixture(t, "dpu")}
	command := f.createKey("push")
	keys, addresses := map[string]identity.Public{}, []string{}
	for i := range peers {
		name := fmt.Sprintf("n%d", i+1)
		port, err := freePort()
		must(t, err)
		peer := &daemonFixture{fixture: f.fixture, serves: name, address: fmt.Sprintf("127.0.0.1:%d", port)}
		must(t, os.MkdirAll(peer.share(), 0o755))
		keys[name] = f.createKey(name)
		f.trustAs("push", name, keys[name])
		f.peers, addresses = append(f.peers, peer), append(addresses, peer.address)
	}
	for i, peer := range f.peers {
		grants := []identity.Grant{{
			Name: "push", Key: command, Relay: true, Shares: map[string]share.Access{"files": share.ReadWrite},
		}}
		for name, key := range keys {
			g := identity.Grant{Name: name, Key: key, Shares: map[string]share.Access{"files": share.Write}}
			if i == 1 {
				g.Bandwidth = 1 << 20
			}
			grants = append(grants, g)
		}
		for _, g := range grants {
			must(t, f.keys(peer.serves).Trust(g, true))
		}
		f.daemons = append(f.daemons, peer.serve(idleFlag+"--relay-to "+strings.Join(addresses, ",")+" "))
	}
	return f
}

// push starts a push of a file to all peers, in their order.
func (f *relayFixture) push(flags string) side {
	f.t.Helper()
	f.createLocal(6<<20, "a")
	list := ""
	for _, peer := range f.peers {
		list += "ucx://" + peer.address + "\n"
	}
	must(f.t, os.WriteFile(filepath.Join(f.dir, "peers.txt"), []byte(list), 0o644))
	return f.start("push", "dma-copy push --keys push.keys "+flags+" host/a :files --to peers.txt")
}

// stop ends the daemons that still run, and expects that these have nothing left.
func (f *relayFixture) stop(running ...daemon) {
	f.t.Helper()
	for _, d := range running {
		must(f.t, d.signal(syscall.SIGTERM))
	}
	for _, d := range running {
		d.expectEnd()
		directory := filepath.Join(f.dir, d.fixture.serves)
		must(f.t, filepath.WalkDir(directory, func(path string, e fs.DirEntry, err error) error {
			if err == nil && (isTemporary(path) || e.Type()&fs.ModeSocket != 0) {
				f.t.Errorf("%s is left", path)
			}
			return err
		}))
	}
}

// expectSame expects peers to have the file, by their indices.
func (f *relayFixture) expectSame(peers ...int) {
	f.t.Helper()
	for _, i := range peers {
		must(f.t, compareFiles(f.local("a"), f.peers[i].share("a")))
	}
}

// TestRelayServesPeers lets a chain of relays serve six peers, of which the second one is slow.
func TestRelayServesPeers(t *testing.T) {
	t.Parallel()
	f := newRelayFixture(t, 6)
	push := f.push("--fanout 1")
	push.expectExit(exitOK)
	push.expectStderr("total 6 peers, 6 files copied, ")
	for _, line := range []string{
		`(?m)^ok    ucx://` + f.peers[1].address + `/files: .*  via ucx://` + f.peers[0].address + `/files  `,
		`(?m); [2-5] served by others$`,
	} {
		if !regexp.MustCompile(line).MatchString(push.stderr.String()) {
			t.Errorf("no line matches %s:\n%s", line, push.stderr.String())
		}
	}
	f.expectSame(0, 1, 2, 3, 4, 5)
	f.stop(f.daemons...)
}

var logRelayGivenUp = regexp.MustCompile(`(?m)^warn  ucx://\S+: serves no other peer: `)

// TestRelayIsKilled kills a relay while it serves the second peer, to which the command then resumes the copy.
func TestRelayIsKilled(t *testing.T) {
	t.Parallel()
	f := newRelayFixture(t, 3)
	push := f.push("--fanout 1")
	f.daemons[1].waitForCopy("a")
	must(t, f.daemons[0].signal(syscall.SIGKILL))
	push.waitForLog(logRelayGivenUp)
	push.expectExitIn(exitOK) // with a warning if what the relay has sent cannot be used
	push.expectStderr("; ", "1 given up as relays")
	f.daemons[0].expectExitIn(exitKilled)
	f.expectSame(1, 2)
	f.stop(f.daemons[1:]...)
}

// TestRelayIsStopped stops a relay, so that its connections stay open: the second peer receives after the idle timeout.
func TestRelayIsStopped(t *testing.T) {
	t.Parallel()
	f := newRelayFixture(t, 3)
	push := f.push("--fanout 1 " + idleFlag)
	f.daemons[1].waitForCopy("a")
	must(t, f.daemons[0].signal(syscall.SIGSTOP))
	push.waitForLog(logRelayGivenUp)
	push.expectExitIn(exitOK) // likewise
	must(t, f.daemons[0].signal(syscall.SIGCONT))
	f.expectSame(1, 2)
	f.stop(f.daemons...)
}

// TestRelayEndsWithTheCommand interrupts the command: the copy of the relay ends, too, and the same command resumes it.
func TestRelayEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	f := newRelayFixture(t, 2)
	push := f.push("--fanout 1")
	f.daemons[1].waitForCopy("a")
	must(t, push.signal(syscall.SIGINT))
	push.expectExit(exitSignal + int(syscall.SIGINT))
	for _, d := range f.daemons {
		d.waitUntilIdle()
	}
	f.push("--fanout 1").expectExit(exitOK)
	f.expectSame(0, 1)
	f.stop(f.daemons...)
}
