//go:build ucx && cgo

package ucxpath

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// The transports that every machine has.
var transports = map[string][]string{"tcp": {"tcp"}, "shared memory": {"posix", "cma"}}

// Without an RDMA device rma is for processes of one user on one machine only, and never uses tcp; am never shares
// memory. The environment does not change that.
func TestTransports(t *testing.T) {
	t.Setenv("UCX_TLS", "tcp,posix")
	yes, no := func() bool { return true }, func() bool { return false }
	same, other := func() (bool, error) { return true, nil }, func() (bool, error) { return false, nil }
	card := ucx.Port{Device: "mlx5_0", Number: 1, Active: true}
	soft := ucx.Port{Device: "rxe0", Number: 1, Active: true, Software: true}
	hidden := ucx.Port{Device: "hidden0", Number: 1, Active: true}
	for _, c := range []struct {
		path   wire.Path
		config Config
		ports  []ucx.Port
		want   []string
	}{
		{wire.PathRMA, Config{}, nil, nil},
		{wire.PathRMA, Config{SameUser: other}, []ucx.Port{{Device: "mlx5_0", Number: 1}}, nil},
		{wire.PathRMA, Config{SameUser: same}, nil, []string{"posix", "sysv", "cma"}},
		{wire.PathRMA, Config{SameUser: other}, []ucx.Port{card}, []string{"rc", "dc"}},
		{wire.PathRMA, Config{SameUser: same}, []ucx.Port{card}, []string{"rc", "dc"}},
		{wire.PathRMA, Config{UCX: ucx.Settings{NetDevices: []string{"rxe0:1"}}}, []ucx.Port{card}, nil},
		{wire.PathMessages, Config{}, nil, []string{"tcp"}},
		{wire.PathMessages, Config{SameUser: same}, nil, []string{"tcp"}},
		{wire.PathMessages, Config{SameUser: same}, []ucx.Port{card}, []string{"rc", "dc", "tcp"}},

		// A software device in a process that cannot use it.
		{wire.PathRMA, Config{HardwareOnly: no}, []ucx.Port{soft}, []string{"rc", "dc"}},
		{wire.PathRMA, Config{HardwareOnly: yes}, []ucx.Port{card}, []string{"rc", "dc"}},
		{wire.PathRMA, Config{HardwareOnly: yes}, []ucx.Port{card, soft}, nil},
		{wire.PathRMA, Config{HardwareOnly: yes, UCX: ucx.Settings{NetDevices: []string{"mlx5_0"}}},
			[]ucx.Port{card, soft}, []string{"rc", "dc"}},
		{wire.PathRMA, Config{HardwareOnly: yes, SameUser: same}, []ucx.Port{soft},
			[]string{"posix", "sysv", "cma"}},
		{wire.PathMessages, Config{HardwareOnly: yes}, []ucx.Port{soft}, []string{"tcp"}},

		// A device that UCX does not find.
		{wire.PathRMA, Config{}, []ucx.Port{hidden}, nil},
		{wire.PathRMA, Config{SameUser: same}, []ucx.Port{hidden}, []string{"posix", "sysv", "cma"}},
		{wire.PathMessages, Config{}, []ucx.Port{hidden}, []string{"tcp"}},
	} {
		p := New(c.path, c.config)
		setPorts(p, c.ports...)
		p.opens = func(devices []string) bool {
			if !slices.Equal(devices, c.config.UCX.NetDevices) {
				t.Errorf("UCX is to open %q, and may use %q", devices, c.config.UCX.NetDevices)
			}
			return c.ports[0].Device != hidden.Device
		}
		if got, _ := p.transports(); !slices.Equal(got, c.want) {
			t.Errorf("%s, %+v, ports %+v: %q", c.path, c.config, c.ports, got)
		}
		err := p.Usable()
		if wrong := errors.Is(err, job.ErrCapability) != (c.want == nil); wrong {
			t.Errorf("%s, %+v, ports %+v: %v", c.path, c.config, c.ports, err)
		}
		if c.want != nil {
			continue
		}
		if w, err := p.Expose(t.Context(), layoutOf(c.path, true)); w != nil || err == nil {
			t.Errorf("a window of any transport: %v, %v", w, err)
		}
	}
}

// setPorts gives the machine of a path these ports, which UCX can use.
func setPorts(p *Path, ports ...ucx.Port) {
	p.ports = func() []ucx.Port { return slices.Clone(ports) }
	p.opens = func([]string) bool { return true }
}

// layoutOf returns the layout of one side, with two lanes.
func layoutOf(path wire.Path, sends bool) window.Layout {
	l := window.Layout{Path: path, Sends: sends, Digest: digest.CRC32C, Chunk: 64 << 10, Depth: 5, Lanes: 2}
	if !sends {
		l.Buffers = 3
	}
	return l
}

// sides are both ends of a window.
type sides struct {
	*testing.T
	path             wire.Path
	sender, receiver *window.Window
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open returns both ends of a window, closed at the end of the test.
func open(t *testing.T, path wire.Path, over []string) *sides {
	t.Helper()
	s := &sides{T: t, path: path}
	exposed := s.expose(over)
	other, err := New(path, Config{UCX: ucx.Settings{Transports: over}}).Open(
		t.Context(), layoutOf(path, path == wire.PathMessages), windowOf(exposed, path))
	must(t, err)
	t.Cleanup(func() { must(t, other.Close()) })
	s.sender, s.receiver = exposed, other
	if path == wire.PathMessages {
		s.sender, s.receiver = other, exposed
	}
	return s
}

func (s *sides) expose(over []string) *window.Window {
	s.Helper()
	layout := layoutOf(s.path, s.path == wire.PathRMA)
	w, err := New(s.path, Config{UCX: ucx.Settings{Transports: over}}).Expose(s.Context(), layout)
	must(s.T, err)
	s.Cleanup(func() { must(s.T, w.Close()) })
	return w
}

func windowOf(w *window.Window, path wire.Path) native.Window {
	l := layoutOf(path, true)
	return native.Window{Address: w.Address, Length: uint64(l.Length()), Descriptor: w.Descriptor}
}

// The peer of a shared window says where it is. Memory elsewhere in this process is not taken for it.
func TestWindowElsewhere(t *testing.T) {
	const path = wire.PathRMA
	s := &sides{T: t, path: path}
	of := windowOf(s.expose(transports["shared memory"]), path)
	p := New(path, Config{UCX: ucx.Settings{Transports: transports["shared memory"]}})
	for _, address := range []uint64{0, of.Address + 1<<40} {
		of.Address = address
		w, err := p.Open(t.Context(), layoutOf(path, false), of)
		if w != nil || !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%#x: a window: %t, %v", address, w != nil, err)
		}
	}
}

// move carries out one move.
func move(t *testing.T, e pump.Engine, m pump.Move) pump.Moved {
	t.Helper()
	if n, err := e.Submit([]pump.Move{m}); n != 1 || err != nil {
		t.Fatalf("%d moves were accepted: %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var ended [1]pump.Moved
	if n, err := e.Reap(ctx, ended[:]); n != 1 || err != nil || e.Inflight() != 0 {
		t.Fatalf("%d moves ended, %d are in flight: %v", n, e.Inflight(), err)
	}
	return ended[0]
}

// carry brings content through a slot, and returns the buffer that it has arrived in.
func (s *sides) carry(slot int, content []byte, tag int) []byte {
	s.Helper()
	l := layoutOf(s.path, true)
	lane, at := slot%l.Lanes, int64(slot)*l.Chunk
	into := int64(slot/l.Lanes) * l.Chunk
	copy(s.sender.Slots.Bytes(slot, l.Chunk), content)
	m := pump.Move{Window: at, Buffer: at, Length: int64(len(content)), Tag: tag}
	if s.path == wire.PathMessages {
		if sent := move(s.T, s.sender.Engines[lane], m); sent != (pump.Moved{Tag: tag}) {
			s.Fatalf("sent %+v", sent)
		}
	}
	m.Buffer = into
	if got := move(s.T, s.receiver.Engines[lane], m); got.Tag != tag || got.Err != nil {
		s.Fatalf("got %+v", got)
	}
	return s.receiver.Buffers[lane].Bytes(slot/l.Lanes, int64(len(content)))
}

// Each slot is used many times, by content of any length.
func TestMoves(t *testing.T) {
	for _, path := range []wire.Path{wire.PathMessages, wire.PathRMA} {
		for name, over := range transports {
			t.Run(path.String()+"/"+name, func(t *testing.T) {
				s := open(t, path, over)
				t.Logf("sender %q, receiver %q", s.sender.Transport, s.receiver.Transport)
				if path == wire.PathRMA {
					_, copies := s.receiver.Engines[0].(*pump.Copier)
					if mapped := name == "shared memory"; copies != mapped {
						t.Errorf("the receiver copies from a mapped window: %t", copies)
					}
				}
				for round := range 60 {
					content := bytes.Repeat([]byte{byte(round)}, 1+round*1117%(64<<10))
					if !bytes.Equal(s.carry(round%5, content, round), content) {
						t.Fatalf("round %d: other bytes", round)
					}
				}
			})
		}
	}
}

// A window that is gone is not within reach, which is found out before anything is read.
func TestUnreachable(t *testing.T) {
	for name, over := range transports {
		t.Run(name, func(t *testing.T) {
			s := &sides{T: t, path: wire.PathRMA}
			gone := s.expose(over)
			of := windowOf(gone, s.path)
			must(t, gone.Close())
			reader := New(s.path, Config{UCX: ucx.Settings{Transports: over}})
			w, err := reader.Open(t.Context(), layoutOf(s.path, false), of)
			if w != nil || !errors.Is(err, window.ErrUnreachable) {
				t.Errorf("%v, %v", w, err)
			}
		})
	}
}

// The time that the first read may take is that of the settings: here the owner of the window makes no progress, which
// reads over tcp need. Before that time the context ends the wait.
func TestFirstReadEnds(t *testing.T) {
	opened, err := ucx.Open(ucx.Settings{Reads: true, Transports: transports["tcp"]})
	must(t, err)
	owner := newResources(opened)
	t.Cleanup(func() { must(t, owner.Close()) })
	l := layoutOf(wire.PathRMA, false)
	memory, err := owner.alloc(l.Length(), ucx.RemoteRead)
	must(t, err)
	key, err := memory.RemoteKey()
	must(t, err)
	worker, err := owner.worker(1)
	must(t, err)
	address, err := worker.Address()
	must(t, err)
	of := native.Window{
		Address: memory.Address(), Length: uint64(l.Length()),
		Descriptor: native.AppendWorkers(nil, native.Workers{Addresses: [][]byte{address}, Key: key}),
	}
	enough := errors.New("the context has ended")
	for _, c := range []struct {
		reach, limit time.Duration
		want         error
	}{
		{time.Millisecond, time.Minute, window.ErrUnreachable}, {time.Hour, time.Second, enough},
	} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), c.limit, enough)
		w, err := New(wire.PathRMA, Config{
			UCX: ucx.Settings{Transports: transports["tcp"]}, ReachTime: c.reach,
		}).Open(ctx, l, of)
		cancel()
		if w != nil || !errors.Is(err, c.want) {
			t.Errorf("within %s: %v, %v, want %v", c.reach, w, err, c.want)
		}
	}
}

// What a peer sends is checked, and breaks the protocol.
func TestHostileMessages(t *testing.T) {
	for name, send := range map[string]struct {
		token  uint64 // is added
		slot   uint32
		length int64
		times  int
	}{
		"another token":          {1, 0, 16, 1},
		"no such slot":           {0, 5, 16, 1},
		"slot of another lane":   {0, 1, 16, 1},
		"shorter than announced": {0, 0, 15, 1},
		"longer than announced":  {0, 0, 17, 1},
		"longer than a slot":     {0, 0, 64<<10 + 1, 1},
		"a slot twice":           {0, 2, 16, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sides{T: t, path: wire.PathMessages}
			exposed := s.expose(transports["tcp"])
			to, err := native.DecodeWorkers(exposed.Descriptor, s.path, 5)
			must(t, err)
			h := newHostile(t, to.Addresses[0])
			for range send.times {
				h.send(binary.BigEndian.Uint64(to.Key)+send.token, send.slot, send.length)
			}
			_, err = exposed.Engines[0].Submit([]pump.Move{{Length: 16}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for err == nil {
				_, err = exposed.Engines[0].Reap(ctx, make([]pump.Moved, 1))
			}
			if !errors.Is(err, wire.ErrMalformed) {
				t.Error(err)
			}
		})
	}
}

// hostile is a sender that keeps no rules.
type hostile struct {
	*testing.T
	worker   *ucx.Worker
	endpoint *ucx.Endpoint
	memory   *ucx.Memory
}

func newHostile(t *testing.T, address []byte) *hostile {
	r := &resources{}
	opened, err := ucx.Open(ucx.Settings{Transports: transports["tcp"]})
	must(t, err)
	r = newResources(opened)
	t.Cleanup(func() { must(t, r.Close()) })
	h := &hostile{T: t}
	h.memory, err = r.alloc(128<<10, ucx.LocalRead)
	must(t, err)
	h.worker, err = r.worker(4)
	must(t, err)
	h.endpoint, err = h.worker.Connect(address, 0)
	must(t, err)
	return h
}

func (h *hostile) send(token uint64, slot uint32, length int64) {
	must(h.T, h.endpoint.Send(token, slot, h.memory, 0, length, 0))
	var events [1]ucx.Event
	_, err := h.worker.Reap(h.Context(), events[:])
	must(h.T, err)
}

// A lane that waits for a message gives up when its context ends.
func TestWaitEnds(t *testing.T) {
	s := open(t, wire.PathMessages, transports["tcp"])
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the reason")
	_, err := s.receiver.Engines[0].Submit([]pump.Move{{Length: 1}})
	must(t, err)
	cancel(why)
	if _, err := s.receiver.Engines[0].Reap(ctx, make([]pump.Moved, 1)); !errors.Is(err, why) {
		t.Error(err)
	}
}

// A sender of messages that shares no transport with the receiver leaves the path, as a reader does.
func TestMessagesWithoutACommonTransport(t *testing.T) {
	s := &sides{T: t, path: wire.PathMessages}
	of := windowOf(s.expose([]string{"tcp"}), s.path)
	sender := New(s.path, Config{UCX: ucx.Settings{Transports: []string{"posix"}}})
	w, err := sender.Open(t.Context(), layoutOf(s.path, true), of)
	if w != nil || !errors.Is(err, window.ErrUnreachable) {
		t.Errorf("%v, %v", w, err)
	}
}

// The user has to learn which setting is wrong, and where the right values are.
func TestUnknownNetDevice(t *testing.T) {
	p := New(wire.PathMessages, Config{UCX: ucx.Settings{NetDevices: []string{"missing0"}}})
	w, err := p.Expose(t.Context(), layoutOf(wire.PathMessages, false))
	if !errors.Is(err, job.ErrCapability) {
		t.Fatalf("got %v, %v, want %v", w, err, job.ErrCapability)
	}
	for _, text := range []string{"tcp on missing0", "dma-copy devices --driver ucx"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not mention %s", err, text)
		}
	}
}

// Only RDMA reads by itself, and needs operations in flight.
func TestTraits(t *testing.T) {
	for _, test := range []struct {
		path      wire.Path
		ports     []ucx.Port
		offloaded bool
		sizes     window.Sizes
	}{
		{wire.PathMessages, nil, false, tcpSizes},
		{wire.PathMessages, []ucx.Port{{Device: "mlx5_0", Number: 1, Active: true}}, false, sizes},
		{wire.PathRMA, nil, false, sharedSizes},
		{wire.PathRMA, []ucx.Port{{Device: "mlx5_0", Number: 1, Active: true}}, true, sizes},
	} {
		p := New(test.path, Config{})
		setPorts(p, test.ports...)
		if got := p.Traits(); got.Offloaded != test.offloaded || got.Sizes != test.sizes {
			t.Errorf("%s with %v: %+v", test.path, test.ports, got)
		}
	}
}

// Workers of this side count, and the endpoints of a sender of messages: the receiver chooses the number of its
// workers, and a lane connects to those of its slots only.
func TestOverhead(t *testing.T) {
	p := New(wire.PathMessages, Config{})
	setPorts(p)
	describe := func(count int) native.Window {
		workers := native.Workers{Key: make([]byte, native.TokenSize)}
		for range count {
			workers.Addresses = append(workers.Addresses, []byte("a"))
		}
		return native.Window{Descriptor: native.AppendWorkers(nil, workers)}
	}
	l := layoutOf(wire.PathMessages, true)
	for addresses, endpoints := range map[int]int64{1: 2, 2: 4, 3: 5, 5: 5, 6: 0} {
		want := int64(l.Lanes)*ucx.WorkerMemory + endpoints*endpointMemory
		if got := p.Overhead(l, describe(addresses)); got != want {
			t.Errorf("%d workers count as %d bytes", addresses, got)
		}
	}
	for _, test := range []struct {
		path    wire.Path
		sends   bool
		rdma    bool
		workers int64
		each    int64
	}{
		{wire.PathMessages, false, false, 2, ucx.WorkerMemory},
		{wire.PathMessages, false, true, 2, ucx.WorkerMemoryRDMA},
		{wire.PathRMA, false, false, 2, ucx.WorkerMemory},
		{wire.PathRMA, false, true, 2, ucx.WorkerMemoryRDMA},
		{wire.PathRMA, true, false, 1, ucx.WorkerMemory},
		{wire.PathRMA, true, true, 1, ucx.WorkerMemoryRDMA},
	} {
		p := New(test.path, Config{})
		setPorts(p)
		if test.rdma {
			setPorts(p, ucx.Port{Device: "mlx5_0", Number: 1, Active: true})
		}
		got := p.Overhead(layoutOf(test.path, test.sends), native.Window{})
		if got != test.workers*test.each {
			t.Errorf("%+v counts as %d bytes", test, got)
		}
	}
}
