//go:build cgo

package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// simClient makes the requests of one key, one after the other.
type simClient struct {
	*simulation
	number int
	name   string // of its key
	key    *identity.Key
	grant  simGrant         // of its key
	disk   *disktest.Memory // its own: /home
	random *rand.Rand
	fine   bool     // nothing goes wrong with its connections
	model  simFiles // its own share

	disturbed atomic.Bool  // something goes wrong with the daemon that concerns it
	revokedAt atomic.Int64 // when its key was taken away, as time.Time.UnixNano; 0: it is trusted
	crashed   atomic.Bool  // the daemon has lost power since the last request
	dead      atomic.Bool  // the process was killed: it reads and writes nothing more

	current  atomic.Pointer[simConnection]
	made     []*simConnection
	repeat   func() // the request that failed last
	pulls    int
	finished bool // nothing goes wrong any more
}

// simConnection is one connection of a client, and what goes wrong with it.
type simConnection struct {
	*Client
	client    *simClient
	daemon    *simDaemon
	function  string
	fault     simFault
	network   *dmaxfertest.Network
	bus       *dmaxfertest.Bus
	messages  atomic.Int64
	moves     atomic.Int64
	corrupted atomic.Int64
	struck    atomic.Bool
	greeted   bool
	requests  []simRequest
	ctx       context.Context
	interrupt context.CancelCauseFunc
}

// simRequest is what a client knows of one request.
type simRequest struct {
	operation   Operation
	share, path string
	err         error
}

// String is for the report of a failed seed.
func (r simRequest) String() string {
	return fmt.Sprintf("%s %s/%s: %d", r.operation, r.share, r.path, exit.Code(r.err))
}

// simFaultKind is what goes wrong once with a connection.
type simFaultKind int

const (
	simNone simFaultKind = iota
	simCut
	simSilent // one direction delivers nothing any more
	simGarbled
	simKilled
	simInterrupted
	simEngineFails
	simEngineStalls
	simCorrupted // no chunk arrives as it was sent
	simDiskFails // of the client
	simFaultKinds
)

var simFaultNames = [...]string{
	"none", "cut", "silent", "garbled", "killed", "interrupted", "engine fails", "engine stalls", "corrupted",
	"disk fails",
}

// simFault is a fault at one message, or at one chunk.
type simFault struct {
	kind simFaultKind
	from wire.Side
	at   int64
}

func (f simFault) String() string {
	return fmt.Sprintf("%s at %d of the %s", simFaultNames[f.kind], f.at, f.from)
}

// lost reports whether the two sides may know different things about the last request.
func (m *simConnection) lost() bool {
	return m.struck.Load() || m.daemon.dead.Load() || m.Client == nil || m.broken != nil
}

// newFault returns that of the next connection.
func (c *simClient) newFault() simFault {
	if c.fine || c.finished {
		return simFault{}
	}
	f := simFault{kind: simFaultKind(c.random.IntN(int(simFaultKinds))), at: c.random.Int64N(120)}
	f.from = []wire.Side{wire.Host, wire.DPU}[c.random.IntN(2)]
	if f.kind >= simEngineFails {
		f.at = c.random.Int64N(30)
	}
	return f
}

// connect returns false if there is no connection, for a reason that is permitted.
func (c *simClient) connect() bool {
	d := c.daemon.Load()
	m := &simConnection{
		client: c, daemon: d, function: fmt.Sprintf("%d.%d", c.number, len(c.made)), fault: c.newFault(),
	}
	m.bus = dmaxfertest.NewBus(m.deviceFaults())
	m.network = dmaxfertest.Connect(testMessage, c.netDelay, m.deliver)
	m.ctx, m.interrupt = context.WithCancelCause(context.Background())
	c.made = append(c.made, m)
	c.current.Store(m)
	c.dead.Store(false)
	d.serving.Go(func() {
		_ = d.server.Serve(d.ctx, Incoming{
			Conn: m.network.Conn(wire.DPU), Memory: fixed(m.memory(1)), Function: m.function,
			Side: wire.DPU,
		})
	})
	began := time.Now()
	connected, err := Connect(m.ctx, ClientConfig{
		Conn: m.network.Conn(wire.Host), Memory: fixed(m.memory(2)), Key: c.key, Verify: c.verify,
		Software: "simulation", Log: zerolog.Nop(),
	})
	c.promptly(m, "connect", began, err)
	if err == nil {
		m.Client, m.greeted = connected, true
		return true
	}
	m.interrupt(nil)
	c.current.Store(nil)
	if c.isFine(m) && !c.mayBeLimited(err) {
		c.Errorf("client %d cannot connect: %v", c.number, err)
	}
	return false
}

func (m *simConnection) memory(seed uint64) window.Memory {
	return m.bus.Memory(m.client.seed*8 + uint64(m.client.number) + seed)
}

// isFine reports whether a request over a connection has to have the result that it has without faults.
func (c *simClient) isFine(m *simConnection) bool {
	return (m.fault.kind == simNone || c.finished) && !c.disturbed.Load()
}

// mayBeLimited reports whether an error is that of a limit which the clients of this seed can reach together.
func (c *simClient) mayBeLimited(err error) bool {
	limits := c.limits
	connections := limits.Connections > 0 || c.grant.connections > 0 && len(c.clientsOf(c.key)) > c.grant.connections
	return exit.Code(err) == int(wire.AbortLimit) && (limits.Memory > 0 || connections && !c.finished)
}

// promptly checks that a call which waits for no other client did not, if the client is fine.
func (c *simClient) promptly(m *simConnection, what string, began time.Time, err error) {
	c.inTime(what, began, err)
	if took := time.Since(began); took > simPrompt && c.isFine(m) {
		c.Errorf("client %d: %s took %s: %v", c.number, what, took, err)
	}
}

// waits reports whether a copy may have to wait for those of other clients. One that is alone with its key does not,
// as long as permits are reserved for all keys, or there are enough for all clients, of which none shares its key.
func (c *simClient) waits() bool {
	keys := make(map[*identity.Key]bool)
	for _, other := range c.clients {
		keys[other.key] = true
	}
	alone := len(c.clientsOf(c.key)) == 1
	return !alone || len(keys) > c.limits.Transfers/2+1 &&
		(len(keys) < len(c.clients) || c.limits.Transfers < len(c.clients))
}

// inTime checks that a call ended within the bound of the simulation, and that its key was trusted if it succeeded.
func (c *simClient) inTime(what string, began time.Time, err error) {
	if took := time.Since(began); took > c.bound {
		c.Errorf("client %d: %s took %s: %v", c.number, what, took, err)
	}
	if since := c.revokedAt.Load(); err == nil && since != 0 && began.UnixNano() > since {
		c.Errorf("client %d: %s succeeds with a key that is not trusted", c.number, what)
	}
}

func (c *simClient) disconnect() {
	m := c.current.Load()
	if m == nil {
		return
	}
	if err := m.Close(); err != nil {
		c.Errorf("client %d: %v", c.number, err)
	}
	m.interrupt(nil)
	c.current.Store(nil)
}

// powerLost ends the connection from the other side.
func (c *simClient) powerLost() {
	c.crashed.Store(true)
	if m := c.current.Load(); m != nil {
		m.network.BreakDown()
	}
}

// deliver is what the network does with a message.
func (m *simConnection) deliver(from wire.Side, message []byte) dmaxfertest.Delivery {
	m.client.happened()
	n := m.messages.Add(1) - 1
	whole := dmaxfertest.Delivery{Message: message}
	if from != m.fault.from || n < m.fault.at || m.fault.kind == simNone || m.fault.kind >= simEngineFails ||
		!m.struck.CompareAndSwap(false, true) {
		return whole
	}
	switch m.fault.kind {
	case simCut:
		return dmaxfertest.Delivery{Cut: true}
	case simSilent:
		return dmaxfertest.Delivery{Freeze: true}
	case simGarbled:
		message[int(m.fault.at)%len(message)] ^= 0x40
	case simKilled:
		m.client.dead.Store(true)
		m.bus.Revoke()
		return dmaxfertest.Delivery{Cut: true}
	case simInterrupted:
		m.interrupt(errSimInterrupted)
	}
	return whole
}

// deviceFaults are those of the engines of both sides. A few chunks of every connection are corrupted, and sent again.
func (m *simConnection) deviceFaults() *dmaxfertest.DeviceFaults {
	faults := dmaxfertest.NoDeviceFaults()
	faults.Latency = m.latency
	faults.Arrive = m.arrive
	faults.Closing = m.closing
	return faults
}

func (m *simConnection) latency(random *rand.Rand) time.Duration {
	if m.fault.kind == simEngineStalls && m.moves.Load() >= m.fault.at && m.struck.CompareAndSwap(false, true) {
		return -1
	}
	return time.Duration(random.Int64N(int64(m.client.engineDelay) + 1))
}

func (m *simConnection) arrive(length int64) (flip int, err error) {
	n := m.moves.Add(1)
	switch {
	case n >= m.fault.at && m.fault.kind == simEngineFails && m.struck.CompareAndSwap(false, true):
		return -1, &doca.Error{Op: "doca_dma_task_memcpy", Code: doca.CodeIOFailed}
	case n >= m.fault.at && m.fault.kind == simCorrupted:
		m.struck.Store(true)
		return m.client.below(int(length)), nil
	case m.client.corruption > 0 && m.client.below(100) < m.client.corruption && m.corrupted.Add(1) < 3:
		return m.client.below(int(length)), nil
	}
	return -1, nil
}

// closing looks for what other clients alone may have in a window, before it is closed.
func (m *simConnection) closing(what string) error {
	if what != "window" {
		return nil
	}
	for _, other := range m.client.clients {
		if other.key != m.client.key && m.bus.Holds(privateText(other.number, 0)[:len("private 0")]) {
			m.client.Errorf("the window of client %d has something of client %d", m.client.number, other.number)
		}
	}
	return nil
}

// plan is that of the client's disk.
func (c *simClient) plan(_ int, op, _ string) *disktest.Fault {
	m := c.current.Load()
	switch {
	case c.dead.Load():
		return &disktest.Fault{Err: syscall.EIO}
	case m == nil || op == "close":
		return nil
	case m.fault.kind == simDiskFails && m.moves.Load() >= m.fault.at/3 && m.struck.CompareAndSwap(false, true):
		return &disktest.Fault{Err: syscall.EIO, Done: m.fault.at%2 == 0}
	}
	return nil
}

// options are those of the client's side of a copy.
func (c *simClient) options(file string, overwrite bool) dmaxfer.Options {
	return dmaxfer.Options{
		Options: role.Options{
			Side: wire.Host, Chunk: 4096, Depth: 4, Digest: digest.CRC32C, Durability: wire.DurabilityFull,
			IdleTimeout: simIdle, Log: zerolog.Nop(), Software: "simulation",
		},
		File: file, FS: disktest.NewFaulty(c.disk, c.plan), Path: job.OnlyDMA, Overwrite: overwrite,
	}
}

// run makes requests while things go wrong.
func (c *simClient) run() {
	for range c.steps {
		time.Sleep(time.Duration(c.random.Int64N(int64(200 * time.Millisecond))))
		if c.current.Load() == nil && !c.connect() {
			continue
		}
		c.request()
		if m := c.current.Load(); m.broken != nil || m.struck.Load() || c.random.IntN(6) == 0 {
			c.disconnect()
		}
	}
	c.disconnect()
}

// finish repeats what has failed, without faults, and then looks at all of its files.
func (c *simClient) finish() {
	c.finished = true
	c.disturbed.Store(false)
	c.revokedAt.Store(0)
	if c.crashed.Swap(false) {
		c.model.crash()
	}
	if !c.connect() {
		c.Errorf("client %d cannot connect in the end", c.number)
		return
	}
	if c.repeat != nil {
		c.endingInTime(c.current.Load(), c.repeat)
	}
	c.endingInTime(c.current.Load(), c.pullEverything)
	c.disconnect()
}
