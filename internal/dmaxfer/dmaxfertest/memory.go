package dmaxfertest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Bus has the windows as both sides reach them, in memory that is no device's. Accesses to a window have the lock only
// to find out whether it is there; the race detector shows whether a side touches a slot that is not its own.
type Bus struct {
	mu      sync.RWMutex
	windows map[string][]byte // by descriptor; a side takes its own back when it releases it
	exposed uint32            // windows so far
	opened  int               // windows and engines, less those that were closed
	faults  *DeviceFaults
}

// NewBus returns one without windows.
func NewBus(faults *DeviceFaults) *Bus { return &Bus{windows: map[string][]byte{}, faults: faults} }

// Memory returns the memory of one side. Its moves are as random as seed.
func (b *Bus) Memory(seed uint64) window.Memory { return memory{b, seed} }

// ErrUnreachable is what an engine gets of memory that is gone.
var ErrUnreachable = &doca.Error{Op: "doca_dma_task_memcpy", Code: doca.CodeIOFailed}

// DeviceFaults are the faults of a device. The functions are called from several goroutines.
type DeviceFaults struct {
	Open    func(what string) error                  // before something is opened
	Submit  func() error                             // before moves are taken
	Arrive  func(length int64) (flip int, err error) // when a chunk arrives: which byte of it is changed, -1 for none
	Latency func(random *rand.Rand) time.Duration    // of a move; negative: it never ends
	Taken   func(random *rand.Rand, offered int) int // how many of the offered moves are taken now
	Closing func(what string) error                  // before something is closed
	Arrived func()                                   // a move has ended
}

// NoDeviceFaults returns the faults of a device that works.
func NoDeviceFaults() *DeviceFaults {
	return &DeviceFaults{
		Open:    func(string) error { return nil },
		Submit:  func() error { return nil },
		Arrive:  func(int64) (int, error) { return -1, nil },
		Latency: func(*rand.Rand) time.Duration { return 0 },
		Taken:   func(_ *rand.Rand, offered int) int { return offered },
		Closing: func(string) error { return nil },
		Arrived: func() {},
	}
}

// Left returns how many windows and engines are open.
func (b *Bus) Left() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.opened
}

func (b *Bus) count(change int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened += change
}

// Holds reports whether text is somewhere in a window. Engines, which may write meanwhile, share the lock.
func (b *Bus) Holds(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, window := range b.windows {
		if bytes.Contains(window, []byte(text)) {
			return true
		}
	}
	return false
}

// Revoke ends all access to the windows.
func (b *Bus) Revoke() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.windows)
}

// Put makes a window reachable, as one that a side has exposed.
func (b *Bus) Put(descriptor string, window []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.windows[descriptor] = window
}

// release ends all access to the window with that descriptor.
func (b *Bus) release(descriptor string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.windows, descriptor)
}

// memory is the window.Memory of one side.
type memory struct {
	*Bus
	seed uint64
}

func (m memory) Paths(job.PathChoice) (job.Paths, error) { return job.PathsOf(wire.PathDMA), nil }

func (m memory) Check(int64, int) error { return nil }

func (m memory) Traits(job.Paths) window.Traits { return window.Traits{} }

func (m memory) Expose(_ context.Context, l window.Layout) (*window.Window, error) {
	if err := m.faults.Open("window"); err != nil {
		return nil, err
	}
	slots := make([]byte, l.Length())
	w := window.NewHostWindow(l, slots)
	m.mu.Lock()
	m.exposed++
	w.Descriptor = native.AppendConsumers(nil, []uint32{m.exposed})
	descriptor := string(w.Descriptor)
	m.mu.Unlock()
	m.Put(descriptor, slots)
	if l.Path == wire.PathDMA {
		w.Address = 0x10000
	}
	w.AddCloser(m.track("window", func() { m.release(descriptor) }))
	return w, nil
}

func (m memory) Open(_ context.Context, l window.Layout, of native.Window) (*window.Window, error) {
	w := &window.Window{}
	own := make([]byte, l.Length())
	if l.Sends {
		w.Slots = pump.NewSlots(own, l.Chunk)
	}
	for lane := range l.Lanes {
		if err := m.faults.Open("engine"); err != nil {
			_ = w.Close() // reports what the test has asked for
			return nil, err
		}
		if !l.Sends {
			own = make([]byte, int64(l.Buffers)*l.Chunk)
			w.Buffers = append(w.Buffers, pump.NewSlots(own, l.Chunk))
		}
		engine := &busEngine{
			Bus: m.Bus, opened: string(of.Descriptor), own: own, sends: l.Sends, ranges: 1 + int(m.seed%6),
			random: rand.New(rand.NewPCG(m.seed, uint64(lane))),
		}
		w.Engines = append(w.Engines, engine)
		w.AddCloser(m.track("engine", func() { engine.under = nil }))
	}
	return w, nil
}

// tracked is something opened that must be closed once.
type tracked struct{ close func() error }

func (t tracked) Close() error { return t.close() }

func (m memory) track(what string, end func()) tracked {
	m.count(1)
	return tracked{func() error {
		if err := m.faults.Closing(what); err != nil {
			return err
		}
		m.count(-1)
		end()
		return nil
	}}
}

// busEngine moves bytes between the window and one lane's memory, each when its time has come.
type busEngine struct {
	*Bus
	opened string // the descriptor of the window
	own    []byte
	sends  bool
	ranges int // of one move at most
	random *rand.Rand
	under  []underway
	broken error
}

type underway struct {
	pump.Move
	due time.Time // zero: never
}

var _ pump.Gatherer = (*busEngine)(nil)

func (e *busEngine) MaxRanges() int { return e.ranges }

func (e *busEngine) Submit(moves []pump.Move) (int, error) {
	if err := e.faults.Submit(); err != nil {
		return 0, err
	}
	n := len(moves)
	if len(e.under) > 0 {
		n = e.faults.Taken(e.random, n)
	}
	for _, m := range moves[:n] {
		u := underway{Move: m}
		if latency := e.faults.Latency(e.random); latency >= 0 {
			u.due = time.Now().Add(latency)
		}
		e.under = append(e.under, u)
	}
	return n, nil
}

func (e *busEngine) Inflight() int { return len(e.under) }
func (e *busEngine) Close() error  { return nil } // its window closes what track has made of it

// Poll ends what is due, in any order.
func (e *busEngine) Poll(into []pump.Moved) int {
	n := 0
	for i := 0; i < len(e.under) && n < len(into); {
		u := e.under[i]
		if e.broken == nil && (u.due.IsZero() || time.Now().Before(u.due)) {
			i++
			continue
		}
		last := len(e.under) - 1
		e.under[i], e.under = e.under[last], e.under[:last]
		into[n] = pump.Moved{Tag: u.Tag, Err: e.move(u.Move)}
		n++
	}
	return n
}

func (e *busEngine) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	for {
		if n := e.Poll(into); n > 0 || len(e.under) == 0 {
			return n, nil
		}
		var due <-chan time.Time
		if next := e.next(); !next.IsZero() {
			due = time.After(time.Until(next))
		}
		select {
		case <-due:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (e *busEngine) next() (first time.Time) {
	for _, u := range e.under {
		if first.IsZero() || !u.due.IsZero() && u.due.Before(first) {
			first = u.due
		}
	}
	return first
}

// move copies, and after a failure fails all others, as a DOCA engine does.
func (e *busEngine) move(m pump.Move) error {
	buffer := m.Buffer
	for _, r := range append([]pump.Range{{Offset: m.Window, Length: m.Length}}, m.More...) {
		if e.broken != nil {
			break
		}
		e.broken = e.moveRange(r, buffer)
		buffer += r.Length
	}
	return e.broken
}

func (e *busEngine) moveRange(r pump.Range, buffer int64) error {
	flip, err := e.faults.Arrive(r.Length)
	e.mu.RLock()
	defer e.mu.RUnlock()
	window := e.windows[e.opened]
	switch {
	case err != nil:
	case window == nil:
		err = ErrUnreachable
	default:
		from, to := window[r.Offset:r.Offset+r.Length], e.own[buffer:buffer+r.Length]
		if e.sends {
			from, to = to, from
		}
		copy(to, from)
		if flip >= 0 {
			to[flip] ^= 0x10
		}
		e.faults.Arrived()
	}
	return err
}
