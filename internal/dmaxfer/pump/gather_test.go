package pump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// gatheringCopier is a Gatherer that copies at once and records its moves.
type gatheringCopier struct {
	*Copier
	ranges int   // of one move at most
	units  []int // by move: number of ranges
	wrong  int64 // offset in the window of a byte that the next move which includes it changes; negative: none
	broken error
}

var _ Gatherer = (*gatheringCopier)(nil)

func (g *gatheringCopier) MaxRanges() int { return g.ranges }

func (g *gatheringCopier) Submit(moves []Move) (int, error) {
	for _, m := range moves {
		g.units = append(g.units, 1+len(m.More))
		g.gather(m)
		moved := Moved{Tag: m.Tag, Err: g.broken}
		if !m.Plain {
			moved.Checked, moved.Check = true, digest.Check(g.digest, g.buffers[m.Buffer:m.Buffer+lengthOf(m)])
		}
		g.ended = append(g.ended, moved)
	}
	return len(moves), nil
}

func (g *gatheringCopier) gather(m Move) {
	g.copyRange(m.Buffer, Range{m.Window, m.Length})
	to := m.Buffer + m.Length
	for _, r := range m.More {
		g.copyRange(to, r)
		to += r.Length
	}
}

func (g *gatheringCopier) copyRange(to int64, r Range) {
	copy(g.buffers[to:to+r.Length], g.window[r.Offset:r.Offset+r.Length])
	if at := g.wrong - r.Offset; g.wrong >= 0 && at >= 0 && at < r.Length {
		g.buffers[to+at] ^= 1
		g.wrong = -1
	}
}

// gathering is a receiver with one lane and a gatheringCopier, and a file that it receives.
type gathering struct {
	*Receiver
	engine  *gatheringCopier
	replies *Batch[Reply]
	file    *memory
	in      *Incoming
	packs   [][]byte // stored
	window  []byte
	retried []string
}

const gatheredSlot = 64 // bytes of a slot

func newGathering(slots, ranges int, change func(c *ReceiverConfig)) *gathering {
	g := &gathering{window: make([]byte, slots*gatheredSlot), replies: NewBatch[Reply](slots, 1)}
	for i := range g.window {
		g.window[i] = byte(i*7 + i/256 + 1)
	}
	private := make([]byte, len(g.window))
	g.engine = &gatheringCopier{
		Copier: NewCopier(g.window, private, slots, digest.CRC32C), ranges: ranges, wrong: -1,
	}
	c := ReceiverConfig{
		Depth: slots, Buffers: []Slots{NewSlots(private, gatheredSlot)}, Engines: []Engine{g.engine},
		Digest: digest.CRC32C, Stages: &Stages{}, Outbox: g.replies, StorePack: g.storePack,
		Retransmit: func(u *Unit) { g.retried = append(g.retried, u.String()) },
	}
	change(&c)
	g.Receiver = NewReceiver(c)
	g.file = newMemory(make([]byte, len(g.window)))
	g.in = NewIncoming(g.file, digest.CRC32C, slots)
	g.in.Moved = func(Chunk, int64) error { return nil }
	return g
}

func unchanged(*ReceiverConfig) {}

func (g *gathering) storePack(_ context.Context, _ *Unit, content []byte) (after func(), err error) {
	g.packs = append(g.packs, bytes.Clone(content))
	return nil, nil
}

// content returns the first bytes of a slot.
func (g *gathering) content(slot, length int) []byte {
	return g.window[slot*gatheredSlot : slot*gatheredSlot+length]
}

// takeChunk announces the first bytes of a slot as a chunk at an offset.
func (g *gathering) takeChunk(slot, offset, length int) {
	g.Take(native.Record{
		Kind: native.DataRecord, Slot: uint16(slot), Offset: uint64(offset), Length: uint64(length),
		Check: digest.Check(digest.CRC32C, g.content(slot, length)),
	}, g.in)
}

func (g *gathering) takeHole(slot, offset, length int) {
	g.Take(native.Record{
		Kind: native.HoleRecord, Slot: uint16(slot), Offset: uint64(offset), Length: uint64(length),
	}, g.in)
}

// takePack announces the first bytes of a slot as one whole file.
func (g *gathering) takePack(slot, length int) {
	check := digest.Check(digest.CRC32C, g.content(slot, length))
	g.TakePack(native.Pack{Slot: uint16(slot), Files: []native.PackedFile{
		{Length: uint32(length), Check: check},
	}}, nil)
}

// mustStore receives what was announced, and checks that the file has the chunks of these slots, of so many bytes each,
// one behind the other, that every move had as many units as wanted, and that each unit was acknowledged once.
func (g *gathering) mustStore(t *testing.T, slots []int, length int, units ...int) {
	t.Helper()
	announced := len(g.lanes[0].inbox)
	g.End()
	must(t, g.Run(t.Context()))
	for i, slot := range slots {
		if !bytes.Equal(g.file.bytes[i*length:(i+1)*length], g.content(slot, length)) {
			t.Errorf("the bytes of slot %d are not at %d", slot, i*length)
		}
	}
	if fmt.Sprint(g.engine.units) != fmt.Sprint(units) {
		t.Errorf("the moves had %d units, want %d", g.engine.units, units)
	}
	acknowledged := make(map[uint32]bool)
	for _, r := range g.replies.Take() {
		if acknowledged[r.Ack.Slot] || r.Ack.Bad {
			t.Errorf("slot %d: acknowledged twice, or bad: %t", r.Ack.Slot, r.Ack.Bad)
		}
		acknowledged[r.Ack.Slot] = true
	}
	if len(acknowledged) != announced {
		t.Errorf("%d units were acknowledged, want %d", len(acknowledged), announced)
	}
}

// As many announced units share a move as the engine and a buffer allow.
func TestSmallUnitsShareAMove(t *testing.T) {
	for name, c := range map[string]struct {
		ranges, length int
		units          []int
	}{
		"one range for each move": {1, 20, []int{1, 1, 1, 1, 1, 1, 1, 1}},
		"two ranges":              {2, 20, []int{2, 2, 2, 2}},
		"what fits in a buffer":   {64, 20, []int{3, 3, 2}},
		"an exact fit":            {64, 32, []int{2, 2, 2, 2}},
		"too large by a byte":     {64, 33, []int{1, 1, 1, 1, 1, 1, 1, 1}},
		"whole slots":             {64, 64, []int{1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGathering(8, c.ranges, unchanged)
			var slots []int
			for i := range 8 {
				slot := (i * 3) % 8
				slots = append(slots, slot)
				g.takeChunk(slot, i*c.length, c.length)
			}
			g.mustStore(t, slots, c.length, c.units...)
		})
	}
}

// With a bandwidth limit each unit waits by itself, also when it could share a move.
func TestPacedUnitsDoNotShareMoves(t *testing.T) {
	var allowed []int64
	g := newGathering(4, 8, func(c *ReceiverConfig) {
		c.Pace = func(_ context.Context, bytes int64) error {
			allowed = append(allowed, bytes)
			return nil
		}
	})
	for slot := range 4 {
		g.takeChunk(slot, slot*10, 10)
	}
	g.mustStore(t, []int{0, 1, 2, 3}, 10, 1, 1, 1, 1)
	if fmt.Sprint(allowed) != "[10 10 10 10]" {
		t.Errorf("%d bytes were allowed", allowed)
	}
}

// Holes, chunks of ignored files and units without bytes do not come between units that share a move.
func TestUnitsWithoutBytesDoNotSeparateOthers(t *testing.T) {
	g := newGathering(8, 8, unchanged)
	ignored := NewIncoming(newMemory(nil), digest.CRC32C, 8)
	ignored.Ignore(func() {})
	g.takeChunk(0, 0, 10)
	g.takeHole(1, 100, 1<<20)
	g.in.Target = discardHoles{g.file}
	g.takeChunk(2, 10, 10)
	g.Take(native.Record{Kind: native.DataRecord, Slot: 3, Length: 64}, ignored)
	g.takePack(4, 0)
	g.takeChunk(5, 20, 10)
	g.mustStore(t, []int{0, 2, 5}, 10, 3)
	if len(g.packs) != 1 || len(g.packs[0]) != 0 {
		t.Errorf("stored the packs %v", g.packs)
	}
}

// discardHoles is a Target that stores no holes.
type discardHoles struct{ *memory }

func (discardHoles) Punch(int64, int64) error { return nil }

// A claim is compared in a buffer of its own, with which no move is in conflict.
func TestClaimDoesNotShareAMove(t *testing.T) {
	g := newGathering(4, 8, unchanged)
	claimed := g.content(1, 10)
	copy(g.file.bytes[10:], claimed)
	g.takeChunk(0, 0, 10)
	g.Take(native.Record{
		Kind: native.ClaimRecord, Slot: 1, Offset: 10, Length: 10, Check: digest.Check(digest.XXH3, claimed),
	}, g.in)
	g.takeChunk(2, 20, 10)
	g.mustStore(t, []int{0, 1, 2}, 10, 1, 1)
}

// Packs and the chunks of several files share a move.
func TestPacksAndChunksShareAMove(t *testing.T) {
	g := newGathering(4, 8, unchanged)
	g.takeChunk(0, 0, 10)
	g.takePack(1, 13)
	g.takeChunk(2, 10, 10)
	g.takePack(3, 7)
	g.mustStore(t, []int{0, 2}, 10, 4)
	if len(g.packs) != 2 || !bytes.Equal(g.packs[0], g.content(1, 13)) || !bytes.Equal(g.packs[1], g.content(3, 7)) {
		t.Errorf("stored the packs %v", g.packs)
	}
}

// A unit that arrives corrupted is rejected alone. The others of its move are stored.
func TestOnlyTheWrongUnitOfAMoveIsRejected(t *testing.T) {
	for wrong := range 4 {
		g := newGathering(4, 8, unchanged)
		for slot := range 4 {
			if slot == 2 {
				g.takePack(slot, 10)
			} else {
				g.takeChunk(slot, slot*10, 10)
			}
		}
		g.engine.wrong = int64(wrong*gatheredSlot + 9)
		g.End()
		must(t, g.Run(t.Context()))
		for _, r := range g.replies.Take() {
			if r.Ack.Bad != (int(r.Ack.Slot) == wrong) {
				t.Errorf("slot %d is wrong; slot %d was rejected: %t", wrong, r.Ack.Slot, r.Ack.Bad)
			}
		}
		if len(g.engine.units) != 1 || len(g.retried) != 1 {
			t.Errorf("%d moves, retransmitted: %v", len(g.engine.units), g.retried)
		}
		for _, slot := range []int{0, 1, 3} {
			stored := bytes.Equal(g.file.bytes[slot*10:slot*10+10], g.content(slot, 10))
			if stored != (slot != wrong) {
				t.Errorf("slot %d is wrong; the chunk of slot %d was stored: %t", wrong, slot, stored)
			}
		}
		if (len(g.packs) == 1) != (wrong != 2) {
			t.Errorf("slot %d is wrong; %d packs were stored", wrong, len(g.packs))
		}
	}
}

// A unit is retransmitted as often as by itself, and then the transfer fails.
func TestUnitOfAMoveThatNeverArrives(t *testing.T) {
	p := newSparsePair(20, 10, 30)
	p.corrupt = func() bool { return true }
	p.build()
	sent, received := p.run(t.Context())
	mustBe(t, received, ErrCorrupted)
	if sent == nil {
		t.Error("the sender goes on")
	}
}

// A move that fails ends the transfer.
func TestFailedMoveOfSeveralUnits(t *testing.T) {
	g := newGathering(4, 8, unchanged)
	g.engine.broken = errors.New("the engine is broken")
	for slot := range 4 {
		g.takeChunk(slot, slot*10, 10)
	}
	g.End()
	err := g.Run(t.Context())
	mustBe(t, err, g.engine.broken)
	if want := "copying 10 bytes at 0: together with 3 more: "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q does not begin with %q", err, want)
	}
	if got := len(g.replies.Take()); got != 0 {
		t.Errorf("%d units were acknowledged", got)
	}
}

// The chunks of a file that is ignored after the first of a move are acknowledged and not stored.
func TestFileIsIgnoredAfterTheFirstUnitOfAMove(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		g := newGathering(4, 8, func(c *ReceiverConfig) { c.InOrder = inOrder })
		g.in.Moved = func(Chunk, int64) error {
			g.in.Ignore(func() {})
			return nil
		}
		for slot := range 4 {
			g.takeChunk(slot, slot*10, 10)
		}
		g.mustStore(t, []int{0}, 10, 4)
		if g.file.written != 10 {
			t.Errorf("%d bytes were written, want 10", g.file.written)
		}
	}
}

// A buffer is not used again while a unit in it waits for an earlier chunk of its file.
func TestBufferIsKeptForUnitsThatWait(t *testing.T) {
	g := newGathering(8, 2, func(c *ReceiverConfig) { c.InOrder = true })
	var slots []int
	for i, place := range []int{1, 0, 7, 2, 4, 3, 6, 5} { // pairs in one buffer
		g.takeChunk(i, place*30, 30)
	}
	for place := range 8 {
		slots = append(slots, []int{1, 0, 3, 5, 4, 7, 6, 2}[place])
	}
	g.mustStore(t, slots, 30, 2, 2, 2, 2)
	if got := g.in.Prefix(); got != 8*30 {
		t.Errorf("the prefix has %d bytes, want %d", got, 8*30)
	}
}

// distantGatherer is a distantEngine that could gather.
type distantGatherer struct{ *distantEngine }

func (distantGatherer) MaxRanges() int { return 8 }

// A unit that has no space behind the one before it is fetched at the same time, also if it is the last one.
func TestUnitThatDoesNotFitIsFetchedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGathering(2, 8, unchanged)
		engine := &distantEngine{Copier: g.engine.Copier, takes: time.Second}
		g.lanes[0].copies.engine = distantGatherer{engine}
		g.takeChunk(0, 0, 60)
		g.takeChunk(1, 60, 60)
		g.mustStore(t, []int{0, 1}, 60)
		if engine.most != 2 {
			t.Errorf("%d moves were in flight, want 2", engine.most)
		}
	})
}

// newSparsePair returns a transfer to a side with engines that gather, of so many runs of data with holes of the same
// size between them, in a window of many slots.
func newSparsePair(runs int, size int64, slots int) *pair {
	p := newPair(2 * runs * int(size))
	for i := range int64(2 * runs) {
		e := disk.Extent{Offset: i * size, Length: size, Hole: i%2 == 1}
		if e.Hole {
			clear(p.source.bytes[e.Offset : e.Offset+size])
		}
		p.source.extents = append(p.source.extents, e)
	}
	p.hostSends, p.lanes, p.slots, p.ranges = true, [2]int{1, 1}, slots, 64
	return p
}

// The runs of data of a sparse file arrive with fewer moves than there are runs.
func TestRunsOfASparseFileAreGathered(t *testing.T) {
	for _, algorithm := range []digest.Algorithm{digest.XXH3, digest.SHA256} {
		const runs = 500
		p := newSparsePair(runs, 10, 32)
		p.algorithm, p.inOrder = algorithm, algorithm.Ordered()
		p.corruptAFew(5)
		p.mustCopy(t)
		if moves := p.receiver.config.Engines[0].(*engine).taken; moves >= runs/2 {
			t.Errorf("%s: %d moves for %d runs of data, of which 6 fit in a slot", algorithm, moves, runs)
		}
	}
}
