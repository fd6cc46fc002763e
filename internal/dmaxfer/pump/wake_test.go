package pump

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// queueFeed is a Feed of chunks that are added while the lanes run.
type queueFeed struct {
	mu        sync.Mutex
	chunks    int // that wait to be sent
	finished  bool
	asked     int // calls of Next
	delivered int
}

// add adds chunks. The caller wakes the lanes.
func (q *queueFeed) add(chunks int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chunks += chunks
}

func (q *queueFeed) finish() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finished = true
}

// counts returns how often the lanes have asked, and how many chunks were delivered.
func (q *queueFeed) counts() (asked, delivered int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked, q.delivered
}

func (q *queueFeed) Next(_ context.Context, _ []byte, unit *Unit) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked++
	switch {
	case q.chunks > 0:
		q.chunks--
		unit.SetChunk(0, Chunk{Kind: native.DataRecord, Length: 8})
		return nil
	case q.finished:
		return io.EOF
	}
	return ErrLater
}

func (q *queueFeed) Delivered(*Unit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delivered++
}

func (*queueFeed) Checked(context.Context, *Unit, []byte) error { return nil }
func (*queueFeed) Retransmitting(*Unit)                         {}
func (*queueFeed) Refused(*Unit)                                {}

// newQueueSender returns a sender of a queueFeed, whose slots are the window, and its outbox.
func newQueueSender(lanes, slots int) (*Sender, *queueFeed, *Batch[Announcement]) {
	feed, announced := &queueFeed{}, NewBatch[Announcement](2*slots, 1)
	return NewSender(SenderConfig{
		Feed: feed, Digest: digest.CRC32C, Stages: &Stages{}, Slots: NewSlots(make([]byte, 8*slots), 8),
		Lanes: lanes, Outbox: announced,
	}), feed, announced
}

// acknowledgeAll acknowledges what has been announced, and returns how many units that were.
func acknowledgeAll(s *Sender, announced *Batch[Announcement]) int {
	units := announced.Take()
	acks := make([]native.Ack, 0, len(units))
	for _, a := range units {
		acks = append(acks, native.Ack{Slot: uint32(a.Unit.Record.Slot)})
	}
	s.Acknowledge(acks)
	return len(units)
}

// A feed that has nothing to send yet is asked again by each lane after Wake, and not before.
func TestFeedIsAskedAgainAfterWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes = 3
		s, feed, announced := newQueueSender(lanes, 6)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(t.Context()) }()
		synctest.Wait()
		if asked, _ := feed.counts(); asked != lanes {
			t.Errorf("an empty feed was asked %d times by %d lanes", asked, lanes)
		}
		feed.add(1)
		synctest.Wait()
		if got := len(announced.Take()); got != 0 {
			t.Errorf("%d units without a call of Wake", got)
		}
		s.Wake()
		synctest.Wait()
		if got := acknowledgeAll(s, announced); got != 1 {
			t.Errorf("%d units, want 1", got)
		}
		feed.finish()
		s.Wake()
		must(t, <-ended)
		if asked, delivered := feed.counts(); delivered != 1 || asked > 5*lanes {
			t.Errorf("%d of 1 units were delivered; the feed was asked %d times", delivered, asked)
		}
	})
}

// Wake may be called at any time and any number of times: before the lanes run, while all slots are announced and not
// acknowledged, and after the end. Neither it nor Acknowledge ever blocks, which this test in virtual time would report
// as a deadlock.
func TestWakeNeverBlocks(t *testing.T) {
	for _, lanes := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			const slots = 5
			s, feed, announced := newQueueSender(lanes, slots)
			wakeOften(s)
			ended := make(chan error, 1)
			feed.add(2 * slots)
			go func() { ended <- s.Run(t.Context()) }()
			synctest.Wait()
			wakeOften(s)
			if got := acknowledgeAll(s, announced); got != slots {
				t.Errorf("%d units are announced, want %d", got, slots)
			}
			wakeOften(s)
			synctest.Wait()
			if got := acknowledgeAll(s, announced); got != slots {
				t.Errorf("%d more units are announced, want %d", got, slots)
			}
			feed.finish()
			wakeOften(s)
			must(t, <-ended)
			wakeOften(s)
		})
	}
}

func wakeOften(s *Sender) {
	for range 100 {
		s.Wake()
	}
}

// An inbox has room for the acknowledgements of all slots of its lane, and for one call of Wake.
func TestInboxHoldsAllAcknowledgementsAndOneWake(t *testing.T) {
	const lanes, slots = 2, 5
	s, _, _ := newQueueSender(lanes, slots)
	wakeOften(s)
	for slot := range uint32(slots) {
		s.Acknowledge([]native.Ack{{Slot: slot}})
	}
	wakeOften(s)
	for i, l := range s.lanes {
		if len(l.inbox) != l.owned+1 {
			t.Errorf("lane %d: %d inputs, want those of %d slots and one more", i, len(l.inbox), l.owned)
		}
	}
}

// No call of Wake is lost, regardless of what the lanes are doing: each chunk that was added before it is sent. A lost
// one would leave the lanes asleep.
func TestNoWakeIsLost(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		const chunks = 3000
		s, feed, announced := newQueueSender(lanes, 3)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(t.Context()) }()
		var adding sync.WaitGroup
		for range 2 {
			adding.Go(func() {
				for range chunks / 2 {
					feed.add(1)
					s.Wake()
				}
			})
		}
		for delivered := 0; delivered < chunks; {
			<-announced.Waiting()
			delivered += acknowledgeAll(s, announced)
		}
		adding.Wait()
		feed.finish()
		s.Wake()
		must(t, <-ended)
		if _, delivered := feed.counts(); delivered != chunks {
			t.Errorf("%d of %d chunks were delivered", delivered, chunks)
		}
	}
}

// A chunk that was delivered is not sent again, and one that was rejected is sent again without asking the feed.
func TestRejectedUnitIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, feed, announced := newQueueSender(1, 2)
		feed.add(1)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(t.Context()) }()
		synctest.Wait()
		slot := uint32(announced.Take()[0].Unit.Record.Slot)
		s.Acknowledge([]native.Ack{{Slot: slot, Bad: true}})
		synctest.Wait()
		again := announced.Take()
		if len(again) != 1 || uint32(again[0].Unit.Record.Slot) != slot || again[0].Unit.Record.Attempt != 1 {
			t.Fatalf("%+v after a rejection", again)
		}
		if _, delivered := feed.counts(); delivered != 0 {
			t.Error("a rejected chunk is counted as delivered")
		}
		feed.finish()
		s.Acknowledge([]native.Ack{{Slot: slot}})
		must(t, <-ended)
	})
}
