package pump

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// SenderConfig configures a Sender. The caller keeps ownership of everything in it.
type SenderConfig struct {
	Reader Reader
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

	// Batch is the number of chunks, at least 1, that are announced together while there are more to send.
	Batch int

	// Moved is called for each chunk that the receiver has.
	Moved func(chunk Chunk)

	// Retransmit is called for each chunk that is sent again.
	Retransmit func(chunk Chunk)
}

// Sender reads a file and sends it chunk by chunk.
type Sender struct {
	config SenderConfig
	lanes  []*senderLane
	outbox *Batch[negotiate.Record]

	mu     sync.Mutex
	ledger *digest.Ledger
}

// NewSender returns a Sender. Run starts it.
func NewSender(c SenderConfig) *Sender {
	slots := c.Slots.Count()
	s := &Sender{
		config: c,
		outbox: NewBatch[negotiate.Record](slots, c.Batch),
		ledger: digest.NewLedger(c.Digest, slots),
	}
	for i := range c.Lanes {
		s.lanes = append(s.lanes, newSenderLane(s, i))
	}
	return s
}

// Outbox returns the records for the peer.
func (s *Sender) Outbox() *Batch[negotiate.Record] { return s.outbox }

// Acknowledge processes the receiver's acknowledgements of announced slots. It never blocks, because a slot is
// acknowledged once for each time it was announced.
func (s *Sender) Acknowledge(acks []negotiate.Ack) {
	for _, ack := range acks {
		s.lanes[int(ack.Slot)%len(s.lanes)].inbox <- ack
	}
}

// Run sends everything. When it returns all lanes have ended. After an error, moves may still be in flight until the
// engines are closed.
func (s *Sender) Run(ctx context.Context) error {
	return runLanes(ctx, s.lanes, s.config.Pinning)
}

// Sum returns length and digest of what was read, after Run.
func (s *Sender) Sum() (int64, digest.Sum) { return s.ledger.Prefix(), s.ledger.Sum() }

// senderLane sends chunks through the slots whose number modulo the number of lanes is its own.
type senderLane struct {
	sender *Sender
	peer   messenger
	copies copyQueue // no engine on a host
	inbox  chan negotiate.Ack
	vacant []int              // slots; the last one became vacant last and is most likely in the cache
	owned  int                // number of this lane's slots
	ended  bool               // the reader has returned io.EOF
	sent   []negotiate.Record // by slot: the record of its chunk
}

func newSenderLane(s *Sender, number int) *senderLane {
	slots := s.config.Slots.Count()
	l := &senderLane{
		sender: s,
		peer:   newMessenger(s.config.Poller, s.config.Stages, s.outbox, s.config.Pinning, number),
		sent:   make([]negotiate.Record, slots),
	}
	for slot := number; slot < slots; slot += s.config.Lanes {
		l.vacant = append(l.vacant, slot)
	}
	l.owned = len(l.vacant)
	l.inbox = make(chan negotiate.Ack, l.owned)
	if s.config.Engines != nil {
		l.copies = newCopyQueue(s.config.Engines[number], s.config.Stages, l.owned, l.owned)
	}
	return l
}

// run alternates between reading a chunk and handling the progress of others. It waits only if it can do neither.
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

// readNext fills a vacant slot, if there is one and the file has not ended.
func (l *senderLane) readNext(ctx context.Context) (bool, error) {
	if l.ended || len(l.vacant) == 0 {
		return false, nil
	}
	slot := l.vacant[len(l.vacant)-1]
	watch := l.sender.config.Stages.start()
	chunk, err := l.sender.config.Reader.Next(l.sender.config.Slots.bytes(slot, l.sender.config.Slots.size))
	watch.charge(Reading)
	if err == io.EOF {
		l.ended = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.vacant = l.vacant[:len(l.vacant)-1]
	l.sent[slot], err = l.makeRecord(slot, chunk)
	watch.charge(Checking)
	if err == nil {
		err = l.send(ctx, slot)
	}
	return true, err
}

// makeRecord returns the chunk's record with its checksum and adds the chunk to the ledger.
func (l *senderLane) makeRecord(slot int, chunk Chunk) (negotiate.Record, error) {
	record := negotiate.Record{
		Kind: chunk.Kind, Slot: uint32(slot), Offset: uint64(chunk.Offset), Length: uint64(chunk.Length),
	}
	if chunk.Kind == negotiate.HoleRecord {
		return record, l.sender.addToLedger(chunk, nil, 0)
	}
	bytes := l.sender.config.Slots.bytes(slot, chunk.Length)
	record.Check = digest.Check(l.sender.config.Digest, bytes)
	return record, l.sender.addToLedger(chunk, bytes, record.Check)
}

func (s *Sender) addToLedger(chunk Chunk, bytes []byte, check uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return addToLedger(s.ledger, s.config.Digest, chunk, bytes, check)
}

// send announces the chunk in a slot, or first copies it to the window if it is elsewhere.
func (l *senderLane) send(ctx context.Context, slot int) error {
	record := &l.sent[slot]
	if record.Kind != negotiate.DataRecord {
		l.sender.outbox.Add(*record)
		return nil
	}
	if err := l.peer.pace(ctx, l.sender.config.Pace, record); err != nil {
		return err
	}
	if l.copies.engine == nil {
		l.sender.outbox.Add(*record)
		return nil
	}
	offset := l.sender.config.Slots.offset(slot)
	l.copies.add(Move{Window: offset, Buffer: offset, Length: int64(record.Length), Tag: slot})
	return nil
}

// progress handles what has happened to chunks in flight. With wait it sleeps until something happens.
func (l *senderLane) progress(ctx context.Context, wait bool) error {
	acked, err := l.drainAcks(ctx)
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
	ack, _, err := receive(ctx, &l.peer, l.inbox)
	watch.charge(Peer)
	if err != nil {
		return err
	}
	return l.handleAck(ctx, ack)
}

// announce adds the records of chunks that have reached the window to the outbox.
func (l *senderLane) announce(copied []Moved) error {
	for _, m := range copied {
		if m.Err != nil {
			return moveFailed(&l.sent[m.Tag], m.Err)
		}
		l.sender.outbox.Add(l.sent[m.Tag])
	}
	return nil
}

func (l *senderLane) drainAcks(ctx context.Context) (handled bool, err error) {
	for {
		select {
		case ack := <-l.inbox:
			if err := l.handleAck(ctx, ack); err != nil {
				return true, err
			}
			handled = true
		default:
			return handled, nil
		}
	}
}

// handleAck frees the slot, or sends its chunk again.
func (l *senderLane) handleAck(ctx context.Context, ack negotiate.Ack) error {
	slot := int(ack.Slot)
	record := &l.sent[slot]
	chunk := chunkOf(record)
	if !ack.Bad {
		l.vacant = append(l.vacant, slot)
		l.sender.config.Moved(chunk)
		return nil
	}
	if record.Kind == negotiate.ClaimRecord {
		record.Kind = negotiate.DataRecord // the receiver does not have it after all
		return l.send(ctx, slot)
	}
	if record.Attempt++; record.Attempt == maxAttempts {
		return fmt.Errorf("%d bytes at %d: %w", record.Length, record.Offset, ErrCorrupted)
	}
	l.sender.config.Retransmit(chunk)
	return l.send(ctx, slot)
}
