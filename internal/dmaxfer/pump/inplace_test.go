package pump

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// arrivals is the Engine and the InPlace of one lane into whose buffers content arrives when a move asks for it.
type arrivals struct {
	buffers Slots
	content func(buffer int) byte // of all bytes of a slot
	ended   []Moved
	moved   []int // buffers, by move
	used    []bool
	refuses error // of Occupy
}

func (a *arrivals) Submit(moves []Move) (int, error) {
	for _, m := range moves {
		buffer := int(m.Buffer / a.buffers.size)
		if m.Buffer != m.Window || a.used[buffer] {
			return 0, errors.New("a move into another buffer than that of its slot, or one that is used")
		}
		for i := range m.Length {
			a.buffers.Bytes(buffer, m.Length)[i] = a.content(buffer)
		}
		a.used[buffer], a.moved = true, append(a.moved, buffer)
		a.ended = append(a.ended, Moved{Tag: m.Tag})
	}
	return len(moves), nil
}

func (a *arrivals) Reap(_ context.Context, into []Moved) (int, error) { return a.Poll(into), nil }

func (a *arrivals) Poll(into []Moved) int {
	n := copy(into, a.ended)
	a.ended = a.ended[n:]
	return n
}

func (a *arrivals) Inflight() int { return len(a.ended) }
func (a *arrivals) Close() error  { return nil }

func (a *arrivals) Occupy(buffer int) error {
	a.used[buffer] = true
	return a.refuses
}

func (a *arrivals) Release(buffer int) { a.used[buffer] = false }

// newInPlaceReceiver returns a receiver of so many slots with one lane and zeros in all of them, and its outbox.
func newInPlaceReceiver(slots int) (*Receiver, *arrivals, *Batch[Reply]) {
	a := &arrivals{
		buffers: NewSlots(make([]byte, slots*64), 64), used: make([]bool, slots),
		content: func(int) byte { return 0 },
	}
	replies := NewBatch[Reply](slots, 1)
	return NewReceiver(ReceiverConfig{
		Depth: slots, Buffers: []Slots{a.buffers}, Engines: []Engine{a}, InPlace: []InPlace{a}, InOrder: true,
		Pushed: true, Digest: digest.CRC32C, Stages: &Stages{}, Retransmit: func(*Unit) {}, Outbox: replies,
	}), a, replies
}

// Content is stored out of the buffer of its slot, in the order of the file, and the buffer is released.
func TestInPlace(t *testing.T) {
	r, a, replies := newInPlaceReceiver(4)
	in := NewIncoming(newMemory(slices.Repeat([]byte{1}, 256)), digest.CRC32C, 4)
	in.Moved = func(Chunk, int64) error { return nil }
	for _, slot := range []int{3, 1, 2, 0} {
		r.Take(zeroChunk(slot), in)
	}
	r.End()
	must(t, r.Run(t.Context()))
	if in.Prefix() != 256 || slices.Contains(in.Target.(*memory).bytes, 1) {
		t.Errorf("%d bytes were stored: %v", in.Prefix(), in.Target.(*memory).bytes)
	}
	if got := len(replies.Take()); got != 4 || len(a.moved) != 4 || slices.Contains(a.used, true) {
		t.Errorf("%d acknowledgements, moves of %v, in use: %v", got, a.moved, a.used)
	}
}

// Content that does not have its checksum is asked for again, after its buffer was released.
func TestInPlaceMismatch(t *testing.T) {
	r, a, replies := newInPlaceReceiver(2)
	a.content = func(buffer int) byte { return byte(buffer) }
	in := NewIncoming(newMemory(make([]byte, 128)), digest.CRC32C, 2)
	in.Moved = func(Chunk, int64) error { return nil }
	r.Take(zeroChunk(1), in)
	r.End()
	must(t, r.Run(t.Context()))
	got := replies.Take()
	if len(got) != 1 || !got[0].Ack.Bad || a.used[1] {
		t.Errorf("replies %+v, in use: %v", got, a.used)
	}
}

// A claim is compared in the buffer of its slot, which the engine keeps content from meanwhile.
func TestInPlaceClaim(t *testing.T) {
	claim := zeroChunk(1)
	claim.Kind, claim.Offset = native.ClaimRecord, 0
	claim.Check = digest.Check(digest.XXH3, make([]byte, 64))
	broken := errors.New("content for a claim")
	for _, refuses := range []error{nil, broken} {
		r, a, replies := newInPlaceReceiver(2)
		a.refuses = refuses
		in := NewIncoming(newMemory(make([]byte, 128)), digest.CRC32C, 2)
		in.Moved = func(Chunk, int64) error { return nil }
		r.Take(claim, in)
		r.End()
		mustBe(t, r.Run(t.Context()), refuses)
		if refuses == nil && (in.Prefix() != 64 || len(replies.Take()) != 1 || len(a.moved) != 0 || a.used[1]) {
			t.Errorf("%d bytes are known, moves of %v, in use: %v", in.Prefix(), a.moved, a.used)
		}
	}
}

// What the sender sends for a file that is ignored, or not known any more, is fetched and not stored: it would
// otherwise be taken for the content of the next unit of its slot.
func TestPushedContentOfIgnoredFiles(t *testing.T) {
	ignored := NewIncoming(newMemory(make([]byte, 640)), digest.CRC32C, 8)
	ignored.Ignore(func() {})
	for name, in := range map[string]*Incoming{"ignored": ignored, "unknown": nil} {
		r, a, replies := newInPlaceReceiver(4)
		claim := zeroChunk(0)
		claim.Kind = native.ClaimRecord // for which nothing is sent
		r.Take(claim, in)
		for slot := range 3 {
			r.Take(zeroChunk(slot+1), in)
		}
		r.End()
		must(t, r.Run(t.Context()))
		if got := len(replies.Take()); got != 4 || len(a.moved) != 3 || slices.Contains(a.used, true) {
			t.Errorf("%s: %d acknowledgements, moves of %v, in use: %v", name, got, a.moved, a.used)
		}
	}
	if ignored.Prefix() != 0 {
		t.Errorf("%d bytes of an ignored file were stored", ignored.Prefix())
	}
}
