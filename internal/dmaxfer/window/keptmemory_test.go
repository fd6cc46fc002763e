package window

import (
	"context"
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// countedMemory is a Memory that counts what it has opened, and whose device may not let go of that.
type countedMemory struct {
	opened, released int
	busy             error // of the release; nil: it succeeds
	refused          error // of the next window; nil: it is opened
	inflight         int   // of its engines
}

func (*countedMemory) Paths(job.PathChoice) (job.Paths, error) {
	return job.PathsOf(wire.PathDMA, wire.PathFast, wire.PathTLS), nil
}

func (*countedMemory) Check(int64, int) error { return nil }

func (*countedMemory) Traits(job.Paths) Traits { return Traits{} }

func (m *countedMemory) Expose(context.Context, Layout) (*Window, error) { return m.open() }

func (m *countedMemory) Open(context.Context, Layout, native.Window) (*Window, error) {
	return m.open()
}

func (m *countedMemory) open() (*Window, error) {
	if m.refused != nil {
		return nil, m.refused
	}
	m.opened++
	w := &Window{Engines: []pump.Engine{countedEngine{m}}}
	w.AddCloser(m)
	return w, nil
}

// Close implements io.Closer.
func (m *countedMemory) Close() error {
	if m.busy == nil {
		m.released++
	}
	return m.busy
}

type countedEngine struct{ *countedMemory }

func (e countedEngine) Submit([]pump.Move) (int, error)                 { return 0, nil }
func (e countedEngine) Reap(context.Context, []pump.Moved) (int, error) { return 0, nil }
func (e countedEngine) Poll([]pump.Moved) int                           { return 0 }
func (e countedEngine) Inflight() int                                   { return e.inflight }

// mustHave checks how many windows have been opened and released.
func (m *countedMemory) mustHave(t *testing.T, when string, opened, released int) {
	t.Helper()
	if m.opened != opened || m.released != released {
		t.Errorf("%s: %d windows opened and %d released, want %d and %d",
			when, m.opened, m.released, opened, released)
	}
}

func mustLend(t *testing.T, k *KeptMemory, l Layout, of native.Window) *Window {
	t.Helper()
	w, err := k.Open(t.Context(), l, of)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// endTransfer ends the use of a window by a transfer that has succeeded, or not.
func endTransfer(t *testing.T, w *Window, succeeded bool) {
	t.Helper()
	w.clean = succeeded
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestKeptMemoryServesTheNextTransfer(t *testing.T) {
	m := &countedMemory{}
	k := Keep(m)
	layout, of := Layout{Chunk: 4096, Depth: 2}, native.Window{Address: 1, Length: 2, Descriptor: []byte("a")}
	for range 3 {
		endTransfer(t, mustLend(t, k, layout, of), true)
	}
	m.mustHave(t, "the same", 1, 0)
	other := layout
	other.Depth = 4
	endTransfer(t, mustLend(t, k, other, of), true)
	m.mustHave(t, "another layout", 2, 1)
	of.Descriptor = []byte("b")
	endTransfer(t, mustLend(t, k, other, of), true)
	m.mustHave(t, "another window of the peer", 3, 2)
	endTransfer(t, mustLend(t, k, other, of), false)
	m.mustHave(t, "a failed transfer", 3, 3)
	w := mustLend(t, k, other, of)
	m.inflight = 1
	endTransfer(t, w, true)
	m.mustHave(t, "a copy that has not ended", 4, 4)
	m.inflight = 0
	endTransfer(t, mustLend(t, k, other, of), true)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	m.mustHave(t, "closed", 5, 5)
	if _, err := k.Open(t.Context(), other, of); !errors.Is(err, errMemoryClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// The descriptor of the peer is in the buffer of a message, which is used again.
func TestKeptMemoryCopiesTheDescriptor(t *testing.T) {
	m := &countedMemory{}
	k, of := Keep(m), native.Window{Descriptor: []byte("a")}
	endTransfer(t, mustLend(t, k, Layout{}, of), true)
	of.Descriptor[0] = 'b'
	endTransfer(t, mustLend(t, k, Layout{}, of), true)
	m.mustHave(t, "another descriptor in the same buffer", 2, 1)
}

// One window is used by one transfer. Close in between releases it at the end of that, also if it was kept before.
func TestKeptMemoryInUse(t *testing.T) {
	m := &countedMemory{}
	k := Keep(m)
	endTransfer(t, mustLend(t, k, Layout{}, native.Window{}), true)
	w := mustLend(t, k, Layout{}, native.Window{})
	if _, err := k.Expose(t.Context(), Layout{}); !errors.Is(err, ErrMemoryInUse) {
		t.Errorf("a second transfer: %v", err)
	}
	if err := k.Close(); !errors.Is(err, ErrMemoryInUse) {
		t.Errorf("Close: %v", err)
	}
	m.mustHave(t, "in use", 1, 0)
	endTransfer(t, w, true)
	m.mustHave(t, "after the transfer", 1, 1)
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	m.mustHave(t, "closed again", 1, 1)
}

// What the device does not let go of is neither forgotten nor replaced by more memory.
func TestKeptMemoryOfABusyDevice(t *testing.T) {
	m := &countedMemory{busy: errors.New("busy")}
	k := Keep(m)
	w := mustLend(t, k, Layout{}, native.Window{})
	for range 2 {
		if err := w.Close(); !errors.Is(err, m.busy) {
			t.Errorf("the end of the transfer: %v", err)
		}
	}
	if _, err := k.Expose(t.Context(), Layout{}); !errors.Is(err, m.busy) {
		t.Errorf("the next transfer: %v", err)
	}
	if err := k.Close(); !errors.Is(err, m.busy) {
		t.Errorf("Close: %v", err)
	}
	m.mustHave(t, "busy", 1, 0)
	m.busy = nil
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	m.mustHave(t, "free", 1, 1)
}

// A window that has ended is replaced.
func TestKeptMemoryReplacesAWindowThatEnded(t *testing.T) {
	m := &countedMemory{}
	k := Keep(m)
	endTransfer(t, mustLend(t, k, Layout{}, native.Window{}), true)
	k.window.Ended = func() bool { return m.opened == 1 }
	endTransfer(t, mustLend(t, k, Layout{}, native.Window{}), true)
	m.mustHave(t, "after its end", 2, 1)
	must(t, k.Close())
}

// That a window is not within reach is found out once.
func TestKeptMemoryRemembersAPathThatFailed(t *testing.T) {
	for _, test := range []struct {
		err  error
		path wire.Path
		want bool
	}{
		{doca.CodeNotPermitted, wire.PathDMA, true},
		{doca.CodeNotSupported, wire.PathDMA, true},
		{ErrUnreachable, wire.PathDMA, true},
		{doca.CodeIOFailed, wire.PathDMA, false},
		{doca.CodeNotPermitted, wire.PathFast, false}, // there is nothing instead
	} {
		m := &countedMemory{refused: test.err}
		k := Keep(m)
		if _, err := k.Open(t.Context(), Layout{Path: test.path}, native.Window{}); !errors.Is(err, test.err) {
			t.Errorf("Open: %v", err)
		}
		if p, err := k.Paths(job.AnyPath); err != nil || p.Has(wire.PathDMA) == test.want {
			t.Errorf("%v on the path %s: %b, %v", test.err, test.path, p, err)
		}
		m.refused = nil
		endTransfer(t, mustLend(t, k, Layout{}, native.Window{}), true)
	}
}
