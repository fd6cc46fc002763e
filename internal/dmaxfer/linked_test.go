//go:build cgo

package dmaxfer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// linkedPair is both sides of a connection that has transfer after transfer.
type linkedPair struct {
	*setup
	ends   [2]*linkedEnd
	memory [2]*window.KeptMemory
	opened [2]*openedMemory // what memory keeps
}

// openedMemory notes what is opened, and what the engines copy.
type openedMemory struct {
	window.Memory
	windows int            // so far
	last    *window.Window // of them
	moved   atomic.Int64   // bytes
}

func (m *openedMemory) Expose(ctx context.Context, l window.Layout) (*window.Window, error) {
	return m.note(m.Memory.Expose(ctx, l))
}

func (m *openedMemory) Open(ctx context.Context, l window.Layout, of native.Window) (*window.Window, error) {
	return m.note(m.Memory.Open(ctx, l, of))
}

func (m *openedMemory) note(w *window.Window, err error) (*window.Window, error) {
	if err != nil {
		return nil, err
	}
	for i, e := range w.Engines {
		w.Engines[i] = movedEngine{e, &m.moved}
	}
	m.windows++
	m.last = w
	return w, nil
}

// movedEngine counts the bytes that an engine is to copy.
type movedEngine struct {
	pump.Engine
	moved *atomic.Int64
}

func (e movedEngine) Submit(moves []pump.Move) (int, error) {
	n, err := e.Engine.Submit(moves)
	for _, m := range moves[:n] {
		e.moved.Add(m.Length)
	}
	return n, err
}

// connect connects both sides.
func (s *setup) connect(t testing.TB, over transport) (l *linkedPair, disconnect func()) {
	t.Helper()
	c := over.connect(t, s)
	l, ends := &linkedPair{setup: s}, c.close
	for side, conn := range c.conns {
		l.ends[side] = &linkedEnd{conn}
		l.opened[side] = &openedMemory{Memory: c.memory[side]}
		l.memory[side] = window.Keep(l.opened[side])
		ends = append(ends, l.memory[side].Close)
	}
	return l, func() {
		for _, end := range slices.Backward(ends) {
			mustClose(t, end)
		}
	}
}

func mustClose(t testing.TB, end func() error) {
	t.Helper()
	if err := end(); err != nil {
		t.Error(err)
	}
}

// copy carries out one transfer.
func (l *linkedPair) copy(ctx context.Context, sender wire.Side) outcome {
	type result struct {
		side    wire.Side
		summary job.Summary
		err     error
	}
	results := make(chan result, 2)
	for side, o := range map[wire.Side]Options{wire.Host: l.host, wire.DPU: l.dpu} {
		use := job.TargetUse
		if side == sender {
			use = job.SourceUse
		}
		go func() {
			part := l.ends[side].begin()
			summary, err := RunLinked(ctx, o, Link{Conn: part, Memory: l.memory[side], Use: use})
			_ = part.finish(context.Background()) // a lost connection shows in err
			results <- result{side, summary, err}
		}()
	}
	both := outcome{map[wire.Side]job.Summary{}, map[wire.Side]error{}}
	for range 2 {
		r := <-results
		both.summaries[r.side], both.errs[r.side] = r.summary, r.err
	}
	return both
}

func (l *linkedPair) mustCopy(t testing.TB, sender wire.Side) outcome {
	t.Helper()
	both := l.copy(t.Context(), sender)
	for side, err := range both.errs {
		if err != nil {
			t.Fatalf("the %s: %v", side, err)
		}
	}
	return both
}

// Files go over one connection in both directions, one after the other, on all paths.
func TestLinkedTransfers(t *testing.T) { eachTransport(t, linksBothWays) }

func linksBothWays(t *testing.T, over transport) {
	l := newLinkedPair(t, over)
	for i, size := range []int{0, 1, testChunk, 3*testChunk + 5, 3<<20 + 17, 1, 5 * testChunk} {
		for _, sender := range []wire.Side{wire.Host, wire.DPU} {
			from, to := l.files(sender)
			want := content(size + i)
			jobtest.WriteFile(t, from.File, want)
			_ = os.Remove(to.File)
			both := l.mustCopy(t, sender)
			jobtest.MustContain(t, to.File, want)
			jobtest.MustHold(t, filepath.Dir(to.File), "file")
			for side, is := range both.summaries {
				if is.Sent != (side == sender) || is.Size != int64(len(want)) || is.DataPath != over.path {
					t.Errorf("%s: %+v", side, is)
				}
			}
			if len(want) > 0 {
				mustNameTransport(t, over, both.summaries)
			}
		}
	}
}

// mustNameTransport expects both sides to know which transport of UCX has carried the content, although only one of
// them has opened the window of the other.
func mustNameTransport(t *testing.T, over transport, of map[wire.Side]job.Summary) {
	t.Helper()
	named := over.path == wire.PathMessages || over.path == wire.PathRMA
	if one, other := of[wire.Host].Transport, of[wire.DPU].Transport; one != other || (one != "") != named {
		t.Errorf("over the path %s both sides name the transports %q and %q", over.path, one, other)
	}
}

// files returns the options of the sender and of the receiver.
func (l *linkedPair) files(sender wire.Side) (from, to *Options) {
	if sender == wire.DPU {
		return &l.dpu, &l.host
	}
	return &l.host, &l.dpu
}
