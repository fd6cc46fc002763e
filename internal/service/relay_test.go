//go:build cgo

package service

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/network/networktest"
	"github.com/dma-copy/dma-copy/internal/share"
)

// relays are a daemon that pushes files for alice, and one that receives them. The proxy of the target is between them.
type relays struct {
	relay, target *machines
	address       netip.AddrPort // of the target, for the relay
}

// openRelays opens both; alter changes them before they start.
func openRelays(t *testing.T, alterRelay, alterTarget func(*machines)) *relays {
	t.Helper()
	r := &relays{target: openMachines(t, alterTarget)}
	var err error
	r.address, err = netip.ParseAddrPort(r.target.network.Address())
	must(t, err)
	r.relay = openMachines(t, func(m *machines) {
		m.config.Relay.To = targetsOf(t, r.address.String())
		m.trusted[m.key.Public()] = identity.Grant{Name: "alice", Key: m.key.Public(), Relay: true}
		if alterRelay != nil {
			alterRelay(m)
		}
	})
	r.trustRelay(identity.Grant{Name: "relay"})
	return r
}

// trustRelay lets the target trust the key of the relay. Further connections have the grant.
func (r *relays) trustRelay(grant identity.Grant) {
	grant.Key = r.relay.config.Key.Public()
	trusted := trust{grant.Key: grant}
	for key, each := range r.target.trusted {
		trusted[key] = each
	}
	r.target.server.ReloadKeys(trusted)
}

// allow changes where the relay may push to and where it listens, before it has connections.
func (r *relays) allow(list string, listen netip.AddrPort) {
	r.relay.Helper()
	targets := targetsOf(r.relay.T, list)
	r.relay.server.mu.Lock() // as each connection does later
	defer r.relay.server.mu.Unlock()
	config := &r.relay.server.config.Relay
	config.To, config.Listen = targets, listen
}

func targetsOf(t *testing.T, text string) []share.RelayTarget {
	t.Helper()
	targets, err := share.ParseRelayTargets(text)
	must(t, err)
	return targets
}

// request is for a file of the relay's box, which goes to the box of the target under the same name.
func (r *relays) request(name string, content []byte) negotiate.RelayRequest {
	return negotiate.RelayRequest{
		Source: negotiate.Place{Share: "box", Path: name}, Size: uint64(len(content)), Sum: blake3Of(content),
		Address: r.address, Key: r.target.config.Key.Public(), Target: negotiate.Place{Share: "box", Path: name},
		Durability: negotiate.DurabilityFile, Idle: 20_000,
	}
}

func blake3Of(content []byte) negotiate.Sum {
	return negotiate.Sum{Digest: negotiate.DigestBLAKE3, Value: blake3.Sum256(content)}
}

// mustFail checks how a relay has failed.
func mustFail(t *testing.T, err error, code negotiate.AbortCode, text string) {
	t.Helper()
	failure, is := errors.AsType[*negotiate.RelayFailure](err)
	if !is || failure.Code != code || !strings.Contains(failure.Text, text) {
		t.Fatalf("got %v, want a failure with code %d and %q", err, code, text)
	}
}

// mustLackFile checks that there is no file, and no unfinished one, in the target's box.
func (r *relays) mustLackFile(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(r.target.box, name)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("there is %s: %v", name, err)
	}
}

// recordOf waits for the end of a request of a daemon, and returns its record. n counts from 0.
func recordOf(m *machines, n int) (record Record) {
	m.Helper()
	waitUntil(m.T, func() bool {
		m.observed.mu.Lock()
		defer m.observed.mu.Unlock()
		if len(m.observed.ended) > n {
			record = m.observed.ended[n]
		}
		return len(m.observed.ended) > n
	})
	return record
}

// A relay pushes the file with its own key, and both daemons have a record of it.
func TestRelay(t *testing.T) {
	r := openRelays(t, nil, nil)
	c := r.relay.dial()
	defer func() { must(t, c.Close()) }()
	for i, size := range []int{0, 1, 4096, 9 << 20} {
		content := write(t, filepath.Join(r.relay.box, "file"), size)
		request := r.request("file", content)
		request.Flags = negotiate.CopyOverwrite
		var moved []uint64
		result, err := c.Relay(t.Context(), request, func(bytes uint64) { moved = append(moved, bytes) })
		must(t, err)
		want := negotiate.Relayed{Bytes: uint64(size), Sum: request.Sum}
		if result != want {
			t.Errorf("%d bytes: got %+v, want %+v", size, result, want)
		}
		for _, each := range moved {
			if each > uint64(size) {
				t.Errorf("%d of %d bytes", each, size)
			}
		}
		mustBeFile(t, filepath.Join(r.target.box, "file"), content)
		record := recordOf(r.relay, i)
		if record.Operation != Relay || record.Session.KeyName != "alice" || record.Err != nil ||
			record.Bytes != int64(size) || record.Target != "ucx://"+r.address.String()+"/box/file" ||
			record.TargetKey != r.target.config.Key.Public().String() ||
			record.Summary.Sum.Algorithm() != digest.BLAKE3 {
			t.Errorf("the record of the relay is %+v", record)
		}
		if record = recordOf(r.target, i); record.Operation != Push || record.Session.KeyName != "relay" ||
			record.Session.Machine != "dpu7" || record.Session.User != "svc" || record.Local != "box/file" {
			t.Errorf("the record of the target is %+v", record)
		}
	}
	totals := r.relay.server.Status().Totals
	if totals.Bytes != 1+4096+9<<20 || totals.Failed != 0 {
		t.Errorf("the totals are %+v", totals)
	}
}

// A target that has the file already compares its content, and no byte is transferred.
func TestRelayOfWhatTheTargetHas(t *testing.T) {
	r := openRelays(t, nil, nil)
	content := write(t, filepath.Join(r.relay.box, "file"), 300_000)
	write(t, filepath.Join(r.target.box, "file"), 300_000)
	c := r.relay.dial()
	defer func() { must(t, c.Close()) }()
	request := r.request("file", content)
	result, err := c.Relay(t.Context(), request, nil)
	must(t, err)
	if !result.UpToDate || result.Sum != request.Sum || result.Bytes != 0 {
		t.Errorf("got %+v", result)
	}
	request.Target = negotiate.Place{Share: "box", Path: "new/copy"}
	request.Flags = negotiate.CopyMakePath
	result, err = c.Relay(t.Context(), request, nil)
	must(t, err)
	mustBeFile(t, filepath.Join(r.target.box, "new", "copy"), content)
	if result.UpToDate {
		t.Errorf("got %+v", result)
	}
}

// A target at which the relay may only write compares no content: it takes a file again that may be replaced, and
// refuses one that may not.
func TestRelayToAWriteOnlyShare(t *testing.T) {
	r := openRelays(t, nil, func(m *machines) { m.config.Shares[0].Access = share.Write })
	content := write(t, filepath.Join(r.relay.box, "file"), 300_000)
	c := r.relay.dial()
	defer func() { must(t, c.Close()) }()
	request := r.request("file", content)
	request.Flags = negotiate.CopyOverwrite
	for range 2 {
		result, err := c.Relay(t.Context(), request, nil)
		must(t, err)
		if want := (negotiate.Relayed{Bytes: 300_000, Sum: request.Sum}); result != want {
			t.Errorf("got %+v, want %+v", result, want)
		}
	}
	request.Flags = 0
	_, err := c.Relay(t.Context(), request, nil)
	mustFail(t, err, negotiate.AbortSource, "/box/file exists")
	mustBeFile(t, filepath.Join(r.target.box, "file"), content)
}

// A daemon relays for nobody unless it is told so, for whom and to where; and the connection goes on.
func TestRelaysThatAreRefused(t *testing.T) {
	grant := func(change func(*identity.Grant)) func(*machines) {
		return func(m *machines) {
			g := m.trusted[m.key.Public()]
			change(&g)
			m.trusted[m.key.Public()] = g
		}
	}
	to := func(list string) func(*machines) {
		return func(m *machines) { m.config.Relay.To = targetsOf(m.T, list) }
	}
	for name, test := range map[string]struct {
		alter  func(*machines)
		change func(*relays, *negotiate.RelayRequest)
		code   negotiate.AbortCode
		text   string
	}{
		"off": {func(m *machines) { m.config.Relay.To = nil }, nil, negotiate.AbortRefused,
			"pushes nothing to other daemons"},
		"a key without the right": {grant(func(g *identity.Grant) { g.Relay = false }), nil, negotiate.AbortRefused,
			"this key may not have files pushed"},
		"a key that may not read": {
			grant(func(g *identity.Grant) { g.Shares = map[string]share.Access{"box": share.Write} }), nil,
			negotiate.AbortRefused, "this key may not read from share"},
		"a key without the share": {
			grant(func(g *identity.Grant) { g.Shares = map[string]share.Access{"in": share.Read} }), nil,
			negotiate.AbortRefused, "has no share"},
		"an address that is not listed": {to("10.0.0.0/24:7483,127.0.0.2:1"), nil, negotiate.AbortRefused,
			"pushes nothing to 127.0.0.1"},
		"loopback in a larger network": {nil, func(r *relays, _ *negotiate.RelayRequest) {
			r.allow("0.0.0.0/0:"+portOf(r.address), netip.AddrPort{})
		}, negotiate.AbortRefused, "pushes nothing to 127.0.0.1"},
		"another port": {nil, func(_ *relays, q *negotiate.RelayRequest) {
			q.Address = netip.AddrPortFrom(q.Address.Addr(), q.Address.Port()^1)
		}, negotiate.AbortRefused, "pushes nothing to 127.0.0.1"},
		"the relay's own address": {nil, func(r *relays, q *negotiate.RelayRequest) {
			own := netip.MustParseAddrPort(r.relay.daemon.Address())
			r.allow(own.String(), own)
			q.Address = own
		}, negotiate.AbortRefused, "pushes nothing to 127.0.0.1"},
		"the relay's own port, at every address": {nil, func(r *relays, q *negotiate.RelayRequest) {
			port := netip.MustParseAddrPort(r.relay.daemon.Address()).Port()
			q.Address = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), port)
			r.allow(q.Address.String(), netip.AddrPortFrom(netip.IPv6Unspecified(), port))
		}, negotiate.AbortRefused, "pushes nothing to 127.0.0.9"},
		"the relay's own key": {nil, func(r *relays, q *negotiate.RelayRequest) {
			q.Key = r.relay.config.Key.Public()
		}, negotiate.AbortRefused, "the target is the daemon itself"},
		"a path that leads out": {nil, func(r *relays, q *negotiate.RelayRequest) {
			must(r.relay.T, os.Symlink(r.target.box, filepath.Join(r.relay.box, "out")))
			q.Source.Path = "out/file"
		}, negotiate.AbortSource, "it leads out of the shared directory"},
		"no file": {nil, func(_ *relays, q *negotiate.RelayRequest) { q.Source.Path = "none" },
			negotiate.AbortSource, "does not exist"},
		"a directory": {nil, func(r *relays, q *negotiate.RelayRequest) {
			must(r.relay.T, os.Mkdir(filepath.Join(r.relay.box, "dir"), 0o755))
			q.Source.Path = "dir"
		}, negotiate.AbortSource, "is a directory"},
		"another size": {nil, func(_ *relays, q *negotiate.RelayRequest) { q.Size++ },
			negotiate.AbortSourceChanged, "has 5000 bytes instead of 5001"},
		"a weaker digest than the relay's": {func(m *machines) { m.config.Copy.Digest = digest.SHA256 }, nil,
			negotiate.AbortFailure, "compares by sha256 at least"},
		"a file beyond the limit": {func(m *machines) { m.config.Limits.MaxBytes = 4999 }, nil,
			negotiate.AbortLimit, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			r := openRelays(t, test.alter, nil)
			request := r.request("file", write(t, filepath.Join(r.relay.box, "file"), 5000))
			if test.change != nil {
				test.change(r, &request)
			}
			made := r.target.network.Made()
			c := r.relay.dial()
			defer func() { must(t, c.Close()) }()
			_, err := c.Relay(t.Context(), request, nil)
			mustRefuse(t, err, test.code, test.text)
			if got := r.target.network.Made(); got != made {
				t.Errorf("the relay made %d connections", got-made)
			}
			r.mustLackFile(t, "file")
			record := recordOf(r.relay, 0)
			if record.Operation != Relay || record.Code != int(test.code) || record.TargetKey == "" {
				t.Errorf("the record is %+v", record)
			}
			_, err = c.Ping(t.Context(), []byte("on"))
			must(t, err)
		})
	}
}

func portOf(address netip.AddrPort) string {
	_, port, _ := strings.Cut(address.String(), ":")
	return port
}

// Nothing is committed at a target that is not the one of the request, or of a file that is not the one of the request;
// and the connection goes on.
func TestRelaysThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		alterTarget func(*machines)
		change      func(*relays, *negotiate.RelayRequest)
		code        negotiate.AbortCode
		text        string
	}{
		"another key at the target": {nil, func(r *relays, q *negotiate.RelayRequest) {
			q.Key = newKey(r.relay.T).Public()
		}, negotiate.AbortRefused, "it is not that of the request"},
		"a target that does not trust the relay": {nil, func(r *relays, _ *negotiate.RelayRequest) {
			r.target.server.ReloadKeys(r.target.trusted)
		}, negotiate.AbortRefused, ""},
		"a target without the right": {nil, func(r *relays, _ *negotiate.RelayRequest) {
			r.trustRelay(identity.Grant{Name: "relay", Shares: map[string]share.Access{"box": share.Read}})
		}, negotiate.AbortRefused, "the target refused: this key may not write to share"},
		"a target that trusts everybody": {func(m *machines) { m.config.AuthNone = true }, nil,
			negotiate.AbortRefused, "accepts any key"},
		"another file": {nil, func(r *relays, q *negotiate.RelayRequest) {
			q.Sum = blake3Of([]byte("another"))
		}, negotiate.AbortDigest, "its digest is not that of the request"},
		"a file that has changed since": {nil, func(r *relays, _ *negotiate.RelayRequest) {
			path := filepath.Join(r.relay.box, "file")
			info, err := os.Stat(path)
			must(r.relay.T, err)
			changed, err := os.ReadFile(path)
			must(r.relay.T, err)
			changed[70_000]++
			must(r.relay.T, os.WriteFile(path, changed, 0o600))
			must(r.relay.T, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}, negotiate.AbortDigest, "its digest is not that of the request"},
		"a target that wants a stronger digest": {func(m *machines) { m.config.Copy.Digest = digest.SHA256 }, nil,
			negotiate.AbortFailure, "stronger sha256"},
		"nobody at the address": {nil, func(r *relays, q *negotiate.RelayRequest) {
			r.allow("127.0.0.1:1", netip.AddrPort{})
			q.Address, q.Idle = netip.MustParseAddrPort("127.0.0.1:1"), 100
		}, negotiate.AbortFailure, "push to the target"},
		"a target that has another file": {nil, func(r *relays, q *negotiate.RelayRequest) {
			must(r.relay.T, os.WriteFile(filepath.Join(r.target.box, "other"), []byte("other"), 0o600))
			q.Target.Path = "other"
		}, negotiate.AbortSource, "the target aborted: other exists and differs"},
	} {
		t.Run(name, func(t *testing.T) {
			r := openRelays(t, nil, test.alterTarget)
			request := r.request("file", write(t, filepath.Join(r.relay.box, "file"), 100_000))
			if test.change != nil {
				test.change(r, &request)
			}
			c := r.relay.dial()
			defer func() { must(t, c.Close()) }()
			_, err := c.Relay(t.Context(), request, nil)
			mustFail(t, err, test.code, test.text)
			r.mustLackFile(t, "file")
			if record := recordOf(r.relay, 0); record.Code != int(test.code) || record.Err == nil {
				t.Errorf("the record is %+v", record)
			}
			_, err = c.Ping(t.Context(), []byte("on"))
			must(t, err)
		})
	}
}

// A target that says it has the file without comparing it is not believed.
func TestRelayedWithoutADigest(t *testing.T) {
	sum, err := digest.NewSum(digest.BLAKE3, make([]byte, 32))
	must(t, err)
	must(t, checkRelayed(job.Summary{UpToDate: true, Sum: sum}, sum))
	mustBe(t, checkRelayed(job.Summary{UpToDate: true}, sum), job.ErrTarget)
}

// largeFile is the size of the file of begin in bytes.
const largeFile = 32 << 20

// begin makes a relay of a large file, and lets no more of its content pass when some has.
func (r *relays) begin(t *testing.T, c *Client) (request negotiate.RelayRequest, ended <-chan error) {
	t.Helper()
	request = r.request("large", write(t, filepath.Join(r.relay.box, "large"), largeFile))
	stalled := make(chan struct{})
	r.target.network.At(4<<20, func() {
		r.target.network.Stall(func(n int) bool { return n > 0 }) // the connections for content
		close(stalled)
	})
	result := make(chan error, 1)
	go func() {
		_, err := c.Relay(context.Background(), request, nil)
		result <- err
	}()
	select {
	case <-stalled:
	case err := <-result:
		t.Fatalf("the relay has ended: %v", err)
	}
	return request, result
}

// relaying returns the status of the only connection of the relay, when it pushes.
func (r *relays) relaying(t *testing.T) ConnectionStatus {
	t.Helper()
	var status ConnectionStatus
	waitUntil(t, func() bool {
		for _, each := range r.relay.server.Status().Connections {
			if each.Request != nil && each.Moved > 0 {
				status = each
				return true
			}
		}
		return false
	})
	return status
}

// A relay ends with the connection of the command, and the target keeps nothing of it under its name.
func TestRelayEndsWithItsCommand(t *testing.T) {
	r := openRelays(t, nil, nil)
	c := r.relay.dial()
	_, ended := r.begin(t, c)
	if status := r.relaying(t); status.Request.Operation != Relay || status.Total != largeFile {
		t.Errorf("the status is %+v", status)
	}
	_ = c.Close()
	if err := <-ended; err == nil {
		t.Error("a relay was successful after its end")
	}
	waitUntil(t, func() bool { return len(r.relay.server.Status().Connections) == 0 })
	r.target.network.Stall(nil)
	waitUntil(t, func() bool { return len(r.target.server.Status().Connections) == 0 })
	r.mustLackFile(t, "large")
	if record := recordOf(r.relay, 0); record.Operation != Relay || record.Err == nil {
		t.Errorf("the record is %+v", record)
	}
}

// codeOf returns the code with which a daemon has refused or ended a relay.
func codeOf(err error) negotiate.AbortCode {
	if refused, is := errors.AsType[*negotiate.Refusal](err); is {
		return refused.Code
	}
	if failed, is := errors.AsType[*negotiate.RelayFailure](err); is {
		return failed.Code
	}
	return 0
}

// A daemon that drains lets a relay end, and interrupts it when the time for that is over.
func TestRelayWhileDraining(t *testing.T) {
	r := openRelays(t, nil, nil)
	c := r.relay.dial()
	_, ended := r.begin(t, c)
	r.relaying(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	drained := make(chan struct{})
	go func() {
		r.relay.server.Drain(ctx)
		close(drained)
	}()
	waitUntil(t, func() bool { return r.relay.server.Status().Draining })
	select {
	case err := <-ended:
		t.Fatalf("the relay has ended: %v", err)
	default:
	}
	cancel(errStopped)
	if err := <-ended; codeOf(err) != negotiate.AbortTerminated { // of the relay, or of the connection
		t.Errorf("got %v", err)
	}
	_ = c.Close()
	<-drained
	r.target.network.Stall(nil)
	waitUntil(t, func() bool { return len(r.target.server.Status().Connections) == 0 })
	r.mustLackFile(t, "large")
}

// A relay takes one of the permits to transfer, and memory.
func TestRelaysWithinLimits(t *testing.T) {
	r := openRelays(t, func(m *machines) { m.config.Limits.Transfers = 1 }, nil)
	first, second := r.relay.dial(), r.relay.dial()
	request, ended := r.begin(t, first)
	r.relaying(t)
	if status := r.relay.server.Status(); status.Running != 1 || status.Memory == 0 {
		t.Errorf("the status is %+v", status)
	}
	request.Target.Path = "second"
	waits := make(chan error, 1)
	go func() {
		_, err := second.Relay(context.Background(), request, nil)
		waits <- err
	}()
	waitUntil(t, func() bool { return r.relay.server.Status().Waiting == 1 })
	r.target.network.Stall(nil)
	must(t, <-ended)
	must(t, <-waits)
	must(t, errors.Join(first.Close(), second.Close()))
	waitUntil(t, func() bool { return len(r.relay.server.Status().Connections) == 0 })
	if status := r.relay.server.Status(); status.Memory != 0 || status.Running != 0 {
		t.Errorf("the status is %+v", status)
	}
}

// A relay does not wait for long for other copies at the target: two daemons could wait for each other.
func TestRelayToABusyTarget(t *testing.T) {
	r := openRelays(t, nil, func(m *machines) { m.config.Limits.Transfers = 1 })
	busy := r.target.server.permits.join("another")
	defer busy.release()
	request := r.request("file", write(t, filepath.Join(r.relay.box, "file"), 5000))
	request.Idle = 4000 // longer than the second between two messages of a target that is busy
	c := r.relay.dial()
	defer func() { must(t, c.Close()) }()
	_, err := c.Relay(t.Context(), request, nil)
	mustFail(t, err, negotiate.AbortLimit, "the target served other copies for 4s")
	r.mustLackFile(t, "file")
}

// A network that fails between relay and target ends the relay, and the command hears of it.
func TestRelayOverANetworkThatFails(t *testing.T) {
	notLong := func(m *machines) { m.config.Limits.IdleTimeout = 3 * time.Second }
	r := openRelays(t, notLong, notLong)
	c := r.relay.dial()
	defer func() { must(t, c.Close()) }()
	_, ended := r.begin(t, c)
	r.target.network.Stall(networktest.All)
	mustFail(t, <-ended, negotiate.AbortPeer, "")
	r.mustLackFile(t, "large")
}

func TestRelayNeedsKeys(t *testing.T) {
	w := newWorld(t)
	w.config.Trust, w.config.AuthNone = nil, true
	w.config.Relay.To = targetsOf(t, "10.0.0.1")
	if _, err := NewServer(w.config); err == nil || !strings.Contains(err.Error(), "any key") {
		t.Errorf("got %v", err)
	}
}
