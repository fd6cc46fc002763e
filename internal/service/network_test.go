//go:build cgo

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/network/networktest"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// machines are a daemon and commands on two machines, in real time, with a network between them.
type machines struct {
	*world
	daemon    *NetworkDaemon
	network   *networktest.Proxy
	settings  network.Settings // of both sides
	box       string           // the directory of the share
	here      string           // that of the command's files
	choice    job.PathChoice   // of the command
	daemonLog zerolog.Logger
}

func openMachines(t *testing.T, alter func(*machines)) *machines {
	t.Helper()
	m := &machines{world: newWorldWith(t, docatest.Sides{}), box: t.TempDir(), here: t.TempDir()}
	m.config.FS = disk.OS
	m.config.Shares = []share.Share{{Name: "box", Path: m.box, Access: share.ReadWrite}}
	m.config.Copy = dmaxfer.Options{
		Options: role.Options{Digest: digest.BLAKE3, Software: "test 1", Log: m.config.Log},
		Path:    job.OnlyDMA,
	}
	m.daemonLog = m.config.Log
	if alter != nil {
		alter(m)
	}
	m.start()
	var err error
	m.daemon, err = ListenNetwork(t.Context(), m.server, "127.0.0.1:0", m.settings, m.daemonLog)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- m.daemon.Run(ctx) }()
	m.network = networktest.NewProxy(t, m.daemon.Address())
	t.Cleanup(func() {
		cancel()
		must(t, <-ran)
		m.server.Drain(context.Background())
		must(t, m.daemon.Close())
		m.stop()
	})
	return m
}

func (m *machines) dial() *Client {
	m.Helper()
	c, err := DialNetwork(m.Context(), NetworkMeeting{
		Address: m.network.Address(), Wait: 30 * time.Second, Settings: m.settings,
	}, ClientConfig{Key: m.key, Verify: m.verify, Log: m.log})
	must(m.T, err)
	return c
}

// request is a copy between a file here and one of that name in the box.
func (m *machines) request(name string) CopyRequest {
	return CopyRequest{
		Options: dmaxfer.Options{
			Options: role.Options{
				Side: wire.Client, Digest: digest.BLAKE3, IdleTimeout: 30 * time.Second, Log: m.log,
				Software: "test 1",
			},
			File: filepath.Join(m.here, name), Path: m.choice,
		},
		Place: protocol.Place{Share: "box", Path: name},
	}
}

// write makes a file that has the name of the file in it, again and again.
func write(t *testing.T, path string, size int) []byte {
	t.Helper()
	content := bytes.Repeat([]byte(filepath.Base(path)+" 0123456789\n"), size/8+1)[:size]
	must(t, os.WriteFile(path, content, 0o600))
	return content
}

func mustBeFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes that are not the %d wanted", path, len(got), len(want))
	}
}

// A daemon that drains closes the connections of further commands, which then do not wait for its answer.
func TestNetworkDaemonTurnsAway(t *testing.T) {
	m := openMachines(t, nil)
	daemon, err := ListenNetwork(t.Context(), m.server, "127.0.0.1:0", network.Settings{}, zerolog.Nop())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, daemon.Run(ctx))
	control, err := network.Dial(t.Context(), daemon.Address(), 30*time.Second, network.Settings{})
	must(t, err)
	_, err = secure.Client(t.Context(), control, secure.Config{Key: m.key, Verify: m.verify, Timeout: time.Minute})
	mustBe(t, err, comch.ErrPeerLost)
	must(t, daemon.Close())
}

// networkPaths are the data paths between machines. Of am and rma the tests are left out where there is no UCX.
var networkPaths = map[wire.Path]job.PathChoice{
	wire.PathTLS: job.OnlyTLS, wire.PathTCP: job.OnlyTCP,
	wire.PathMessages: job.OnlyMessages, wire.PathRMA: job.OnlyRMA,
}

// Files of all sizes and trees go both ways between machines on each path, over one control connection.
func TestNetworkCopies(t *testing.T) {
	for path, choice := range networkPaths {
		t.Run(path.String(), func(t *testing.T) {
			if path == wire.PathMessages || path == wire.PathRMA {
				skipWithoutUCX(t)
			}
			m := openMachines(t, func(m *machines) { m.settings.Paths, m.choice = job.PathsOf(path), choice })
			m.copiesBothWays(path)
		})
	}
}

func skipWithoutUCX(t *testing.T) {
	t.Helper()
	c, err := ucx.Open(ucx.Settings{Transports: []string{"self"}})
	if err != nil {
		t.Skip(err)
	}
	must(t, c.Close())
}

func (m *machines) copiesBothWays(path wire.Path) {
	t := m.T
	c := m.dial()
	for i, size := range []int{0, 1, 4096, 512<<10 + 1, 9 << 20} {
		name := "file" + string(rune('a'+i))
		want := write(t, filepath.Join(m.here, name), size)
		summary, err := c.Push(m.Context(), m.request(name))
		must(t, err)
		if summary.DataPath != path || summary.Size != int64(size) {
			t.Errorf("%+v", summary)
		}
		mustBeFile(t, filepath.Join(m.box, name), want)
		must(t, os.Remove(filepath.Join(m.here, name)))
		_, err = c.Pull(m.Context(), m.request(name))
		must(t, err)
		mustBeFile(t, filepath.Join(m.here, name), want)
	}
	must(t, os.Mkdir(filepath.Join(m.here, "tree"), 0o700))
	want := write(t, filepath.Join(m.here, "tree", "file"), 5000)
	_, err := c.Push(m.Context(), m.request("tree"))
	must(t, err)
	mustBeFile(t, filepath.Join(m.box, "tree", "file"), want)
	must(t, c.Close())
}

// Copies in one direction after the other use the connections of the first one.
func TestNetworkKeepsDataConnections(t *testing.T) {
	m := openMachines(t, nil)
	c := m.dial()
	for range 5 {
		write(t, filepath.Join(m.here, "file"), 4<<20)
		r := m.request("file")
		r.Options.Overwrite, r.Options.NoResume = true, true
		_, err := c.Push(m.Context(), r)
		must(t, err)
		must(t, os.Remove(filepath.Join(m.box, "file")))
	}
	made := m.network.Made()
	if made < 2 || made > 1+2 {
		t.Errorf("%d connections were made for five copies", made)
	}
	must(t, c.Close())
}

// A copy that fails and has moved nothing leaves the same data connections to both sides.
func TestNetworkKeepsDataConnectionsOfAFailedCopy(t *testing.T) {
	m := openMachines(t, nil)
	c := m.dial()
	write(t, filepath.Join(m.here, "file"), 4<<20)
	_, err := c.Push(m.Context(), m.request("file"))
	must(t, err)
	made := m.network.Made()

	must(t, os.WriteFile(filepath.Join(m.here, "empty"), nil, 0o600))
	r := m.request("empty")
	r.Options.Notify = func(e job.Event) {
		if _, planned := e.(job.Planned); planned { // the daemon has found nothing of that name
			must(t, os.WriteFile(filepath.Join(m.box, "empty"), []byte("of another program"), 0o600))
		}
	}
	if _, err = c.Push(m.Context(), r); err == nil {
		t.Error("the copy has replaced the file of another program")
	}
	r = m.request("file")
	r.Place.Path = "second"
	_, err = c.Push(m.Context(), r)
	must(t, err)
	if now := m.network.Made(); now != made {
		t.Errorf("%d connections were made for a copy after one that failed", now-made)
	}
	must(t, c.Close())
}

// Data connections that have carried much are replaced before the next copy, so that no key encrypts too much.
func TestNetworkRenewsDataConnections(t *testing.T) {
	m := openMachines(t, func(m *machines) { m.settings.RenewAfter = 1 << 20 })
	c := m.dial()
	want := write(t, filepath.Join(m.here, "file"), 8<<20)
	before := m.network.Made()
	for round := range 3 {
		r := m.request("file")
		r.Options.Overwrite, r.Options.NoResume = true, true
		_, err := c.Push(m.Context(), r)
		must(t, err)
		must(t, os.Remove(filepath.Join(m.here, "file")))
		_, err = c.Pull(m.Context(), r)
		must(t, err)
		mustBeFile(t, filepath.Join(m.here, "file"), want)
		must(t, os.Remove(filepath.Join(m.box, "file")))
		after := m.network.Made()
		if after < before+2 {
			t.Errorf("round %d: %d connections were made for a copy in each direction", round, after-before)
		}
		before = after
	}
	must(t, c.Close())
}

// A daemon and a command that do not trust each other do not talk.
func TestNetworkKeys(t *testing.T) {
	m := openMachines(t, nil)
	meeting := NetworkMeeting{Address: m.network.Address(), Wait: 30 * time.Second}
	_, err := DialNetwork(m.Context(), meeting, ClientConfig{Key: newKey(t), Verify: m.verify, Log: zerolog.Nop()})
	if !errors.Is(err, secure.ErrRefused) {
		t.Errorf("a key that is not trusted: %v", err)
	}
	_, err = DialNetwork(m.Context(), meeting, ClientConfig{
		Key: m.key, Verify: func(identity.Public) error { return errStopped }, Log: zerolog.Nop(),
	})
	if _, is := errors.AsType[*secure.UntrustedError](err); !is {
		t.Errorf("a daemon that is not trusted: %v", err)
	}
}

// Without a daemon a command waits for it as long as it may; a name that does not exist is an error at once.
func TestNetworkWithoutADaemon(t *testing.T) {
	const address = "127.0.0.1:1" // not one that is free now: another process may listen there a moment later
	config := ClientConfig{Key: newKey(t), Verify: secure.AnyKey, Log: zerolog.Nop()}
	_, err := DialNetwork(t.Context(), NetworkMeeting{Address: address, Wait: 50 * time.Millisecond}, config)
	mustBe(t, err, comch.ErrPeerAbsent) // the reason is that of a whole attempt, if there was time for one
	_, err = DialNetwork(t.Context(), NetworkMeeting{Address: "127.0.0.1:none", Wait: time.Minute}, config)
	if err == nil || errors.Is(err, comch.ErrPeerAbsent) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStopped)
	_, err = DialNetwork(ctx, NetworkMeeting{Address: address, Wait: time.Minute}, config)
	if !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
}

// A daemon with too many connections closes further ones. A command tries again as long as it may wait, and not at all
// if it may not.
func TestNetworkTurnsAway(t *testing.T) {
	m := openMachines(t, nil)
	m.network.Refuse(3)
	must(t, m.dial().Close())
	m.network.Refuse(1)
	_, err := DialNetwork(m.Context(), NetworkMeeting{Address: m.network.Address()}, ClientConfig{
		Key: m.key, Verify: m.verify, Log: zerolog.Nop(),
	})
	if !errors.Is(err, ErrTurnedAway) || errors.Is(err, comch.ErrPeerLost) {
		t.Errorf("got %v", err)
	}
	m.network.Refuse(1 << 30)
	mustBe(t, answerInTime(func(wait time.Duration) error {
		_, err := DialNetwork(m.Context(), NetworkMeeting{Address: m.network.Address(), Wait: wait},
			ClientConfig{Key: m.key, Verify: m.verify, Log: zerolog.Nop()})
		if errors.Is(err, ErrTurnedAway) && !strings.Contains(err.Error(), " times within "+wait.String()) {
			t.Errorf("got %v", err)
		}
		return err
	}), ErrTurnedAway)
}

// answerInTime dials with longer and longer waits, until there was an answer before the end of one.
func answerInTime(dial func(wait time.Duration) error) error {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		if err := dial(wait); !errors.Is(err, comch.ErrPeerAbsent) || wait > time.Minute {
			return err
		}
	}
}

// A daemon that turned a command away is not reported as absent because the last attempt had too little time.
func TestNetworkTurnedAwayAtLast(t *testing.T) {
	mustBe(t, answerInTime(func(wait time.Duration) error {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		go func() {
			conn, err := listener.Accept()
			_ = listener.Close()
			if err == nil {
				_ = conn.Close()
			}
		}()
		_, err = DialNetwork(t.Context(), NetworkMeeting{Address: listener.Addr().String(), Wait: wait},
			ClientConfig{Key: newKey(t), Verify: secure.AnyKey, Log: zerolog.Nop()})
		return err
	}), ErrTurnedAway)
}

// What a daemon advises is for the connection that the command uses.
func TestNetworkHints(t *testing.T) {
	m := openMachines(t, nil)
	c := m.dial()
	_, err := c.Pull(m.Context(), m.request("missing"))
	if err == nil || !strings.Contains(err.Error(), `dma-copy ls ucx://HOST/box\"`) {
		t.Errorf("no file: %v", err)
	}
	r := m.request("missing")
	r.Place.Share = "none"
	_, err = c.Pull(m.Context(), r)
	if err == nil || !strings.Contains(err.Error(), `dma-copy ls ucx://HOST/\"`) {
		t.Errorf("no share: %v", err)
	}
	must(t, c.Close())
}

// networkFailures are what happens to a network while a copy is under way, and what both sides then know.
var networkFailures = map[string]struct {
	happens func(*networktest.Proxy)
	want    error // of the command
}{
	"stopped":         {func(p *networktest.Proxy) { p.Stall(networktest.All) }, job.ErrIdle},
	"control is lost": {func(p *networktest.Proxy) { p.Stall(func(n int) bool { return n == 0 }) }, job.ErrIdle},
	"data stop":       {func(p *networktest.Proxy) { p.Stall(func(n int) bool { return n > 0 }) }, job.ErrIdle},
	"one lane stops":  {func(p *networktest.Proxy) { p.Stall(func(n int) bool { return n == 1 }) }, job.ErrIdle},
	"all are reset":   {func(p *networktest.Proxy) { p.Cut() }, wire.ErrPeerLost},
}

// A network that fails in the middle of a copy ends it on both sides, and the same command then completes it.
func TestNetworkFailures(t *testing.T) {
	for name, failure := range networkFailures {
		for _, path := range []wire.Path{wire.PathTLS, wire.PathTCP} {
			for direction, pulls := range map[string]bool{"push": false, "pull": true} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, path, direction), func(t *testing.T) {
					t.Parallel()
					m := openMachines(t, func(m *machines) {
						m.settings.Paths, m.choice = job.PathsOf(path), networkPaths[path]
					})
					m.failsAndCompletes(pulls, failure.happens, failure.want)
				})
			}
		}
	}
}

func (m *machines) failsAndCompletes(pulls bool, happens func(*networktest.Proxy), wanted error) {
	t := m.T
	from, to := m.here, m.box
	copyIt := (*Client).Push
	if pulls {
		from, to, copyIt = m.box, m.here, (*Client).Pull
	}
	want := write(t, filepath.Join(from, "file"), 24<<20)
	c := m.dial()
	r := m.request("file")
	if wanted == job.ErrIdle { // of the command only: the daemon serves the next one, too
		r.Options.IdleTimeout = 5 * time.Second
	}
	m.network.At(8<<20, func() { happens(m.network) })
	_, err := copyIt(c, m.Context(), r)
	m.network.At(0, nil)                                   // on a busy machine the command may have ended before
	aborted, is := errors.AsType[*native.PeerAborted](err) // the daemon may have noticed it first
	if !errors.Is(err, wanted) && (!is || aborted.Code != wire.AbortPeer) {
		t.Errorf("got %v, want %v", err, wanted)
	}
	_ = c.Close()
	m.network.Stall(nil)
	waitUntil(t, func() bool { return len(m.server.Status().Connections) == 0 })
	again := m.dial()
	summary, err := copyIt(again, m.Context(), m.request("file"))
	must(t, err)
	t.Logf("resumed: %+v", summary.Resumed)
	mustBeFile(t, filepath.Join(to, "file"), want)
	must(t, again.Close())
}

// waitUntil waits until something is so.
func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}
