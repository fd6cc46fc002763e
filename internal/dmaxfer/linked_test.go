//go:build cgo

package dmaxfer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// linkedPair is both sides of a connection of the software device that has transfer after transfer.
type linkedPair struct {
	*setup
	ends   [2]*linkedEnd
	memory [2]*native.KeptMemory
	opened [2]*openedMemory // what memory keeps
}

// openedMemory notes what is opened, and what the engines copy.
type openedMemory struct {
	native.Memory
	windows int            // so far
	last    *native.Window // of them
	moved   atomic.Int64   // bytes
}

func (m *openedMemory) Expose(ctx context.Context, l native.Layout) (*native.Window, error) {
	return m.note(m.Memory.Expose(ctx, l))
}

func (m *openedMemory) Open(ctx context.Context, l native.Layout, of negotiate.Window) (*native.Window, error) {
	return m.note(m.Memory.Open(ctx, l, of))
}

func (m *openedMemory) note(w *native.Window, err error) (*native.Window, error) {
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

// link connects both sides until the end of the test.
func (s *setup) link(t testing.TB) *linkedPair {
	t.Helper()
	l, disconnect := s.connect(t)
	t.Cleanup(disconnect)
	return l
}

// connect connects both sides.
func (s *setup) connect(t testing.TB) (l *linkedPair, disconnect func()) {
	t.Helper()
	var ends []func() error
	l = &linkedPair{setup: s}
	var conns [2]comch.Conn
	accepted := make(chan error, 1)
	go func() {
		conn, disconnect, err := offer(s.dpu).AcceptOne(context.Background(), comch.Within(s.dpu.Wait))
		if err == nil {
			conns[negotiate.DPU] = conn
			ends = append(ends, disconnect)
		}
		accepted <- err
	}()
	conn, err := comch.NewDialer(s.host.Device, negotiate.ServerName, comch.Within(s.host.Wait)).Dial(t.Context())
	mustClose(t, func() error { return err })
	mustClose(t, func() error { return <-accepted })
	ends = append(ends, conn.Close)
	conns[negotiate.Host] = conn
	for side, device := range map[negotiate.Side]*Options{negotiate.Host: &s.host, negotiate.DPU: &s.dpu} {
		l.ends[side] = newLinkedEnd(conns[side])
		l.opened[side] = &openedMemory{Memory: native.NewMemory(device.Device, conns[side])}
		l.memory[side] = native.Keep(l.opened[side])
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
func (l *linkedPair) copy(ctx context.Context, sender negotiate.Side) outcome {
	type result struct {
		side    negotiate.Side
		summary job.Summary
		err     error
	}
	results := make(chan result, 2)
	for side, o := range map[negotiate.Side]Options{negotiate.Host: l.host, negotiate.DPU: l.dpu} {
		use := job.TargetUse
		if side == sender {
			use = job.SourceUse
		}
		go func() {
			part := l.ends[side].begin()
			summary, err := RunLinked(ctx, o, Link{Conn: part.conn(), Memory: l.memory[side], Use: use})
			_ = part.finish(context.Background()) // a lost connection shows in err
			results <- result{side, summary, err}
		}()
	}
	both := outcome{map[negotiate.Side]job.Summary{}, map[negotiate.Side]error{}}
	for range 2 {
		r := <-results
		both.summaries[r.side], both.errs[r.side] = r.summary, r.err
	}
	return both
}

func (l *linkedPair) mustCopy(t testing.TB, sender negotiate.Side) outcome {
	t.Helper()
	both := l.copy(t.Context(), sender)
	for side, err := range both.errs {
		if err != nil {
			t.Fatalf("the %s: %v", side, err)
		}
	}
	return both
}

// Files go over one connection in both directions, one after the other, on both paths.
func TestLinkedTransfers(t *testing.T) {
	for name, path := range linkedPaths {
		t.Run(name, func(t *testing.T) { linksBothWays(t, path) })
	}
}

var linkedPaths = map[string]job.PathChoice{"dma": job.OnlyDMA, "fast": job.OnlyFast}

func newLinkedPair(t *testing.T, path job.PathChoice) *linkedPair {
	t.Helper()
	setup := newSetup(t, "")
	setup.host.Path, setup.dpu.Path = path, path
	return setup.link(t)
}

func linksBothWays(t *testing.T, path job.PathChoice) {
	l := newLinkedPair(t, path)
	for i, size := range []int{0, 1, testChunk, 3*testChunk + 5, 3<<20 + 17, 1, 5 * testChunk} {
		for _, sender := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
			from, to := l.files(sender)
			want := content(size + i)
			jobtest.WriteFile(t, from.File, want)
			_ = os.Remove(to.File)
			both := l.mustCopy(t, sender)
			jobtest.MustContain(t, to.File, want)
			jobtest.MustHold(t, filepath.Dir(to.File), "file")
			for side, is := range both.summaries {
				if is.Sent != (side == sender) || is.Size != int64(len(want)) {
					t.Errorf("%s: %+v", side, is)
				}
			}
		}
	}
}

// files returns the options of the sender and of the receiver.
func (l *linkedPair) files(sender negotiate.Side) (from, to *Options) {
	if sender == negotiate.DPU {
		return &l.dpu, &l.host
	}
	return &l.host, &l.dpu
}
