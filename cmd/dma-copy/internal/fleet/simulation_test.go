package fleet_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fleet"
)

// The simulation schedules copies with a Planner in virtual time. Each copy has a fixed start (connection, handshake,
// decision about the target), and then moves bytes as fast as the two machines permit: the sender's uplink is shared by
// its copies, max-min fair, and a receiver takes from one sender. A peer may be slow, may die, may refuse, and may
// refuse to relay. A copy whose other end has died is noticed after the idle timeout.

var (
	simPeers = flag.Int("fleet.peers", 200, "peers of the simulated fleets")
	simSeeds = flag.Int("fleet.seeds", 3, "seeds of each simulated fleet")
)

// world is one simulated fleet.
type world struct {
	peers            int
	size             float64 // bytes
	sourceUp, peerUp float64 // bytes per second; peers receive as fast as they send
	start            time.Duration
	idle             time.Duration
	slow             float64 // share of peers with a tenth of the rate
	dying            float64 // share of peers that die at a random time of their own first 30 seconds
	noRelay          float64 // share of peers that cannot send to others, and say so at once
}

// machine is the source or a peer.
type machine struct {
	up      float64
	dies    float64 // at this time; +Inf: never
	noRelay bool
}

// transfer is a copy that runs.
type transfer struct {
	fleet.Assignment
	ready float64 // when bytes begin to move
	left  float64 // bytes
	rate  float64 // bytes per second, now
	fails float64 // when a dead end is noticed; +Inf: it is not known to be dead
}

// result is what a simulation came to.
type result struct {
	seconds    float64 // until the last copy has ended
	received   int
	failed     int
	fromSource int // copies of the source
	retries    int // of peers whose relay failed
}

type simulation struct {
	world
	planner  *fleet.Planner
	source   machine
	machines []machine
	running  []*transfer
	now      float64
	result   result
}

func simulate(w world, b fleet.Bounds, seed uint64) result {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &simulation{
		world: w, planner: fleet.NewPlanner(w.peers, b), source: machine{up: w.sourceUp, dies: math.Inf(1)},
	}
	for range w.peers {
		m := machine{up: w.peerUp, dies: math.Inf(1), noRelay: random.Float64() < w.noRelay}
		if random.Float64() < w.slow {
			m.up /= 10
		}
		if random.Float64() < w.dying {
			m.dies = 30 * random.Float64()
		}
		s.machines = append(s.machines, m)
	}
	s.begin()
	for len(s.running) > 0 {
		s.step()
	}
	s.result.seconds = s.now
	return s.result
}

func (s *simulation) machine(i int) *machine {
	if i == fleet.Source {
		return &s.source
	}
	return &s.machines[i]
}

// begin starts what the planner permits.
func (s *simulation) begin() {
	for a, is := s.planner.Next(); is; a, is = s.planner.Next() {
		t := &transfer{Assignment: a, ready: s.now + s.start.Seconds(), left: s.size, fails: math.Inf(1)}
		if a.From == fleet.Source {
			s.result.fromSource++
		}
		if s.machine(a.From).noRelay {
			t.fails = t.ready
		}
		if dies := min(s.machine(a.From).dies, s.machine(a.To).dies); !math.IsInf(dies, 1) {
			t.fails = min(t.fails, max(dies, s.now)+s.idle.Seconds())
		}
		s.running = append(s.running, t)
	}
	s.share()
}

// share sets the rates of all copies.
func (s *simulation) share() {
	from := map[int][]*transfer{}
	for _, t := range s.running {
		t.rate = 0
		alive := s.machine(t.From).dies > s.now && s.machine(t.To).dies > s.now
		if t.ready <= s.now && alive && !s.machine(t.From).noRelay {
			from[t.From] = append(from[t.From], t)
		}
	}
	for sender, copies := range from {
		slices.SortFunc(copies, func(a, b *transfer) int {
			return cmp.Compare(s.machines[a.To].up, s.machines[b.To].up)
		})
		up := s.machine(sender).up
		for i, t := range copies {
			t.rate = min(up/float64(len(copies)-i), s.machines[t.To].up)
			up -= t.rate
		}
	}
}

// step advances the time to the next event.
func (s *simulation) step() {
	next := math.Inf(1)
	for _, t := range s.running {
		next = min(next, t.fails)
		for _, at := range []float64{t.ready, s.machine(t.From).dies, s.machines[t.To].dies} {
			if at > s.now {
				next = min(next, at)
			}
		}
		if t.rate > 0 {
			next = min(next, s.now+t.left/t.rate)
		}
	}
	passed := next - s.now
	s.now = next
	var rest []*transfer
	for _, t := range s.running {
		t.left -= passed * t.rate
		switch {
		case t.left <= 1e-6*s.size:
			s.result.received++
			s.planner.End(t.Assignment, fleet.Received)
		case t.fails <= s.now:
			s.planner.End(t.Assignment, s.failure(t))
		default:
			rest = append(rest, t)
		}
	}
	s.running = rest
	s.begin()
}

// failure returns the outcome of a copy that failed: a relay is to blame unless the receiver has died.
func (s *simulation) failure(t *transfer) fleet.Outcome {
	if t.From != fleet.Source && s.machines[t.To].dies > s.now {
		s.result.retries++
		return fleet.RelayFailed
	}
	s.result.failed++
	return fleet.PeerFailed
}

// fleets are the simulated ones: 10 GiB from a source with 10 Gbit/s to peers with as much.
func fleets() map[string]world {
	equal := world{
		peers: *simPeers, size: 10 << 30, sourceUp: 1.25e9, peerUp: 1.25e9, start: 50 * time.Millisecond,
		idle: 30 * time.Second,
	}
	slow, dying, small, fast := equal, equal, equal, equal
	slow.slow = 0.05
	dying.dying, dying.noRelay = 0.02, 0.02
	small.size = 1 << 20
	fast.sourceUp = 10 * equal.sourceUp
	return map[string]world{
		"equal": equal, "5 % slow": slow, "2 % die, 2 % do not relay": dying, "1 MiB": small,
		"source 10 times as fast": fast,
	}
}

// strategies are those that are compared.
var strategies = []struct {
	name   string
	bounds fleet.Bounds
}{
	{"source only, 8 at once", fleet.Bounds{Parallel: 8}},
	{"source only, 64 at once", fleet.Bounds{Parallel: 64}},
	{"--fanout 1 --parallel 1", fleet.Bounds{Parallel: 1, Fanout: 1, Relays: 1000}},
	{"--fanout 1 --parallel 8", fleet.Bounds{Parallel: 8, Fanout: 1, Relays: 1000}},
	{"--fanout 2 --parallel 2", fleet.Bounds{Parallel: 2, Fanout: 2, Relays: 1000}},
	{"--fanout 4 --parallel 4", fleet.Bounds{Parallel: 4, Fanout: 4, Relays: 1000}},
	{"--fanout 2, 64 relays", fleet.Bounds{Parallel: 2, Fanout: 2, Relays: 64}},
}

// TestFanoutSimulation prints how long each strategy takes, and checks what does not depend on chance: every peer that
// does not die receives, and with equal links relays take a logarithm of the time of the source alone.
func TestFanoutSimulation(t *testing.T) {
	worlds := fleets()
	names := []string{"equal", "5 % slow", "2 % die, 2 % do not relay", "1 MiB", "source 10 times as fast"}
	for _, name := range names {
		w := worlds[name]
		var direct float64
		for _, each := range strategies {
			var sum result
			for seed := range uint64(*simSeeds) {
				r := simulate(w, each.bounds, seed)
				if r.received+r.failed != w.peers {
					t.Fatalf("%s, %s, seed %d: %+v", name, each.name, seed, r)
				}
				if w.dying == 0 && r.failed > 0 {
					t.Errorf("%s, %s, seed %d: %d peers failed", name, each.name, seed, r.failed)
				}
				sum.seconds += r.seconds
				sum.received += r.received
				sum.failed += r.failed
				sum.fromSource += r.fromSource
				sum.retries += r.retries
			}
			n := float64(*simSeeds)
			if direct == 0 {
				direct = sum.seconds
			}
			t.Logf("| %s | %s | %.1f | %.1f | %.0f | %.0f | %.0f |", name, each.name, sum.seconds/n, direct/sum.seconds,
				float64(sum.fromSource)/n, float64(sum.retries)/n, float64(sum.failed)/n)
			if name == "equal" && each.bounds.Fanout > 0 && each.bounds.Relays >= w.peers &&
				sum.seconds/n > direct/n/float64(w.peers)*4*math.Log2(float64(w.peers)) {
				t.Errorf("%s takes %.1f s", each.name, sum.seconds/n)
			}
		}
	}
}

// The same seed is the same run.
func TestSimulationIsDeterministic(t *testing.T) {
	w := fleets()["2 % die, 2 % do not relay"]
	b := fleet.Bounds{Parallel: 2, Fanout: 2, Relays: 64}
	if first, second := simulate(w, b, 7), simulate(w, b, 7); first != second {
		t.Errorf("%+v and then %+v", first, second)
	}
	if fmt.Sprint(simulate(w, b, 7)) == fmt.Sprint(simulate(w, b, 8)) {
		t.Error("another seed is the same run")
	}
}
