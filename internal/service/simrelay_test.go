//go:build cgo

package service

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/share"
)

// simTarget is the daemon to which that of the simulation pushes files for its clients. Only the connections to it
// fail.
type simTarget struct {
	*simulation
	server  *Server
	key     *identity.Key
	disk    *disktest.Memory
	ctx     context.Context // of Serve
	stop    context.CancelFunc
	serving sync.WaitGroup

	mu    sync.Mutex
	links []*simLink
}

// simLink is one connection of the daemon to the target, and what goes wrong with it.
type simLink struct {
	network  *dmaxfertest.Network
	bus      *dmaxfertest.Bus
	fault    simFault
	messages atomic.Int64
}

var simTargetAddress = netip.MustParseAddrPort("192.0.2.1:7483")

// startTarget is to be called in the bubble.
func (s *simulation) startTarget() *simTarget {
	t := &simTarget{simulation: s, key: newKey(s.T), disk: disktest.NewMemory("/", "/srv")}
	var shares []share.Share
	grant := identity.Grant{Name: "relay", Key: s.key.Public(), Shares: make(map[string]share.Access)}
	for i := range s.clients {
		name := privateShare(i)
		makeDirectories(s.T, t.disk, "/srv/"+name)
		shares = append(shares, share.Share{Name: name, Path: "/srv/" + name, Access: share.ReadWrite})
		grant.Shares[name] = share.ReadWrite
	}
	var err error
	t.server, err = NewServer(ServerConfig{
		Key: t.key, Trust: trust{s.key.Public(): grant}, FS: t.disk, Shares: shares, Log: zerolog.Nop(),
		Limits: Limits{Transfers: 2 * len(s.clients), IdleTimeout: simIdle, Handshake: 10 * time.Second},
		Copy: dmaxfer.Options{
			Chunk: 4096, Depth: 4, Digest: digest.CRC32C, Durability: negotiate.DurabilityFull,
			Software: "simulation", Log: zerolog.Nop(), ExitCode: simCode,
		},
	})
	must(s.T, err)
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// dialTarget is the RelayConfig.dial of the daemon.
func (d *simDaemon) dialTarget(ctx context.Context, address netip.AddrPort, c ClientConfig) (*Client, error) {
	if address != simTargetAddress {
		d.Errorf("a relay pushes to %s", address)
	}
	t := d.target
	l := &simLink{bus: dmaxfertest.NewBus(dmaxfertest.NoDeviceFaults()), fault: d.newLinkFault()}
	l.network = dmaxfertest.Connect(testMessage, d.netDelay, l.deliver)
	number := t.add(l)
	t.serving.Go(func() {
		_ = t.server.Serve(t.ctx, Incoming{
			Conn: l.network.Conn(negotiate.DPU), Memory: fixed(l.bus.Memory(d.seed + 1)), Side: negotiate.Server,
			Function: fmt.Sprintf("192.0.2.2:%d", number),
		})
	})
	c.Conn = l.network.Conn(negotiate.Host)
	c.Memory = fixed(budgetedMemory{l.bus.Memory(d.seed + 2), d.server.memory})
	return Connect(ctx, c)
}

func (t *simTarget) add(l *simLink) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links = append(t.links, l)
	return len(t.links)
}

// newLinkFault returns that of the next connection to the target.
func (s *simulation) newLinkFault() simFault {
	kinds := []simFaultKind{simNone, simCut, simSilent, simGarbled}
	if !s.linkFaults || s.over.Load() {
		return simFault{}
	}
	return simFault{
		kind: kinds[s.below(len(kinds))], from: []negotiate.Side{negotiate.Host, negotiate.DPU}[s.below(2)],
		at: int64(s.below(60)),
	}
}

// deliver is what the network does with a message between the daemon and the target.
func (l *simLink) deliver(from negotiate.Side, message []byte) dmaxfertest.Delivery {
	whole := dmaxfertest.Delivery{Message: message}
	if l.fault.kind == simNone || l.messages.Add(1) != l.fault.at+1 {
		return whole
	}
	switch l.fault.kind {
	case simCut:
		return dmaxfertest.Delivery{Cut: true}
	case simSilent:
		return dmaxfertest.Delivery{Freeze: true}
	}
	message[int(l.fault.at)%len(message)] ^= 0x40
	return whole
}

// breakLinks ends all connections to the target.
func (t *simTarget) breakLinks() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		l.network.BreakDown()
	}
}

// end ends the target when all its connections have ended, and checks what it has kept.
func (t *simTarget) end() {
	t.serving.Wait()
	t.stop()
	status := t.server.Status()
	if len(status.Connections) != 0 || status.Running != 0 || status.Waiting != 0 || status.Memory != 0 ||
		status.Totals.Bugs != 0 {
		t.Errorf("the target ends with %+v", status)
	}
	for i, l := range t.links {
		l.network.Wait()
		if n := l.bus.Left(); n != 0 {
			t.Errorf("connection %d to the target has left %d windows and engines", i, n)
		}
	}
	texts := textsOf(t.T, t.disk, "/srv")
	for i, c := range t.clients {
		in := "/srv/" + privateShare(i) + "/"
		for name := range c.relayed.byName {
			if text := texts[in+name]; !c.relayed.may(name, text) {
				t.Errorf("client %d: the target has %d bytes in %s, which no client has pushed", i, len(text), name)
			}
		}
		for at, text := range texts {
			if name, is := strings.CutPrefix(at, in); is {
				t.checkPushed(c, name, text)
			}
		}
	}
}

func (t *simTarget) checkPushed(c *simClient, name, text string) {
	t.checkOwner(name, text, c.number)
	if _, known := c.relayed.byName[name]; !known && !strings.Contains(name, ".dma-copy-") {
		t.Errorf("client %d: the target has %s, which no client has pushed", c.number, name)
	}
}

// relay has the daemon push one of the client's own files to the target: mostly one that is there, for which a client
// without files pushes one.
func (c *simClient) relay(name string, variant int, overwrite bool) {
	has := slices.DeleteFunc(slices.Sorted(maps.Keys(c.model.byName)), func(name string) bool {
		return c.model.of(name)[0] == "" || strings.Contains(name, "/")
	})
	switch {
	case variant == 0: // whatever there is
	case len(has) > 0:
		name = has[c.random.IntN(len(has))]
	default:
		c.push(name, variant, true)
		return
	}
	at, began := negotiate.Place{Share: privateShare(c.number), Path: name}, time.Now()
	text := privateText(c.number, variant)
	if is := c.model.of(name); is[0] != "" && variant > 0 {
		text = is[0]
	}
	request := negotiate.RelayRequest{
		Source: at, Size: uint64(len(text)), Sum: blake3Of([]byte(text)), Address: simTargetAddress,
		Key: c.target.key.Public(), Target: at, Durability: negotiate.DurabilityFull,
	}
	if overwrite {
		request.Flags = negotiate.CopyOverwrite
	}
	m := c.current.Load()
	codes := c.relayCodes(name, text, overwrite)
	_, err := m.Relay(m.ctx, request, nil)
	if c.linkFaults && err != nil {
		codes = append(codes, simCode(err))
	}
	c.judge(Relay, at, began, err, codes...)
	if m.lost() {
		c.relayed.late = true // the target may still be at it
	}
	if slices.Contains(codes, 0) {
		c.relayed.pushed(name, text, overwrite, err)
	} else if err == nil {
		c.Errorf("client %d: %s was pushed", c.number, name)
	}
}

// relayCodes are what a relay of a file with that content may end with.
func (c *simClient) relayCodes(name, text string, overwrite bool) (codes []int) {
	if !c.grant.relay {
		return []int{int(negotiate.AbortRefused)}
	}
	for _, is := range c.model.of(name) {
		switch is {
		case "":
			codes = append(codes, int(negotiate.AbortSource))
		case text:
			codes = append(codes, c.relayed.pushCodes(name, text, overwrite)...)
		default:
			codes = append(codes, int(negotiate.AbortSourceChanged))
		}
	}
	return codes
}
