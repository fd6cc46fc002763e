package pump

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// newTwoFiles returns a transfer of two files in turns, the first of which fails on the receiver.
func newTwoFiles(change func(p *pair)) *pair {
	p := newPair(64 * 100)
	p.addFile(contentOf(64*100, 1))
	p.atOnce, p.slots = 2, 8
	change(p)
	p.build()
	return p
}

// A file that fails is acknowledged to its end without being stored, and the others arrive.
func TestOtherFilesArriveAfterAFailure(t *testing.T) {
	for name, change := range map[string]func(p *pair){
		"write":          func(p *pair) { p.target.failAt = 1000 },
		"punch":          failFirstHole,
		"compared claim": func(p *pair) { p.resume = 6400; p.target.failAt = 1000 },
		"in order":       func(p *pair) { p.target.failAt = 1000; p.inOrder, p.lanes = true, [2]int{1, 1} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newTwoFiles(change)
			failures := 0
			p.incoming.Failed = func(err error) error {
				mustBe(t, err, errDisk)
				failures++
				return nil
			}
			sent, received := p.run(t.Context())
			must(t, errors.Join(sent, received, p.wire.violation))
			p.mustHave(t, p.files[1])
			if p.moved.Load() != 6400 || failures == 0 || p.stored == 6400 {
				t.Errorf("%d bytes acknowledged, %d stored, %d failures", p.moved.Load(), p.stored, failures)
			}
		})
	}
}

func failFirstHole(p *pair) { failPunch(p) }

// A file whose Failed returns an error, or that has none, ends the transfer.
func TestFailureThatIsNotTolerated(t *testing.T) {
	because := errors.New("it is all there is")
	p := newTwoFiles(func(p *pair) { p.target.failAt = 1000 })
	p.incoming.Failed = func(error) error { return because }
	sent, received := p.run(t.Context())
	mustBe(t, received, because)
	if sent == nil {
		t.Error("the sender did not fail")
	}
}

// newSilentReceiver returns a receiver of so many slots with one lane, nothing in its window, and its outbox.
func newSilentReceiver(slots int) (*Receiver, *Batch[Reply]) {
	window, private := make([]byte, slots*64), make([]byte, slots*64)
	replies := NewBatch[Reply](slots, 1)
	return NewReceiver(ReceiverConfig{
		Depth: slots, Buffers: []Slots{NewSlots(private, 64)}, InOrder: true,
		Engines: []Engine{NewCopier(window, private, slots, digest.CRC32C)}, Digest: digest.CRC32C, Stages: &Stages{},
		Retransmit: func(*Unit) {}, Outbox: replies,
	}), replies
}

// zeroChunk returns the record of a chunk of zeros.
func zeroChunk(slot int) native.Record {
	return native.Record{
		Kind: native.DataRecord, Slot: uint16(slot), Offset: uint64(slot) * 64, Length: 64,
		Check: digest.Check(digest.CRC32C, make([]byte, 64)),
	}
}

// Chunks of a file that is ignored, or is not known any more, are acknowledged at once and not stored.
func TestIgnoredFilesAreAcknowledged(t *testing.T) {
	ignored := NewIncoming(newMemory(make([]byte, 640)), digest.CRC32C, 8)
	unused := 0
	if ignored.Ignore(func() { unused++ }); unused != 1 {
		t.Errorf("a target that no lane uses was released %d times", unused)
	}
	for name, in := range map[string]*Incoming{"ignored": ignored, "unknown": nil} {
		r, replies := newSilentReceiver(4)
		for slot := range 3 {
			r.Take(zeroChunk(slot+1), in) // the first one never comes
		}
		r.End()
		must(t, r.Run(t.Context()))
		if got := len(replies.Take()); got != 3 {
			t.Errorf("%s: %d acknowledgements, want 3", name, got)
		}
	}
	if ignored.Prefix() != 0 || ignored.Target.(*memory).written != 0 {
		t.Errorf("%d bytes of an ignored file were written", ignored.Target.(*memory).written)
	}
}

// stuckTarget is a Target whose first use ends with release. The others fail.
type stuckTarget struct {
	used    atomic.Int64
	release chan struct{}
}

func (s *stuckTarget) use() error {
	if s.used.Add(1) > 1 {
		return errDisk
	}
	<-s.release
	return nil
}

func (s *stuckTarget) WriteAt([]byte, int64) error { return s.use() }
func (s *stuckTarget) ReadAt([]byte, int64) error  { return s.use() }
func (s *stuckTarget) Punch(_, _ int64) error      { return s.use() }

// A target that has failed on one lane is not released before the other lane has ended its call.
func TestTargetIsReleasedAfterItsLastUse(t *testing.T) {
	for _, kind := range []native.Kind{native.DataRecord, native.HoleRecord, native.ClaimRecord} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { releaseStuckTarget(t, kind) })
		})
	}
}

func releaseStuckTarget(t *testing.T, kind native.Kind) {
	r, replies := newLanesReceiver(2)
	target := &stuckTarget{release: make(chan struct{})}
	in := NewIncoming(target, digest.CRC32C, 2)
	released := 0
	in.Moved = func(Chunk, int64) error { return nil }
	in.Failed = func(error) error {
		in.Ignore(func() { released++ })
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context()) }()
	for slot := range 2 {
		record := zeroChunk(slot)
		if record.Kind = kind; kind == native.HoleRecord {
			record.Check = 0
		}
		r.Take(record, in)
		synctest.Wait()
	}
	if released != 0 || target.used.Load() != 2 {
		t.Errorf("released %d times during a call, after %d", released, target.used.Load())
	}
	close(target.release)
	r.End()
	must(t, <-ended)
	if got := len(replies.Take()); released != 1 || got != 2 {
		t.Errorf("released %d times, %d acknowledgements", released, got)
	}
}

// newLanesReceiver returns a receiver with so many lanes and slots, nothing in its window, and its outbox.
func newLanesReceiver(lanes int) (*Receiver, *Batch[Reply]) {
	window, replies := make([]byte, lanes*64), NewBatch[Reply](lanes, 1)
	c := ReceiverConfig{
		Depth: lanes, Digest: digest.CRC32C, Stages: &Stages{}, Retransmit: func(*Unit) {}, Outbox: replies,
	}
	for range lanes {
		private := make([]byte, 64)
		c.Buffers = append(c.Buffers, NewSlots(private, 64))
		c.Engines = append(c.Engines, NewCopier(window, private, 1, digest.CRC32C))
	}
	return NewReceiver(c), replies
}

// Of a hole the rest is not stored when its file is ignored.
func TestIgnoredHoleEnds(t *testing.T) {
	r, replies := newSilentReceiver(2)
	in := NewIncoming(discardTarget{}, digest.CRC32C, 2)
	steps, released := 0, 0
	in.Moved = func(Chunk, int64) error {
		if steps++; steps == 2 {
			in.Ignore(func() { released++ })
		}
		if released != 0 {
			t.Error("released during a use")
		}
		return nil
	}
	r.Take(native.Record{Kind: native.HoleRecord, Length: 5 * holeStep}, in)
	r.End()
	must(t, r.Run(t.Context()))
	if got := len(replies.Take()); steps != 2 || released != 1 || got != 1 {
		t.Errorf("%d steps, released %d times, %d acknowledgements", steps, released, got)
	}
}

// Chunks that wait for an earlier one of their file are acknowledged when the file is ignored, although nothing else
// arrives: the sender may wait for their slots.
func TestIgnoredFileReleasesWaitingChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, replies := newSilentReceiver(4)
		in := NewIncoming(newMemory(make([]byte, 640)), digest.CRC32C, 8)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		for slot := range 3 {
			r.Take(zeroChunk(slot+1), in)
		}
		synctest.Wait()
		if got := len(replies.Take()); got != 0 {
			t.Errorf("%d chunks that wait for an earlier one are acknowledged", got)
		}
		in.Ignore(func() {})
		synctest.Wait()
		if got := len(replies.Take()); got != 3 {
			t.Errorf("%d acknowledgements, want 3", got)
		}
		stop()
		<-ended
	})
}

// A hole is one chunk for the peer, in however many steps it is stored.
func TestHoleInSeveralStepsIsAcknowledgedOnce(t *testing.T) {
	r, replies := newSilentReceiver(2)
	in := NewIncoming(discardTarget{}, digest.CRC32C, 2)
	var steps []int64
	in.Moved = func(chunk Chunk, prefix int64) error {
		if chunk.Offset+chunk.Length != prefix {
			t.Errorf("%+v with a prefix of %d bytes", chunk, prefix)
		}
		if early := len(replies.Take()); early != 0 && prefix != 2*holeStep+5 {
			t.Errorf("acknowledged after %d bytes", prefix)
		} else if prefix == 2*holeStep+5 && early != 1 {
			t.Errorf("%d acknowledgements at the end", early)
		}
		steps = append(steps, chunk.Length)
		return nil
	}
	r.Take(native.Record{Kind: native.HoleRecord, Length: 2*holeStep + 5}, in)
	r.End()
	must(t, r.Run(t.Context()))
	if len(steps) != 3 || steps[2] != 5 || in.Prefix() != 2*holeStep+5 {
		t.Errorf("steps %v, prefix %d", steps, in.Prefix())
	}
}
