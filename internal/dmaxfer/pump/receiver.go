package pump

import (
	"context"
	"fmt"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Target is what a receiver fills.
type Target interface {
	// WriteAt writes all of chunk. Several lanes may call it at once, for different offsets.
	WriteAt(chunk []byte, offset int64) error

	// ReadAt fills chunk with what the target already holds.
	ReadAt(chunk []byte, offset int64) error

	// Punch makes a hole, or zeros where there are no holes.
	Punch(offset, length int64) error
}

// ReceiverConfig is what a Receiver needs. All of it stays the caller's.
type ReceiverConfig struct {
	Target       Target
	Window       int      // slots of the window
	Buffers      []Slots  // memory of this side's own, for each lane; all of the window's slots in it if InOrder
	Engines      []Engine // from the window to the buffers, one for each lane
	InOrder      bool     // chunks must be taken in the order of their offsets: for an ordered digest, or a stream; one lane then
	Digest       digest.Algorithm
	Stages       *Stages
	Pace         func(ctx context.Context, bytes int64) error // waits until so much more may be received; nil: never
	Poller       Poller                                       // nil: messages come and go by themselves
	CPUs         []int                                        // that the lanes are bound to, by turns; nil: any
	SerialWrites bool                                         // while one lane writes to the target another one would only wait
	Batch        int                                          // chunks that the peer hears of at once, as long as there are more; at least 1
	Moved        func(chunk Chunk, prefix int64) error        // called for each chunk that the target has, and each step of a hole, with how far it is complete
	Retransmit   func(chunk Chunk)                            // called for each chunk that has to come once more
}

// Receiver fills a file with the chunks that the sender announces.
type Receiver struct {
	config ReceiverConfig
	lanes  []*receiverLane
	outbox *Batch[negotiate.Ack]

	writing sync.Mutex // by lanes that are bound, and would spin in the file's own lock

	mu       sync.Mutex
	ledger   *digest.Ledger
	rejected int // chunks since the last good one
}

// NewReceiver returns a Receiver that has not begun.
func NewReceiver(c ReceiverConfig) *Receiver {
	r := &Receiver{
		config: c,
		outbox: NewBatch[negotiate.Ack](c.Window, c.Batch),
		ledger: digest.NewLedger(c.Digest, c.Window),
	}
	for i := range c.Engines {
		r.lanes = append(r.lanes, newReceiverLane(r, i))
	}
	return r
}

// Outbox is what the peer is to be told.
func (r *Receiver) Outbox() *Batch[negotiate.Ack] { return r.outbox }

// Take takes announced records. It never waits, since none is announced for a slot that has not been acknowledged.
func (r *Receiver) Take(records []negotiate.Record) {
	for _, record := range records {
		r.lanes[int(record.Slot)%len(r.lanes)].inbox <- record
	}
}

// End says that no record follows. Call it once.
func (r *Receiver) End() {
	for _, l := range r.lanes {
		close(l.inbox)
	}
}

// Run receives until End was called and everything is in the target. When it returns no lane is at work; after an error, moves
// may be, until the engines are closed.
func (r *Receiver) Run(ctx context.Context) error {
	return runLanes(ctx, r.lanes, len(r.config.CPUs) > 0)
}

// Sum is what the target has from its beginning on without a gap, after Run: its length and digest.
func (r *Receiver) Sum() (int64, digest.Sum) { return r.ledger.Prefix(), r.ledger.Sum() }

// receiverLane takes the records of the slots whose number is its own modulo the number of lanes.
type receiverLane struct {
	receiver   *Receiver
	peer       messenger
	copies     copyQueue // into buffers
	buffers    Slots
	inbox      chan negotiate.Record
	open       bool               // inbox may still deliver
	depth      int                // copies that are pending at once
	vacant     []int              // buffers
	held       []negotiate.Record // by buffer
	outOfOrder []int              // buffers whose chunk is good and waits for its turn; InOrder only
}

func newReceiverLane(r *Receiver, number int) *receiverLane {
	buffers := r.config.Buffers[number]
	count := buffers.Count()
	l := &receiverLane{
		receiver:   r,
		peer:       newMessenger(r.config.Poller, r.config.Stages, r.outbox, r.config.CPUs, number),
		copies:     newCopyQueue(r.config.Engines[number], r.config.Stages, count, 1),
		buffers:    buffers,
		inbox:      make(chan negotiate.Record, r.config.Window),
		open:       true,
		depth:      1,
		held:       make([]negotiate.Record, count),
		outOfOrder: make([]int, 0, count),
	}
	for buffer := range count {
		l.vacant = append(l.vacant, buffer)
	}
	return l
}

func (l *receiverLane) run(ctx context.Context) error {
	l.peer.start()
	defer l.peer.stop()
	for {
		took, err := l.drainRecords(ctx)
		if err == nil {
			err = l.copies.submit()
		}
		if err != nil {
			return err
		}
		if !l.open && len(l.vacant) == len(l.held) {
			return nil
		}
		if err := l.progress(ctx, !took); err != nil {
			return err
		}
		l.peer.poll()
	}
}

// takeRecords gives vacant buffers the records that are there, as many as there are to be in hand. Where each has to wait for its time
// it takes one, so that those whose time has come do not wait for the others'.
func (l *receiverLane) drainRecords(ctx context.Context) (took bool, err error) {
	oneByOne := l.receiver.config.Pace != nil
	for l.open && len(l.vacant) > 0 {
		waiting := len(l.copies.waiting)
		if waiting+l.copies.inFlight() >= l.depth || oneByOne && waiting > 0 {
			return took, nil
		}
		select {
		case record, open := <-l.inbox:
			if err := l.startRecord(ctx, record, open); err != nil {
				return took, err
			}
			took = true
		default:
			return took, nil
		}
	}
	return took, nil
}

// deepen has more moves in hand from now on, if there are records for them. So an engine that takes its time gets as many as it needs
// to be busy, and one that is done at once fills the same buffer again and again, which stays in the cache.
func (l *receiverLane) raiseDepth() bool {
	if l.depth == len(l.held) || len(l.inbox) == 0 {
		return false
	}
	l.depth = min(2*l.depth, len(l.held))
	return true
}

// begin takes one record in hand.
func (l *receiverLane) startRecord(ctx context.Context, record negotiate.Record, open bool) error {
	if l.open = open; !open {
		return nil
	}
	buffer := l.vacant[len(l.vacant)-1]
	l.vacant = l.vacant[:len(l.vacant)-1]
	l.held[buffer] = record
	switch record.Kind {
	case negotiate.HoleRecord:
		return l.accept(ctx, buffer)
	case negotiate.ClaimRecord:
		return l.compare(ctx, buffer)
	}
	if err := l.peer.pace(ctx, l.receiver.config.Pace, &l.held[buffer]); err != nil {
		return err
	}
	l.copies.add(Move{
		Window: int64(record.Slot) * l.buffers.size, Buffer: l.buffers.offset(buffer), Length: int64(record.Length), Tag: buffer,
	})
	return nil
}

// progress handles a chunk that has arrived in its buffer, while it is in the cache. With wait it sleeps until one
// arrives or the sender announces more.
func (l *receiverLane) progress(ctx context.Context, wait bool) error {
	watch := l.receiver.config.Stages.start()
	copied := l.copies.poll()
	watch.charge(Copying)
	if len(copied) > 0 || !wait {
		return l.handleMoved(ctx, copied)
	}
	if l.copies.inFlight() == 0 {
		return l.awaitRecord(ctx)
	}
	if l.raiseDepth() {
		return nil
	}
	copied, err := l.copies.reap(ctx)
	if err != nil {
		return err
	}
	return l.handleMoved(ctx, copied)
}

func (l *receiverLane) awaitRecord(ctx context.Context) error {
	watch := l.receiver.config.Stages.start()
	record, open, err := receive(ctx, &l.peer, l.inbox)
	watch.charge(Peer)
	if err != nil {
		return err
	}
	return l.startRecord(ctx, record, open)
}

func (l *receiverLane) handleMoved(ctx context.Context, copied []Moved) error {
	for _, m := range copied {
		if m.Err != nil {
			return moveFailed(&l.held[m.Tag], m.Err)
		}
		if err := l.checkChunk(ctx, m.Tag, l.checksumOf(m)); err != nil {
			return err
		}
	}
	return nil
}

// checkOf is that of a chunk in its buffer.
func (l *receiverLane) checksumOf(m Moved) uint64 {
	if m.Checked {
		return m.Check
	}
	watch := l.receiver.config.Stages.start()
	defer watch.charge(Checking)
	return digest.Check(l.receiver.config.Digest, l.buffers.bytes(m.Tag, int64(l.held[m.Tag].Length)))
}

// compare looks whether the target already has what the sender claims.
func (l *receiverLane) compare(ctx context.Context, buffer int) error {
	record := &l.held[buffer]
	watch := l.receiver.config.Stages.start()
	err := l.receiver.config.Target.ReadAt(l.buffers.bytes(buffer, int64(record.Length)), int64(record.Offset))
	watch.charge(Writing)
	if err != nil {
		return err
	}
	return l.checkChunk(ctx, buffer, l.checksumOf(Moved{Tag: buffer}))
}

// judge compares the check of what is in a buffer with that of what the sender has read.
func (l *receiverLane) checkChunk(ctx context.Context, buffer int, check uint64) error {
	if check == l.held[buffer].Check {
		return l.accept(ctx, buffer)
	}
	return l.reject(buffer)
}

// reject has the chunk sent again, unless that has been tried often enough.
func (l *receiverLane) reject(buffer int) error {
	record := &l.held[buffer]
	if record.Kind == negotiate.DataRecord {
		if record.Attempt+1 == maxAttempts || l.receiver.tooManyRejected() {
			return fmt.Errorf("%d bytes at %d: %w", record.Length, record.Offset, ErrCorrupted)
		}
		l.receiver.config.Retransmit(chunkOf(record))
	}
	l.acknowledge(buffer, true)
	return nil
}

// rejectsOnly bounds how many chunks in a row may be wrong, whatever the sender says of how often it has sent them: each slot's
// as often as a chunk may be sent.
func (r *Receiver) tooManyRejected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejected++
	return r.rejected >= maxAttempts*r.config.Window
}

// accept puts a good chunk into the target, now or when it is its turn.
func (l *receiverLane) accept(ctx context.Context, buffer int) error {
	if !l.receiver.config.InOrder {
		return l.store(ctx, buffer)
	}
	l.outOfOrder = append(l.outOfOrder, buffer)
	for {
		buffer, due := l.takeNext()
		if !due {
			return nil
		}
		if err := l.store(ctx, buffer); err != nil {
			return err
		}
	}
}

// takeDue finds the chunk that follows what the target has. It has one lane, whose own the ledger then is.
func (l *receiverLane) takeNext() (buffer int, due bool) {
	next := uint64(l.receiver.ledger.Prefix())
	for i, buffer := range l.outOfOrder {
		if l.held[buffer].Offset == next {
			last := len(l.outOfOrder) - 1
			l.outOfOrder[i] = l.outOfOrder[last]
			l.outOfOrder = l.outOfOrder[:last]
			return buffer, true
		}
	}
	return 0, false
}

func (l *receiverLane) store(ctx context.Context, buffer int) error {
	record := &l.held[buffer]
	var err error
	if record.Kind == negotiate.HoleRecord {
		err = l.storeHole(ctx, chunkOf(record))
	} else {
		err = l.storeChunk(buffer, record)
	}
	if err != nil {
		return err
	}
	l.acknowledge(buffer, false)
	return nil
}

func (l *receiverLane) storeChunk(buffer int, record *negotiate.Record) error {
	watch, chunk := l.receiver.config.Stages.start(), chunkOf(record)
	bytes := l.buffers.bytes(buffer, chunk.Length)
	if chunk.Kind == negotiate.DataRecord { // what was claimed is there
		if err := l.write(bytes, chunk.Offset); err != nil {
			return err
		}
	}
	watch.charge(Writing)
	defer watch.charge(Checking)
	return l.receiver.addToLedger(chunk, bytes, record.Check)
}

// write writes alone, if the lanes are bound and it does not take long: who waits for the file's own lock spins there, and would keep the
// processor from the peer's lane.
func (l *receiverLane) write(bytes []byte, offset int64) error {
	if l.peer.seat.bound && l.receiver.config.SerialWrites && l.peer.seat.lock(&l.receiver.writing) {
		defer l.receiver.writing.Unlock()
	}
	return l.receiver.config.Target.WriteAt(bytes, offset)
}

// storeHole goes step by step: a hole can be of any length, and takes as long as its zeros do where the target has no holes or the
// digest is fed them.
func (l *receiverLane) storeHole(ctx context.Context, hole Chunk) error {
	for end := hole.Offset + hole.Length; hole.Offset < end; hole.Offset += hole.Length {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		hole.Length = min(holeStep, end-hole.Offset)
		watch := l.receiver.config.Stages.start()
		if err := l.receiver.config.Target.Punch(hole.Offset, hole.Length); err != nil {
			return err
		}
		watch.charge(Writing)
		if err := l.receiver.addToLedger(hole, nil, 0); err != nil {
			return err
		}
		watch.charge(Checking)
	}
	return nil
}

// enter takes the chunk into the ledger, which finds chunks that overlap.
func (r *Receiver) addToLedger(chunk Chunk, bytes []byte, check uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejected = 0
	if err := addToLedger(r.ledger, r.config.Digest, chunk, bytes, check); err != nil {
		return err
	}
	return r.config.Moved(chunk, r.ledger.Prefix())
}

func (l *receiverLane) acknowledge(buffer int, bad bool) {
	l.receiver.outbox.Add(negotiate.Ack{Slot: l.held[buffer].Slot, Bad: bad})
	l.vacant = append(l.vacant, buffer)
}
