package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fleet"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
)

// fakePeers are the daemons of a push, by their names "p0", "p1" and so on. A function that is nil succeeds.
type fakePeers struct {
	t    *testing.T
	sums map[string]digest.Sum // that the copies of the command have; otherwise that of the content

	copies func(name string) error
	meets  func(name string) error
	asks   func(ctx context.Context, from, to string, moved func(uint64)) error

	mu    sync.Mutex
	sent  []string // by the command
	asked []string // "p0>p1"
	keys  map[string]identity.Public
}

// content is the file of the push.
const content = "the content of the only source"

func sumOf(text string) digest.Sum {
	sum, _, err := digest.Of(context.Background(), digest.BLAKE3, strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return sum
}

func (f *fakePeers) peer(name string) service.Peer {
	var number byte
	_, _ = fmt.Sscanf(name, "p%d", &number)
	peer := service.Peer{
		Key: identity.Public{number + 1}, Authenticates: true,
		Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, number}), 7447),
	}
	if key, other := f.keys[name]; other {
		peer.Key = key
	}
	return peer
}

func (f *fakePeers) copyTo(
	_ context.Context, to fleet.Target, c *report.Collector, r *report.PeerResult,
) (service.Peer, error) {
	f.mu.Lock()
	f.sent = append(f.sent, to.Remote.Peer)
	f.mu.Unlock()
	if f.copies != nil {
		if err := f.copies(to.Remote.Peer); err != nil {
			return service.Peer{}, err
		}
	}
	sum, other := f.sums[to.Remote.Peer]
	if !other {
		sum = sumOf(content)
	}
	c.Begin(report.Path{})
	summary := job.Summary{Size: int64(len(content)), Sum: sum}
	r.Total.Add(summary, nil)
	return f.peer(to.Remote.Peer), c.Result(summary)
}

func (f *fakePeers) meet(_ context.Context, to fleet.Target, _ *report.PeerResult) (service.Peer, error) {
	if f.meets != nil {
		if err := f.meets(to.Remote.Peer); err != nil {
			return service.Peer{}, err
		}
	}
	return f.peer(to.Remote.Peer), nil
}

func (f *fakePeers) ask(
	ctx context.Context, from fleet.Target, key identity.Public, r negotiate.RelayRequest, moved func(uint64),
) (negotiate.Relayed, error) {
	if want := f.peer(from.Remote.Peer).Key; key != want {
		f.t.Errorf("%s is expected to have the key %s, not %s", from.Remote.Peer, key, want)
	}
	to := fmt.Sprintf("p%d", r.Address.Addr().As4()[3])
	f.checkRequest(to, r)
	f.mu.Lock()
	f.asked = append(f.asked, from.Remote.Peer+">"+to)
	f.mu.Unlock()
	if f.asks != nil {
		if err := f.asks(ctx, from.Remote.Peer, to, moved); err != nil {
			return negotiate.Relayed{}, err
		}
	}
	moved(r.Size)
	return negotiate.Relayed{Bytes: r.Size, Sum: r.Sum}, nil
}

// checkRequest expects a request to have all that the flags and the list say about the target.
func (f *fakePeers) checkRequest(to string, got negotiate.RelayRequest) {
	want := negotiate.RelayRequest{
		Size: uint64(len(content)), Sum: negotiate.Sum{Digest: negotiate.DigestBLAKE3}, Address: f.peer(to).Address,
		Key: f.peer(to).Key, Target: negotiate.Place{Share: "in", Path: "sub/file"},
		Flags:      negotiate.CopyOverwrite | negotiate.CopyBackup | negotiate.CopyMakePath,
		Durability: negotiate.DurabilityFile, Idle: 60_000,
	}
	sumOf(content).CopyTo(want.Sum.Value[:])
	if got != want {
		f.t.Errorf("request %+v, want %+v", got, want)
	}
}

// relayPush is a push to peers that serve others, and what it reports.
type relayPush struct {
	*peersPush
	source string
	text   strings.Builder
	err    error
}

// pushTo prepares a push to this number of peers, one at a time, with a fan-out of one.
func (f *fakePeers) pushTo(peers int) *relayPush {
	f.t.Helper()
	push := &relayPush{source: filepath.Join(f.t.TempDir(), "file")}
	writeFile(f.t, push.source, content)
	s := &config.Transfer{Sends: true, Local: []string{push.source}}
	s.IdleTimeout, s.Durability, s.Overwrite, s.Backup = time.Minute, negotiate.DurabilityFile, true, true
	s.MakePath = true
	s.Parallel, s.Fanout, s.Peers = 1, 1, config.Peers{}
	push.peersPush = &peersPush{
		settings: s, calls: f, log: zerolog.Nop(),
		reporter: report.NewFleet(nil, &push.text, nil, s.Copy, zerolog.Nop()),
	}
	for i := range peers {
		name := fmt.Sprintf("p%d", i)
		s.Peers[name] = config.Peer{Address: f.peer(name).Address.String()}
		remote := share.Remote{Peer: name, Share: "in", Path: "sub/"}
		push.targets = append(push.targets, fleet.Target{Remote: remote, Line: i + 1})
	}
	var err error
	push.sources, err = findSources(f.t.Context(), s)
	must(f.t, err)
	push.relays, err = newRelays(push.source, push.sources[0])
	must(f.t, err)
	return push
}

// run makes the push and expects lines that begin with these patterns, in any order, and no others.
func (push *relayPush) run(t *testing.T, lines ...string) {
	t.Helper()
	push.err = push.copyToAll(t.Context())
	left := slices.Collect(strings.Lines(push.text.String()))
	for _, want := range lines {
		i := slices.IndexFunc(left, regexp.MustCompile("^"+want).MatchString)
		if i < 0 {
			t.Errorf("no line matches %q in\n%s", want, push.text.String())
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		t.Errorf("further lines: %q", left)
	}
}

// expect expects which copies the command has made, and which the peers.
func (f *fakePeers) expect(sent, asked string) {
	f.t.Helper()
	slices.Sort(f.asked)
	slices.Sort(f.sent)
	if got := strings.Join(f.sent, " "); got != sent {
		f.t.Errorf("the command has sent to %q, not %q", got, sent)
	}
	if got := strings.Join(f.asked, " "); got != asked {
		f.t.Errorf("the peers were asked for %q, not %q", got, asked)
	}
}

var errRefusedRelay = &negotiate.Refusal{Code: negotiate.AbortRefused, Text: "no relay"}

// A relay that was reached before and refuses connections may be starting again, so it is waited for.
func TestRelayThatRestartsIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePeers{t: t}
		push := f.pushTo(1)
		push.settings.Auth, push.settings.Wait = config.AuthNone, time.Minute
		push.settings.Path = config.PathAuto
		relay := fleet.Target{Remote: share.Remote{Address: "127.0.0.1:1", Share: "in"}}
		began := time.Now()
		_, err := networkCalls{push.peersPush}.ask(t.Context(), relay, identity.Public{}, negotiate.RelayRequest{}, nil)
		if waited := time.Since(began); waited < relayWait || !errors.Is(err, comch.ErrPeerAbsent) {
			t.Errorf("%v after %s", err, waited)
		}
		_, err = networkCalls{push.peersPush}.meet(t.Context(), relay, &report.PeerResult{})
		if !errors.Is(err, network.ErrNotListening) {
			t.Errorf("a peer at first: %v", err)
		}
	})
}

// TestRelays lets each of two peers serve another one after the first one has the file.
func TestRelays(t *testing.T) {
	f := &fakePeers{t: t}
	push := f.pushTo(2)
	push.run(t, `ok    p0:in/sub/: 1 file copied, 30 B in \S+  blake3:`,
		`ok    p1:in/sub/: 1 file copied, 30 B in \S+  via p0:in/sub/  `+sumOf(content).String(),
		`total 2 peers, 2 files copied, 60 B in \S+; 1 served by others\n`)
	if push.err != nil {
		t.Error(push.err)
	}
	f.expect("p0", "p0>p1")
}

// TestRelayChain lets the source be busy with the second peer for as long as others can be served.
func TestRelayChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePeers{t: t}
		f.copies = func(name string) error {
			if name != "p0" {
				time.Sleep(time.Hour)
			}
			return nil
		}
		f.asks = func(_ context.Context, from, _ string, _ func(uint64)) error {
			time.Sleep(map[string]time.Duration{"p0": time.Second, "p1": time.Minute}[from])
			return nil
		}
		push := f.pushTo(6)
		push.err = push.copyToAll(t.Context())
		if push.err != nil || !strings.Contains(push.text.String(), "; 4 served by others\n") {
			t.Errorf("%v\n%s", push.err, push.text.String())
		}
		f.expect("p0 p2", "p0>p1 p0>p3 p0>p5 p1>p4")
	})
}

// TestRelayRefuses gives a relay up once, and serves its peers from the source.
func TestRelayRefuses(t *testing.T) {
	for _, why := range []error{
		errRefusedRelay, &negotiate.RelayFailure{Code: negotiate.AbortSource, Text: "no such file"},
		&negotiate.RelayFailure{Code: negotiate.AbortDigest, Text: "another file"}, errors.New("connection lost"),
	} {
		f := &fakePeers{t: t, asks: func(context.Context, string, string, func(uint64)) error { return why }}
		push := f.pushTo(2)
		push.settings.FailFast = true
		push.run(t, "ok    p0:", `ok    p1:in/sub/: 1 file copied, 30 B in \S+  blake3:`,
			"warn  p0:in/sub/: serves no other peer: ",
			`total 2 peers, 2 files copied, 60 B in \S+; 1 given up as relays\n`)
		if push.err != nil {
			t.Errorf("%v: %v", why, push.err)
		}
		f.expect("p0 p1", "p0>p1")
	}
}

// TestRelayGivenUpOnce lets two copies of the same relay fail.
func TestRelayGivenUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePeers{t: t, asks: func(_ context.Context, from, _ string, _ func(uint64)) error {
			time.Sleep(time.Second)
			return errRefusedRelay
		}}
		push := f.pushTo(3)
		push.settings.Fanout = 2
		push.run(t, "ok    p0:", "ok    p1:", "ok    p2:", "warn  p0:in/sub/: serves no other peer: ",
			"total 3 peers, 3 files copied, ")
		f.expect("p0 p1 p2", "p0>p1 p0>p2")
	})
}

// TestTargetOfARelayFails lets the relay blame the target: it goes on with others, and the copy of the source decides.
func TestTargetOfARelayFails(t *testing.T) {
	full := &negotiate.RelayFailure{Code: negotiate.AbortTarget, Text: "no space"}
	f := &fakePeers{t: t}
	f.asks = func(_ context.Context, _, to string, _ func(uint64)) error {
		if to == "p1" {
			return full
		}
		return nil
	}
	f.copies = func(name string) error {
		if name == "p1" {
			return exit.Errorf(exit.Target, "", "really no space")
		}
		return nil
	}
	push := f.pushTo(2)
	push.run(t, "ok    p0:", "fail  p1:in/sub/: really no space", `total 2 peers \(1 failed\), 1 file copied, `)
	if report.ExitCode(push.err) != exit.SomeFailed || len(push.relays.keys) != 1 {
		t.Errorf("%v, %v", push.err, push.relays.keys)
	}
	f.expect("p0 p1", "p0>p1")
	for _, code := range []negotiate.AbortCode{negotiate.AbortTarget, negotiate.AbortLimit} {
		if got := relayOutcome(t.Context(), &negotiate.RelayFailure{Code: code}); got != fleet.NotRelayed {
			t.Errorf("code %d has the outcome %d", code, got)
		}
	}
}

// TestRelayIsLost lets a target be busy with the copy of a relay that was lost, until it notices that. Without a loss,
// and after that time, the target is not tried again.
func TestRelayIsLost(t *testing.T) {
	for _, tc := range []struct {
		relay error
		code  int // of the copies of the command while the target is busy
		busy  time.Duration
		took  time.Duration
		fails bool
	}{
		{errors.New("connection lost"), exit.Target, 30 * time.Second, 30 * time.Second, false},
		{errors.New("connection lost"), exit.Target, time.Hour, 65 * time.Second, true},
		{errors.New("connection lost"), exit.Peer, time.Second, 0, true},
		{errRefusedRelay, exit.Target, time.Second, 0, true},
		{&negotiate.RelayFailure{Code: negotiate.AbortTarget}, exit.Target, time.Second, 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakePeers{t: t, asks: func(context.Context, string, string, func(uint64)) error { return tc.relay }}
			began := time.Now()
			f.copies = func(name string) error {
				if name == "p1" && time.Since(began) < tc.busy {
					return exit.Errorf(tc.code, "", "it is being received by another process")
				}
				return nil
			}
			push := f.pushTo(2)
			push.err = push.copyToAll(t.Context())
			if took := time.Since(began); took != tc.took || (push.err != nil) != tc.fails {
				t.Errorf("%v: %v after %s\n%s", tc.relay, push.err, took, push.text.String())
			}
		})
	}
}

// TestTargetCannotBeMet does not ask a relay for a peer that this side cannot reach.
func TestTargetCannotBeMet(t *testing.T) {
	f := &fakePeers{t: t, meets: func(string) error { return exit.Errorf(exit.Peer, "", "no daemon") }}
	push := f.pushTo(2)
	push.run(t, "ok    p0:", "fail  p1:in/sub/: no daemon", `total 2 peers \(1 failed\), 1 file copied, `)
	f.expect("p0", "")
}

// TestRelayIsTheTarget has the same daemon twice in the list.
func TestRelayIsTheTarget(t *testing.T) {
	f := &fakePeers{t: t}
	f.keys = map[string]identity.Public{"p1": f.peer("p0").Key}
	f.pushTo(2).run(t, "ok    p0:", `ok    p1:in/sub/: 1 file copied, 30 B in \S+  blake3:`,
		"total 2 peers, 2 files copied, ")
	f.expect("p0 p1", "")
}

// TestPeersOnDevicesAreServedByTheSource lets no peer without an address relay or be served by one.
func TestPeersOnDevicesAreServedByTheSource(t *testing.T) {
	f := &fakePeers{t: t}
	push := f.pushTo(3)
	push.settings.Peers["p0"] = config.Peer{Device: "b1:00.0"}
	push.settings.Peers["p2"] = config.Peer{Device: "b1:00.1"}
	push.run(t, "ok    p0:", "ok    p1:", "ok    p2:", "total 3 peers, 3 files copied, ")
	f.expect("p0 p1 p2", "")
}

// TestSourceOfRelaysChanges asks no relay after the source has changed, and lets no peer have another content.
func TestSourceOfRelaysChanges(t *testing.T) {
	f := &fakePeers{t: t}
	push := f.pushTo(2)
	f.copies = func(string) error { return os.WriteFile(push.source, []byte("changed"), 0o600) }
	push.run(t, "ok    p0:", "fail  p1:in/sub/: "+push.source+" changed while it was copied to other peers",
		`total 2 peers \(1 failed\), 1 file copied, `)
	f.expect("p0", "")

	f = &fakePeers{t: t, sums: map[string]digest.Sum{"p1": sumOf("another one")}}
	f.asks = func(context.Context, string, string, func(uint64)) error { return errRefusedRelay }
	push = f.pushTo(2)
	push.run(t, "ok    p0:", "warn  p0:", "fail  p1:in/sub/: the source changed while it was copied",
		`total 2 peers \(1 failed\), 2 files copied, 60 B in \S+; 1 given up as relays\n`)
}

// TestDigestOfTheSource is computed if no copy has compared one.
func TestDigestOfTheSource(t *testing.T) {
	f := &fakePeers{t: t, sums: map[string]digest.Sum{"p0": {}}}
	push := f.pushTo(2)
	push.err = push.copyToAll(t.Context())
	f.expect("p0", "p0>p1")
	if sum, err := push.relays.digest(t.Context()); push.err != nil || err != nil || sum != sumOf(content) {
		t.Errorf("%v, digest %s, %v", push.err, sum, err)
	}

	empty, err := newRelays(push.source, push.sources[0])
	must(t, err)
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errTimeLimit)
	if _, err := empty.digest(stopped); !errors.Is(err, errTimeLimit) {
		t.Errorf("%v", err)
	}
	if _, err := newRelays(t.TempDir(), push.sources[0]); report.ExitCode(err) != exit.Usage {
		t.Errorf("of a directory: %v", err)
	}
}

// TestRelayWithoutProgress ends a copy whose relay is alive and moves nothing. Progress extends the time.
func TestRelayWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePeers{t: t}
		f.asks = func(ctx context.Context, _, _ string, moved func(uint64)) error {
			for i := uint64(1); ctx.Err() == nil; i++ {
				moved(min(i, 4))
				select {
				case <-time.After(50 * time.Second):
				case <-ctx.Done():
				}
			}
			return context.Cause(ctx)
		}
		push := f.pushTo(2)
		began := time.Now()
		push.run(t, "ok    p0:", "ok    p1:",
			"warn  p0:in/sub/: serves no other peer: timeout: the relay reports no progress",
			"total 2 peers, 2 files copied, ")
		if took := time.Since(began); took != 3*50*time.Second+65*time.Second {
			t.Errorf("took %s", took)
		}
		if push.progressTimeout(0) != push.progressTimeout(30) || push.progressTimeout(0) <= push.progressTimeout(1) {
			t.Errorf("%s, %s, %s", push.progressTimeout(0), push.progressTimeout(1), push.progressTimeout(30))
		}
	})
}

// TestRelayIsStopped stops the command, or the copy by --max-duration, while a relay works. It is not to blame.
func TestRelayIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(ctx context.Context, _, _ string, _ func(uint64)) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		f := &fakePeers{t: t, asks: wait}
		push := f.pushTo(2)
		push.settings.MaxDuration = time.Second
		push.run(t, "ok    p0:", "fail  p1:in/sub/: stopped by --max-duration after 1s: ",
			`total 2 peers \(1 failed\), `)
		f.expect("p0", "p0>p1")

		f = &fakePeers{t: t, asks: wait}
		push = f.pushTo(3)
		push.settings.Parallel = 1
		f.copies = func(name string) error {
			if name != "p0" {
				time.Sleep(time.Minute)
			}
			return nil
		}
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(errTimeLimit) })
		err := push.copyToAll(ctx)
		if text := push.text.String(); !errors.Is(err, errTimeLimit) || strings.Contains(text, "warn ") ||
			!strings.Contains(text, "fail  p1:in/sub/: stopped by --timeout") {
			t.Errorf("%v\n%s", err, text)
		}
	})
}
