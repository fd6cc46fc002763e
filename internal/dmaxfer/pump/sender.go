package pump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// Feed supplies what a sender sends. Its methods are called by all lanes concurrently, Next and Checked in turns by the
// same lane.
type Feed interface {
	// Next fills buffer with a chunk, or with whole files, and describes it in unit, which is empty. It returns
	// ErrLater if there is nothing to send before the next call of Sender.Wake, and io.EOF if nothing follows. ctx is
	// the lane's, also of Checked.
	Next(ctx context.Context, buffer []byte, unit *Unit) error

	// Checked is called when the checksums of the unit have been computed and before it is announced. content is what
	// Next has put into the buffer.
	Checked(ctx context.Context, unit *Unit, content []byte) error

	// Delivered is called when the receiver has acknowledged the unit.
	Delivered(unit *Unit)

	// Refused is called when the receiver does not have what a claim says, so that its bytes are about to be sent.
	Refused(claim *Unit)

	// Retransmitting is called when a unit is about to be sent again after a checksum mismatch.
	Retransmitting(unit *Unit)
}

// ErrLater is returned by a Feed that has nothing to send yet.
var ErrLater = errors.New("nothing to send yet")

// SenderConfig configures a Sender. The caller keeps ownership of everything in it.
type SenderConfig struct {
	Feed   Feed
	Digest digest.Algorithm
	Stages *Stages

	// Slots is the window itself on a host, otherwise buffers of this side, one for each slot of the window.
	Slots Slots

	// Engines copy from Slots to the window. There is one for each lane, or none on a host.
	Engines []Engine

	// Lanes is the number of lanes, from 1 to the number of slots. It is 1 if the digest is ordered or the source a
	// stream.
	Lanes int

	// Pace waits until the bandwidth limit allows so many more bytes. It may be nil.
	Pace func(ctx context.Context, bytes int64) error

	// Poller is nil if another goroutine carries the messages.
	Poller Poller

	// Pinning pins the lanes to CPUs. If nil, the lanes are not pinned.
	Pinning Pinning

	// Log has a line at level TRACE for each unit with content that is sent.
	Log zerolog.Logger

	// Outbox takes the announcements. The Feed may add the ends of files to it.
	Outbox *Batch[Announcement]
}

// Sender sends what its Feed supplies, slot by slot.
type Sender struct {
	config SenderConfig
	lanes  []*senderLane
}

// Announcement is what a sender's lanes have for the peer: the unit in a slot, or the end of a file.
type Announcement struct {
	Unit *Unit // valid until its slot is acknowledged; nil: End is set
	End  *End
}

// End is the end of a file that was sent in chunks.
type End struct {
	Entry uint32
	Size  int64 // bytes
	Sum   digest.Sum
}

// NewSender returns a Sender. Run starts it.
func NewSender(c SenderConfig) *Sender {
	s := &Sender{config: c}
	for i := range c.Lanes {
		s.lanes = append(s.lanes, newSenderLane(s, i))
	}
	return s
}

// Acknowledge processes the receiver's acknowledgements of announced slots. It never blocks, because a slot is
// acknowledged once for each time it was announced.
func (s *Sender) Acknowledge(acks []native.Ack) {
	for _, ack := range acks {
		s.lanes[int(ack.Slot)%len(s.lanes)].inbox <- laneInput{ack: ack}
	}
}

// Wake lets all lanes ask the Feed again. It never blocks, and may be called at any time.
func (s *Sender) Wake() {
	for _, l := range s.lanes {
		if l.woken.CompareAndSwap(false, true) {
			l.inbox <- laneInput{wake: true} // which has capacity for all acknowledgements and one of these
		}
	}
}

// Run sends everything. When it returns all lanes have ended. After an error, moves may still be in flight until the
// engines are closed.
func (s *Sender) Run(ctx context.Context) error {
	return runLanes(ctx, s.lanes, s.config.Pinning)
}

// laneInput is an acknowledgement for a lane, or has it ask the Feed again.
type laneInput struct {
	ack  native.Ack
	wake bool
}

// senderLane sends units through the slots whose number modulo the number of lanes is its own.
type senderLane struct {
	sender *Sender
	peer   messenger
	copies copyQueue // no engine on a host
	inbox  chan laneInput
	woken  atomic.Bool // there is a call to ask the feed again in inbox
	vacant []int       // slots; the last one became vacant last and is most likely in the cache
	owned  int         // number of this lane's slots
	ended  bool        // the feed has returned io.EOF
	units  []Unit      // by slot
}

func newSenderLane(s *Sender, number int) *senderLane {
	slots := s.config.Slots.Count()
	l := &senderLane{
		sender: s,
		peer:   newMessenger(s.config.Poller, s.config.Stages, s.config.Outbox, s.config.Pinning, number),
		units:  make([]Unit, slots),
	}
	for slot := number; slot < slots; slot += s.config.Lanes {
		l.vacant = append(l.vacant, slot)
	}
	l.owned = len(l.vacant)
	l.inbox = make(chan laneInput, l.owned+1)
	if s.config.Engines != nil {
		l.copies = newCopyQueue(s.config.Engines[number], s.config.Stages, l.owned, l.owned)
	}
	return l
}

// run alternates between filling a slot and handling the progress of others. It waits only if it can do neither.
func (l *senderLane) run(ctx context.Context) error {
	l.peer.start()
	defer l.peer.stop()
	for {
		read, err := l.readNext(ctx)
		if err == nil {
			err = l.copies.submit()
		}
		if err != nil {
			return err
		}
		if l.ended && len(l.vacant) == l.owned {
			return nil
		}
		if err := l.progress(ctx, !read); err != nil {
			return err
		}
		l.peer.poll()
	}
}

// readNext fills a vacant slot, if there is one and something to send.
func (l *senderLane) readNext(ctx context.Context) (bool, error) {
	if l.ended || len(l.vacant) == 0 {
		return false, nil
	}
	slot := l.vacant[len(l.vacant)-1]
	unit := &l.units[slot]
	unit.reset(slot)
	buffer := l.buffer(slot)
	watch := l.sender.config.Stages.start()
	err := l.sender.config.Feed.Next(ctx, buffer, unit)
	watch.charge(Reading)
	switch {
	case err == io.EOF:
		l.ended = true
		return false, nil
	case err == ErrLater:
		return false, nil
	case err != nil:
		return false, err
	}
	l.vacant = l.vacant[:len(l.vacant)-1]
	content := buffer[:unit.Used()]
	unit.check(l.sender.config.Digest, content)
	err = l.sender.config.Feed.Checked(ctx, unit, content)
	watch.charge(Checking)
	if err == nil {
		err = l.send(ctx, slot)
	}
	return true, err
}

// buffer returns the bytes of a slot.
func (l *senderLane) buffer(slot int) []byte {
	return l.sender.config.Slots.Bytes(slot, l.sender.config.Slots.size)
}

// send announces the unit in a slot, or first copies it to the window if it is elsewhere.
func (l *senderLane) send(ctx context.Context, slot int) error {
	unit := &l.units[slot]
	used := unit.Used()
	if used == 0 || !unit.Packed() && unit.Record.Kind == native.ClaimRecord {
		l.sender.config.Outbox.Add(Announcement{Unit: unit})
		return nil
	}
	if err := l.peer.pace(ctx, l.sender.config.Pace, used); err != nil {
		return err
	}
	unit.trace(&l.sender.config.Log, "content sent")
	if l.copies.engine == nil {
		l.sender.config.Outbox.Add(Announcement{Unit: unit})
		return nil
	}
	offset := l.sender.config.Slots.offset(slot)
	l.copies.add(Move{Window: offset, Buffer: offset, Length: used, Tag: slot})
	return nil
}

// progress handles what has happened to chunks in flight. With wait it sleeps until something happens.
func (l *senderLane) progress(ctx context.Context, wait bool) error {
	acked, err := l.drainInbox(ctx)
	if err != nil {
		return err
	}
	copied := l.copies.poll()
	if err := l.announce(copied); err != nil {
		return err
	}
	if !wait || acked || len(copied) > 0 {
		return nil
	}
	if l.copies.inFlight() > 0 {
		copied, err := l.copies.reap(ctx)
		if err != nil {
			return err
		}
		return l.announce(copied)
	}
	return l.awaitAck(ctx)
}

func (l *senderLane) awaitAck(ctx context.Context) error {
	watch := l.sender.config.Stages.start()
	input, _, err := receive(ctx, &l.peer, l.inbox, nil)
	watch.charge(Peer)
	if err != nil {
		return err
	}
	return l.handle(ctx, input)
}

// handle processes an input. A call to ask the feed again is followed by doing so.
func (l *senderLane) handle(ctx context.Context, input laneInput) error {
	if input.wake {
		l.woken.Store(false)
		return nil
	}
	return l.handleAck(ctx, input.ack)
}

// announce adds the units that have reached the window to the outbox.
func (l *senderLane) announce(copied []Moved) error {
	for _, m := range copied {
		if m.Err != nil {
			return moveFailed(&l.units[m.Tag], m.Err)
		}
		l.sender.config.Outbox.Add(Announcement{Unit: &l.units[m.Tag]})
	}
	return nil
}

// drainInbox handles what has arrived.
func (l *senderLane) drainInbox(ctx context.Context) (handled bool, err error) {
	for {
		select {
		case input := <-l.inbox:
			handled = true
			if err := l.handle(ctx, input); err != nil {
				return true, err
			}
		default:
			return handled, nil
		}
	}
}

// handleAck frees the slot, or sends its unit again.
func (l *senderLane) handleAck(ctx context.Context, ack native.Ack) error {
	slot := int(ack.Slot)
	unit := &l.units[slot]
	if !ack.Bad {
		l.vacant = append(l.vacant, slot)
		l.sender.config.Feed.Delivered(unit)
		return nil
	}
	if unit.Record.Kind == native.ClaimRecord {
		l.sender.config.Feed.Refused(unit)
		unit.Record.Kind = native.DataRecord
		unit.check(l.sender.config.Digest, l.buffer(slot)[:unit.Used()])
		return l.send(ctx, slot)
	}
	if unit.attempted() == maxAttempts {
		return fmt.Errorf("%s: %w", unit, ErrCorrupted)
	}
	l.sender.config.Feed.Retransmitting(unit)
	return l.send(ctx, slot)
}
