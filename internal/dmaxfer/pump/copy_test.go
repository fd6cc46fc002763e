package pump

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

var algorithms = []digest.Algorithm{digest.None, digest.CRC32C, digest.XXH3, digest.BLAKE3, digest.SHA256}

func never() bool     { return false }
func unbroken() error { return nil }

// newPair returns a transfer of pseudo-random bytes without faults.
func newPair(size int) *pair {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(content)
	p := &pair{
		chunk: 64, slots: 4, lanes: [2]int{2, 2}, atOnce: 1,
		algorithm: digest.CRC32C, corrupt: never, broken: unbroken, ranges: 1,
	}
	p.file = p.addFile(content)
	return p
}

// drawPair draws a transfer of one file that succeeds.
func drawPair(t *rapid.T) *pair {
	p := newPair(rapid.IntRange(0, 6000).Draw(t, "size"))
	p.chunk = rapid.Int64Range(1, 300).Draw(t, "chunk")
	p.slots = rapid.IntRange(1, 8).Draw(t, "slots")
	p.algorithm = rapid.SampledFrom(algorithms).Draw(t, "digest")
	p.hostSends = rapid.Bool().Draw(t, "host sends")
	p.seed = rapid.Uint64().Draw(t, "seed")
	p.ranges = rapid.IntRange(1, 6).Draw(t, "ranges")
	lane := rapid.IntRange(1, min(3, p.slots))
	p.lanes = [2]int{lane.Draw(t, "sender's lanes"), lane.Draw(t, "receiver's lanes")}
	p.inOrder = p.algorithm.Ordered() || rapid.Bool().Draw(t, "in order")
	if p.inOrder {
		p.lanes[1] = 1
	}
	if p.algorithm.Ordered() {
		p.lanes[0] = 1
	}
	if p.algorithm != digest.None {
		p.corruptAFew(rapid.IntRange(0, 20).Draw(t, "percent"))
	}
	p.drawContent(t, p.file)
	return p
}

// drawContent draws how a file is sent.
func (p *pair) drawContent(t *rapid.T, f *file) {
	if p.algorithm != digest.None {
		drawClaims(t, f)
	}
	drawHoles(t, f)
}

// corruptAFew corrupts moves, at most as many as one chunk may be retransmitted.
func (p *pair) corruptAFew(percent int) {
	var changed, asked atomic.Int64
	p.corrupt = func() bool {
		chosen := rand.New(rand.NewPCG(p.seed, uint64(asked.Add(1)))).IntN(100) < percent
		return chosen && changed.Add(1) <= native.MaxAttempt
	}
}

// drawHoles makes the source sparse. If holes are checked, some of the reported holes contain data.
func drawHoles(t *rapid.T, f *file) {
	f.holes = rapid.SampledFrom([]Holes{KeepHoles, CheckHoles, FillHoles}).Draw(t, "holes")
	size := int64(len(f.source.bytes))
	for offset := int64(0); offset < size; {
		length := min(rapid.Int64Range(1, 1000).Draw(t, "extent"), size-offset)
		extent := disk.Extent{Offset: offset, Length: length, Hole: rapid.Bool().Draw(t, "hole")}
		if extent.Hole && (f.holes == KeepHoles || rapid.Bool().Draw(t, "honest")) {
			clear(f.source.bytes[offset : offset+length])
		}
		f.source.extents = append(f.source.extents, extent)
		offset += length
	}
}

// drawClaims gives the target the prefix of an earlier transfer, with some wrong bytes.
func drawClaims(t *rapid.T, f *file) {
	f.resume = rapid.Int64Range(0, int64(len(f.source.bytes))).Draw(t, "resumed")
	copy(f.target.bytes, f.source.bytes[:f.resume])
	for range rapid.IntRange(0, 3).Draw(t, "wrong bytes") {
		if f.resume > 0 {
			f.target.bytes[rapid.Int64Range(0, f.resume-1).Draw(t, "wrong byte")] ^= 1
		}
	}
}

func (p *pair) mustCopy(t fataler) {
	t.Helper()
	p.build()
	sent, received := p.run(context.Background())
	must(t, errors.Join(sent, received, p.wire.violation))
	for _, f := range p.files {
		p.mustHave(t, f)
	}
	if p.packs.Load() != p.afterPacks.Load() {
		t.Fatalf("%d packs were stored, %d ended", p.packs.Load(), p.afterPacks.Load())
	}
	if p.retransmits[0].Load() != p.retransmits[1].Load() {
		t.Fatalf("the sender retransmitted %d units, the receiver rejected %d",
			p.retransmits[0].Load(), p.retransmits[1].Load())
	}
}

// mustHave checks that the target has the content of the source, and what both sides know of it.
func (p *pair) mustHave(t fataler, f *file) {
	t.Helper()
	if !bytes.Equal(f.source.bytes, f.target.bytes) {
		t.Fatalf("%d bytes of file %d arrived changed", len(f.source.bytes), f.number)
	}
	size := int64(len(f.source.bytes))
	want, _, err := digest.Of(context.Background(), p.algorithm, bytes.NewReader(f.source.bytes))
	must(t, err)
	if length, got := f.sent(); length != size || got != want {
		t.Fatalf("the sender makes file %d %d bytes of %v, not %d of %v", f.number, length, got, size, want)
	}
	if f.whole {
		if f.moved.Load() != size || f.packed.Load() != 1 {
			t.Fatalf("%d bytes of file %d were counted as %d, stored %d times",
				size, f.number, f.moved.Load(), f.packed.Load())
		}
		return
	}
	if length, got := f.incoming.Prefix(), f.incoming.Sum(); length != size || got != want {
		t.Fatalf("the receiver makes file %d %d bytes of %v, not %d of %v", f.number, length, got, size, want)
	}
	if f.moved.Load() != size || f.stored != size || f.prefix != size {
		t.Fatalf("%d bytes of file %d were counted as %d sent, %d stored, %d without a gap",
			size, f.number, f.moved.Load(), f.stored, f.prefix)
	}
}

func TestAnyCopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { drawPair(t).mustCopy(t) })
}

func TestAnyStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPair(t)
		p.lanes, p.inOrder, p.resume, p.source.extents = [2]int{1, 1}, true, 0, nil
		p.stream = bytes.NewReader(p.source.bytes)
		p.mustCopy(t)
	})
}

// Chunks that the receiver has are claimed, and sent only if they are wrong.
func TestOnlyWrongClaimsAreSent(t *testing.T) {
	p := newPair(64 * 100)
	p.resume = 64 * 60
	copy(p.target.bytes, p.source.bytes[:p.resume])
	for _, wrong := range []int{0, 64*7 + 5, 64*60 - 1} {
		p.target.bytes[wrong] ^= 1
	}
	p.mustCopy(t)
	if p.wire.claims != 60 || p.wire.dataBelow != 3*64 || p.target.written != 43*64 {
		t.Errorf("%d claims, of which %d bytes were sent; %d bytes were written",
			p.wire.claims, p.wire.dataBelow, p.target.written)
	}
	if p.retransmits[0].Load() != 0 {
		t.Error("a wrong claim is counted as a retransmission")
	}
}

func TestCorruptedChunksAreRetransmitted(t *testing.T) {
	for _, hostSends := range []bool{false, true} {
		for _, algorithm := range algorithms[1:] {
			p := newPair(64)
			p.hostSends, p.algorithm, p.lanes, p.inOrder = hostSends, algorithm, [2]int{1, 1}, algorithm.Ordered()
			left := native.MaxAttempt
			p.corrupt = func() bool { left--; return left >= 0 }
			p.mustCopy(t)
			if p.retransmits[0].Load() != native.MaxAttempt {
				t.Errorf("%s: retransmitted %d times", algorithm, p.retransmits[0].Load())
			}
		}
	}
}

func TestChunkThatNeverArrives(t *testing.T) {
	for _, hostSends := range []bool{false, true} {
		p := newPair(64 * 20)
		p.hostSends = hostSends
		p.corrupt = func() bool { return true }
		p.build()
		sent, received := p.run(t.Context())
		mustBe(t, received, ErrCorrupted)
		if sent == nil {
			t.Error("the sender goes on")
		}
	}
}

// A sender gives up after maxAttempts rejections of a chunk.
func TestChunkThatIsNeverAccepted(t *testing.T) {
	p := newPair(64)
	p.hostSends, p.lanes = true, [2]int{1, 1}
	p.build()
	ended := make(chan error)
	go func() { ended <- p.sender.Run(t.Context()) }()
	for attempt := range 1 + native.MaxAttempt {
		<-p.announced.Waiting()
		announced := p.announced.Take()
		if len(announced) != 1 || int(announced[0].Unit.Record.Attempt) != attempt {
			t.Fatalf("%+v at attempt %d", announced, attempt)
		}
		p.sender.Acknowledge([]native.Ack{{Slot: uint32(announced[0].Unit.Record.Slot), Bad: true}})
	}
	mustBe(t, <-ended, ErrCorrupted)
}

// Without a digest there is no checksum that could find the corruption.
func TestWithoutADigestCorruptionIsNotNoticed(t *testing.T) {
	p := newPair(64)
	p.algorithm = digest.None
	p.corrupt = func() bool { return true }
	p.build()
	sent, received := p.run(t.Context())
	must(t, errors.Join(sent, received))
	if bytes.Equal(p.source.bytes, p.target.bytes) {
		t.Error("the engine did not corrupt anything")
	}
}

func TestFailuresEndAllLanes(t *testing.T) {
	errEngine := errors.New("the engine is broken")
	for name, fail := range map[string]struct {
		set  func(p *pair)
		side int // that fails
		want error
	}{
		"read":   {func(p *pair) { p.source.failAt = 1000 }, 0, errDisk},
		"write":  {func(p *pair) { p.target.failAt = 1000 }, 1, errDisk},
		"punch":  {failPunch, 1, errDisk},
		"engine": {func(p *pair) { p.broken = func() error { return errEngine } }, 0, errEngine},
		"other engine": {func(p *pair) {
			p.hostSends = true
			p.broken = func() error { return errEngine }
		}, 1, errEngine},
		"compared claim": {func(p *pair) { p.resume = 6400; p.target.failAt = 1000 }, 1, errDisk},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(6400)
			p.slots, p.lanes = 8, [2]int{3, 3}
			fail.set(p)
			p.build()
			var errs [2]error
			errs[0], errs[1] = p.run(t.Context())
			mustBe(t, errs[fail.side], fail.want)
			if errs[1-fail.side] == nil {
				t.Error("the other side did not fail")
			}
		})
	}
}

func failPunch(p *pair) {
	p.source.extents = []disk.Extent{{Length: 6400, Hole: true}}
	p.target.failAt = 9
}

// Lanes that wait for the peer end with their context.
func TestWaitingLanesEndWithTheirContext(t *testing.T) {
	because := errors.New("it was enough")
	p := newPair(6400)
	p.build()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() { ended <- p.sender.Run(ctx) }()
	go func() { ended <- p.receiver.Run(ctx) }()
	<-p.announced.Waiting() // without an answer
	cancel(because)
	mustBe(t, <-ended, because)
	mustBe(t, <-ended, because)
}

// Holes can have any length, and hashing their zeros takes time. They are processed in steps, so that a lane can be
// interrupted and reports progress.
func TestLongHolesCanBeInterrupted(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	var chunks []Chunk
	r := NewReceiver(ReceiverConfig{
		Depth:   1,
		Buffers: []Slots{NewSlots(make([]byte, 64), 64)}, Engines: []Engine{NewCopier(nil, nil, 1, digest.None)},
		InOrder: true, Digest: digest.XXH3, Stages: new(Stages), Outbox: NewBatch[Reply](1, 1),
	})
	in := NewIncoming(discardTarget{}, digest.XXH3, 1)
	in.Moved = func(chunk Chunk, _ int64) error {
		chunks = append(chunks, chunk)
		stop(interrupted)
		return nil
	}
	r.Take(native.Record{Kind: native.HoleRecord, Offset: 0, Length: 4 * holeStep}, in)
	r.End()
	if err := r.Run(ctx); !errors.Is(err, interrupted) {
		t.Errorf("it ended with %v", err)
	}
	if want := (Chunk{Kind: native.HoleRecord, Length: holeStep}); len(chunks) != 1 || chunks[0] != want {
		t.Errorf("it filled %v", chunks)
	}
}

// discardTarget is a Target that stores nothing.
type discardTarget struct{}

func (discardTarget) WriteAt([]byte, int64) error { return nil }
func (discardTarget) ReadAt([]byte, int64) error  { return nil }
func (discardTarget) Punch(int64, int64) error    { return nil }

// The number of rejected chunks is limited even if the sender always states attempt 0.
func TestWrongChunksWithoutEnd(t *testing.T) {
	const chunk, slots = 64, 3
	window, private := make([]byte, slots*chunk), make([]byte, slots*chunk)
	replies := NewBatch[Reply](slots, 1)
	r := NewReceiver(ReceiverConfig{
		Depth: slots, Buffers: []Slots{NewSlots(private, chunk)},
		Engines: []Engine{NewCopier(window, private, slots, digest.CRC32C)}, Digest: digest.CRC32C, Stages: &Stages{},
		Pace: func(context.Context, int64) error { return nil }, Retransmit: func(*Unit) {}, Outbox: replies,
	})
	in := NewIncoming(newMemory(make([]byte, 10*chunk)), digest.CRC32C, slots)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context()) }()
	wrong := native.Record{Kind: native.DataRecord, Length: chunk, Check: 1}
	for times := 1; ; times++ {
		r.Take(wrong, in)
		select {
		case err := <-ended:
			mustBe(t, err, ErrCorrupted)
			return
		case <-replies.Waiting():
			replies.Take()
		}
		if times > maxAttempts*slots {
			t.Fatalf("it was sent %d times", times)
		}
	}
}
