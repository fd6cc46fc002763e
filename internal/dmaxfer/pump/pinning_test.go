package pump

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// testPinning counts what the lanes ask for. It pins nothing, but lets them behave as if.
type testPinning struct{ reserved, pinned, unpinned, released atomic.Int64 }

func (p *testPinning) Reserve(lanes int) (release func()) {
	p.reserved.Add(int64(lanes))
	return func() { p.released.Add(int64(lanes)) }
}

func (p *testPinning) Pin(int) (unpin func(), pinned bool) {
	p.pinned.Add(1)
	return func() { p.unpinned.Add(1) }, true
}

// Every lane of both sides is pinned, and unpinned in the end.
func TestPinnedLanesCopy(t *testing.T) {
	p := newPair(64 * 1000)
	p.hostSends, p.lanes, p.slots = true, [2]int{2, 2}, 8
	pinning := &testPinning{}
	p.pinning = pinning
	p.build()
	sent, received := p.run(t.Context())
	must(t, sent)
	must(t, received)
	if !bytes.Equal(p.source.bytes, p.target.bytes) {
		t.Error("the bytes arrived changed")
	}
	for what, n := range map[string]*atomic.Int64{
		"reserved": &pinning.reserved, "pinned": &pinning.pinned,
		"unpinned": &pinning.unpinned, "released": &pinning.released,
	} {
		if got := n.Load(); got != 4 {
			t.Errorf("%d lanes were %s, not 4", got, what)
		}
	}
}

// A lane that would wait long to write alone writes beside the other one.
func TestWaitingToWriteAloneEnds(t *testing.T) {
	var writing sync.Mutex
	s := newLaneCPU(nil, 0)
	if !s.lock(&writing) {
		t.Error("a free mutex was not locked")
	}
	for range 40 { // and less long each time
		if s.lock(&writing) {
			t.Error("a locked mutex was locked")
		}
	}
	if s.failedTries != 40 {
		t.Errorf("waited %d times in failedTries, not 40", s.failedTries)
	}
	writing.Unlock()
	if !s.lock(&writing) || s.failedTries != 0 {
		t.Errorf("an unlocked mutex was not locked, or only after %d yields the next time", maxYields>>s.failedTries)
	}
}

// Pinned lanes take turns to write to a target that serializes them.
func TestSerialWritesTakeTurns(t *testing.T) {
	r, _ := newLanesReceiver(2)
	l := r.lanes[0]
	r.writing.Lock() // by the other lane
	for _, c := range []struct{ pinned, serial, waits bool }{
		{true, true, true}, {true, false, false}, {false, true, false},
	} {
		in := NewIncoming(discardTarget{}, digest.CRC32C, 2)
		in.SerialWrites, l.peer.cpu.pinned, l.peer.cpu.failedTries = c.serial, c.pinned, 0
		must(t, l.write(in, make([]byte, 64), 0))
		if waited := l.peer.cpu.failedTries > 0; waited != c.waits {
			t.Errorf("%+v: waited %v", c, waited)
		}
	}
	r.writing.Unlock()
	if !r.writing.TryLock() {
		t.Error("still locked")
	}
}
