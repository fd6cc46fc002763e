//go:build cgo

package service

import (
	"errors"
	flags "flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/share"
)

var (
	simSeeds = flags.Uint64("sim.seeds", fewSeeds, "how many seeds TestSimulation tries")
	simFirst = flags.Uint64("sim.first", 1, "the first of them")
	simSeed  = flags.Uint64("sim.seed", 0, "the only one, if not 0")
)

// simIdle is the idle timeout of both sides.
const simIdle = 30 * time.Second

// simPrompt is the longest that something takes which waits for no other client.
const simPrompt = 5 * time.Second

// disruption is what happens once to the daemon.
type disruption int

const (
	undisturbed disruption = iota
	reloaded               // without the key of one client, and without one share
	drained
	powerLost
	disruptions
)

var disruptionNames = [...]string{"none", "reload", "drain", "power loss"}

// String is for the report of a failed seed.
func (d disruption) String() string { return disruptionNames[d] }

// diskFault is what goes wrong once on the daemon's disk, with the files of one client.
type diskFault struct {
	tenant int // -1: none
	at     int64
	hang   time.Duration // 0: it fails
	err    error
	done   bool // it takes place before it fails
}

// simScenario is what a seed makes of the daemon and of what goes wrong with it.
type simScenario struct {
	steps                       int // of each client
	limits                      Limits
	net, engineDelay, diskDelay time.Duration // the longest
	corruption                  int           // percent of the chunks
	disruption                  disruption
	at                          int64         // messages before it
	revoking                    int           // number of the client whose key a reload revokes
	grace                       time.Duration // of a drain
	diskFault                   diskFault
	bound                       time.Duration // of a request
}

// simulation is one daemon with several clients in virtual time. Each of them has a share and a disk of its own.
type simulation struct {
	*testing.T
	seed uint64
	simScenario
	sides   docatest.Sides
	key     *identity.Key // of the daemon
	disk    *disktest.Memory
	clients []*simClient
	daemon  atomic.Pointer[simDaemon]
	ended   []*simDaemon

	revoked    atomic.Bool  // its key, by a reload
	droppedAt  atomic.Int64 // when the dropped share was taken away, as time.Time.UnixNano; 0: it is there
	happenings atomic.Int64
	over       atomic.Bool // nothing goes wrong any more
	disrupting sync.WaitGroup
	results    *simResults

	mu     sync.Mutex // guards random
	random *rand.Rand
}

// simResults counts how the requests of all seeds ended, so that a simulation in which nothing succeeds, or nothing
// fails, is noticed.
type simResults struct {
	mu    sync.Mutex
	codes map[Operation]map[int]int
}

func (o *simResults) note(op Operation, code int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.codes[op] == nil {
		o.codes[op] = make(map[int]int)
	}
	o.codes[op][code]++
}

// TestSimulation has clients of different keys make random requests of one daemon at once, over connections, devices
// and disks with faults. In the middle the daemon may reload, drain or lose power. Then everything works again, and
// what has failed is repeated.
func TestSimulation(t *testing.T) {
	first, last := *simFirst, *simFirst+*simSeeds-1
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	sides, results := docatest.OpenSides(t, ""), &simResults{codes: make(map[Operation]map[int]int)}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { simulate(t, seed, sides, results) })
	}
	for op, codes := range results.codes {
		if last-first > 50 && (codes[0] == 0 || len(codes) < 2 && (op == Push || op == Pull)) {
			t.Errorf("the codes of %s are %v", op, codes)
		}
	}
	t.Log(results.codes)
}

func simulate(t *testing.T, seed uint64, sides docatest.Sides, results *simResults) {
	s := newSimulation(t, seed, sides)
	s.results = results
	synctest.Test(t, func(t *testing.T) {
		s.T = t
		defer s.report()
		s.run()
	})
}

// report says how to repeat a seed that has failed.
func (s *simulation) report() {
	if !s.Failed() {
		return
	}
	s.Logf("seed %d: %d clients, %+v", s.seed, len(s.clients), s.simScenario)
	for _, c := range s.clients {
		for _, m := range c.made {
			s.Logf("connection %s: %s, struck %t: %+v", m.function, m.fault, m.struck.Load(), m.requests)
		}
	}
	s.Logf("again with: go test ./internal/service -run TestSimulation -sim.seed=%d", s.seed)
}

func newSimulation(t *testing.T, seed uint64, sides docatest.Sides) *simulation {
	random := rand.New(rand.NewPCG(seed, 3))
	s := &simulation{T: t, seed: seed, sides: sides, random: random, key: newKey(t)}
	s.disk = disktest.NewMemory("/", "/srv", "/srv/common", "/srv/in", "/srv/out", "/srv/keep", "/srv/hidden")
	s.disk.Put("/srv/out/shared-0", publicText(9, 1))
	s.disk.Put("/srv/hidden/shared-0", privateText(9, 1))
	n := 2 + random.IntN(5)
	for i := range n {
		s.addClient(i)
		makeDirectories(t, s.disk, "/srv/"+privateShare(i))
	}
	s.simScenario = s.newScenario()
	if s.diskFault.tenant >= 0 {
		s.clients[s.diskFault.tenant].model.late = s.diskFault.hang > simIdle
	}
	return s
}

func (s *simulation) addClient(i int) {
	name, key, grant := fmt.Sprintf("key%d", i), newKey(s.T), s.newGrant()
	if i > 0 && s.random.IntN(3) == 0 {
		other := s.clients[s.random.IntN(i)]
		name, key, grant = other.name, other.key, other.grant
	}
	c := &simClient{
		simulation: s, number: i, name: name, key: key, grant: grant,
		disk:   disktest.NewMemory("/", "/home"),
		random: rand.New(rand.NewPCG(s.seed, uint64(10+i))), fine: s.random.IntN(2) == 0,
		model: simFiles{byName: make(map[string]simContents)},
	}
	for variant := range simVariants {
		c.disk.Put(fmt.Sprintf("/home/private-%d", variant), privateText(i, variant))
		c.disk.Put(fmt.Sprintf("/home/public-%d", variant), publicText(i, variant))
		tree := fmt.Sprintf("/home/tree-%d", variant)
		makeDirectories(s.T, c.disk, tree)
		for n := range simNames {
			if n != variant {
				c.disk.Put(path.Join(tree, fileOf(i, fmt.Sprint(n))), privateText(i, variant))
			}
		}
	}
	s.clients = append(s.clients, c)
}

func (s *simulation) newScenario() simScenario {
	random := s.random
	delays := func() time.Duration {
		return []time.Duration{0, 100 * time.Microsecond, 3 * time.Millisecond}[random.IntN(3)]
	}
	sc := simScenario{
		steps: 4 + random.IntN(8), net: delays(), engineDelay: delays(), diskDelay: delays(),
		corruption: []int{0, 0, 3}[random.IntN(3)],
		disruption: disruption(random.IntN(int(disruptions))), at: random.Int64N(400 * int64(len(s.clients))),
		revoking: random.IntN(len(s.clients)), grace: time.Duration(random.IntN(3)) * time.Second,
		limits:    Limits{Transfers: 1 + random.IntN(6), IdleTimeout: simIdle, Handshake: 10 * time.Second},
		diskFault: diskFault{tenant: -1},
	}
	switch random.IntN(8) {
	case 0:
		sc.limits.Memory = 60_000
	case 1:
		sc.limits.Connections = 2
	case 2:
		sc.limits.Bandwidth = 1 << 20
	}
	if random.IntN(3) == 0 {
		sc.diskFault = diskFault{
			tenant: random.IntN(len(s.clients)), at: random.Int64N(150), done: random.IntN(2) == 0,
			err:  []error{syscall.EIO, syscall.ENOSPC}[random.IntN(2)],
			hang: []time.Duration{0, 5 * time.Second, 2 * time.Minute}[random.IntN(3)],
		}
	}
	sc.bound = simIdle + closeTime + time.Second
	if sc.diskFault.hang > 0 {
		sc.bound += drainTime
	}
	if slices.ContainsFunc(s.clients, func(c *simClient) bool { return len(s.clientsOf(c.key)) > 1 }) ||
		sc.limits.Transfers < len(s.clients) {
		sc.bound *= time.Duration(len(s.clients) + 1)
	}
	return sc
}

// simGrant is what a key may do, besides everything in the private shares of its clients.
type simGrant struct {
	access      map[string]share.Access // to shares of all
	bandwidth   int64
	maxBytes    int64
	connections int
}

func (s *simulation) newGrant() simGrant {
	g := simGrant{access: make(map[string]share.Access)}
	for _, name := range []string{"common", "in", "out", "keep"} {
		g.access[name] = []share.Access{
			0, share.Read, share.Write, share.ReadWrite, share.ReadWrite, share.ReadWrite,
		}[s.random.IntN(6)]
	}
	g.bandwidth = []int64{0, 0, 16 << 20}[s.random.IntN(3)]
	g.maxBytes = []int64{0, 0, 20_000}[s.random.IntN(3)]
	g.connections = []int{0, 0, 1}[s.random.IntN(3)]
	return g
}

// clientsOf returns the clients of one key.
func (s *simulation) clientsOf(key *identity.Key) (clients []*simClient) {
	for _, c := range s.clients {
		if c.key == key {
			clients = append(clients, c)
		}
	}
	return clients
}

// grants are those of all keys but that of one client, or -1.
func (s *simulation) grants(without int) Trust {
	all := trust{}
	for i, c := range s.clients {
		if without >= 0 && c.key == s.clients[without].key {
			continue
		}
		grant, found := all[c.key.Public()]
		if !found {
			grant = identity.Grant{
				Name: c.name, Key: c.key.Public(), Shares: maps.Clone(c.grant.access), Bandwidth: c.grant.bandwidth,
				MaxBytes: c.grant.maxBytes, Connections: c.grant.connections,
			}
		}
		grant.Shares[privateShare(i)] = share.ReadWrite
		all[c.key.Public()] = grant
	}
	return all
}

func (s *simulation) verify(key identity.Public) error {
	if key != s.key.Public() {
		return errors.New("another key")
	}
	return nil
}

// below returns a random number from 0 to n-1. Safe for concurrent use.
func (s *simulation) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(max(n, 1))
}

func (s *simulation) netDelay() time.Duration { return time.Duration(s.below(int(s.net) + 1)) }

func (s *simulation) disturbAll() {
	for _, c := range s.clients {
		c.disturbed.Store(true)
	}
}

// happened counts messages, and disrupts the daemon after one of them.
func (s *simulation) happened() {
	if s.happenings.Add(1) == s.at && s.disruption != undisturbed && !s.over.Load() {
		s.disrupting.Go(s.disrupt)
	}
}

func (s *simulation) disrupt() {
	d := s.daemon.Load()
	switch s.disruption {
	case reloaded:
		d.reload()
		return
	case drained:
		d.drain()
	case powerLost:
		d.losePower()
	}
	s.restart(d)
}

func (s *simulation) restart(d *simDaemon) {
	d.serving.Wait()
	s.ended = append(s.ended, d)
	s.daemon.Store(s.startDaemon())
}

// run is to be called in the bubble.
func (s *simulation) run() {
	if s.disruption == powerLost {
		s.disk.Record()
	}
	s.daemon.Store(s.startDaemon())
	s.all((*simClient).run)
	s.over.Store(true)
	s.disrupting.Wait()
	time.Sleep(10 * time.Minute) // after which even a lost peer has been given up
	d := s.daemon.Load()
	if s.revoked.Load() {
		d.server.ReloadKeys(d.grants(-1))
		must(s.T, d.server.ReloadShares(d.shares()))
		s.droppedAt.Store(0)
	}
	for _, c := range s.clients { // one by one, so that no limit is reached
		c.finish()
	}
	s.ended = append(s.ended, d)
	s.check()
}

func (s *simulation) all(do func(*simClient)) {
	var clients sync.WaitGroup
	for _, c := range s.clients {
		clients.Go(func() { do(c) })
	}
	clients.Wait()
}

// check looks at what is left when all clients are gone.
func (s *simulation) check() {
	for _, d := range s.ended {
		d.end()
	}
	disks := map[string]*disktest.Memory{"daemon": s.disk}
	for _, c := range s.clients {
		disks["client "+c.name] = c.disk
		for _, m := range c.made {
			m.network.Wait()
			if n := m.bus.Left(); n != 0 {
				s.Errorf("connection %s has left %d windows and engines", m.function, n)
			}
		}
	}
	for name, on := range disks {
		if n := on.Handles(); n != 0 {
			s.Errorf("the %s has %d handles left", name, n)
		}
	}
	s.checkDisk()
	for i, c := range s.clients {
		for at, text := range textsOf(s.T, c.disk, "/home") {
			s.checkOwner(at, text, i)
		}
	}
}

// checkDisk looks for what is not whole, and for what one client has of another one.
func (s *simulation) checkDisk() {
	for at, text := range textsOf(s.T, s.disk, "/srv") {
		in, _, _ := strings.Cut(strings.TrimPrefix(at, "/srv/"), "/")
		owner := -1
		_, _ = fmt.Sscanf(in, "p%d", &owner)
		if in != "hidden" {
			s.checkOwner(at, text, owner)
		}
		if owner >= 0 && s.clients[owner].leavesNothing() && strings.Contains(at, ".dma-copy-") {
			s.Errorf("there is %s of a client without a fault", at)
		}
		whole := isSimText(text, "public") || isSimText(text, "private")
		if !whole && !strings.Contains(at, ".dma-copy-") {
			s.Errorf("%s has %d bytes of no single text", at, len(text))
		}
	}
}

// leavesNothing reports whether no copy of a client was interrupted.
func (c *simClient) leavesNothing() bool {
	return c.fine && c.disruption != drained && c.disruption != powerLost && c.diskFault.tenant != c.number &&
		(c.disruption != reloaded || c.clients[c.revoking].key != c.key) && c.limits.Memory == 0
}

// checkOwner looks for private texts of others than that client.
func (s *simulation) checkOwner(at, text string, owner int) {
	for i := range 10 {
		if i != owner && strings.Contains(text, fmt.Sprintf("private %d", i)) {
			s.Errorf("%s has something of client %d", at, i)
		}
	}
}

// textsOf returns the content of all files below a directory.
func textsOf(t *testing.T, on *disktest.Memory, at string) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	dir, err := on.OpenDir(at)
	must(t, err)
	defer dir.Close()
	names, err := disk.Names(dir)
	must(t, err)
	for _, name := range names {
		info, err := dir.Stat(name)
		must(t, err)
		full := path.Join(at, name)
		switch {
		case info.Mode.IsDir():
			for below, text := range textsOf(t, on, full) {
				texts[below] = text
			}
		case info.Mode&fs.ModeType == 0:
			texts[full], _ = on.Get(full)
		}
	}
	return texts
}
