package pump

import (
	"context"
	"fmt"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Target is the file that a receiver writes.
type Target interface {
	// WriteAt writes all of chunk. Several lanes may call it concurrently for different ranges.
	WriteAt(chunk []byte, offset int64) error

	// ReadAt fills chunk with what the target has at offset.
	ReadAt(chunk []byte, offset int64) error

	// Punch makes a range of zeros, as a hole where the file system supports it.
	Punch(offset, length int64) error
}

// ReceiverConfig configures a Receiver. The caller keeps ownership of everything in it.
type ReceiverConfig struct {
	Target Target
	Depth  int // number of slots of the window
	Digest digest.Algorithm
	Stages *Stages

	// Buffers is the private memory of each lane. It has Depth slots if InOrder.
	Buffers []Slots

	// Engines copy from the window to Buffers. There is one for each lane.
	Engines []Engine

	// InOrder stores chunks in the order of their offsets, for an ordered digest or a stream. There is one lane then.
	InOrder bool

	// SerialWrites says that the target allows one writer at a time, for which others would spin.
	SerialWrites bool

	// Pace waits until the bandwidth limit allows so many more bytes. It may be nil.
	Pace func(ctx context.Context, bytes int64) error

	// Poller is nil if another goroutine carries the messages.
	Poller Poller

	// Pinning pins the lanes to CPUs. If nil, the lanes are not pinned.
	Pinning Pinning

	// Batch is the number of chunks, at least 1, that are acknowledged together while there are more to receive.
	Batch int

	// Moved is called for each chunk that the target has, and for each step of a hole, with the length of the prefix
	// without a gap. An error ends the transfer.
	Moved func(chunk Chunk, prefix int64) error

	// Retransmit is called for each chunk that the sender is to send again.
	Retransmit func(chunk Chunk)
}

// Receiver writes the chunks that the sender announces to a Target.
type Receiver struct {
	config ReceiverConfig
	lanes  []*receiverLane
	outbox *Batch[negotiate.Ack]

	// writing is taken by pinned lanes, which would spin in the file's own lock.
	writing sync.Mutex

	mu       sync.Mutex
	ledger   *digest.Ledger
	rejected int // chunks since the last good one
}

// NewReceiver returns a Receiver. Run starts it.
func NewReceiver(c ReceiverConfig) *Receiver {
	r := &Receiver{
		config: c,
		outbox: NewBatch[negotiate.Ack](c.Depth, c.Batch),
		ledger: digest.NewLedger(c.Digest, c.Depth),
	}
	for i := range c.Engines {
		r.lanes = append(r.lanes, newReceiverLane(r, i))
	}
	return r
}

// Outbox returns the acknowledgements for the peer.
func (r *Receiver) Outbox() *Batch[negotiate.Ack] { return r.outbox }

// Take accepts announced records. It never blocks, because the sender announces a slot only after it has been
// acknowledged.
func (r *Receiver) Take(records []negotiate.Record) {
	for _, record := range records {
		r.lanes[int(record.Slot)%len(r.lanes)].inbox <- record
	}
}

// End says that no record follows. It must be called once.
func (r *Receiver) End() {
	for _, l := range r.lanes {
		close(l.inbox)
	}
}

// Run receives until End has been called and the target has everything. When it returns all lanes have ended. After
// an error, moves may still be in flight until the engines are closed.
func (r *Receiver) Run(ctx context.Context) error {
	return runLanes(ctx, r.lanes, r.config.Pinning)
}

// Sum returns length and digest of the target's prefix without a gap, after Run.
func (r *Receiver) Sum() (int64, digest.Sum) { return r.ledger.Prefix(), r.ledger.Sum() }

// receiverLane receives the chunks of the slots whose number modulo the number of lanes is its own.
type receiverLane struct {
	receiver   *Receiver
	peer       messenger
	copies     copyQueue // into buffers
	buffers    Slots
	inbox      chan negotiate.Record
	open       bool               // inbox may still deliver
	maxPending int                // number of copies that may be pending
	vacant     []int              // buffers
	held       []negotiate.Record // by buffer: the record of its chunk
	outOfOrder []int              // buffers with a good chunk that cannot be stored yet; InOrder only
}

func newReceiverLane(r *Receiver, number int) *receiverLane {
	buffers := r.config.Buffers[number]
	count := buffers.Count()
	l := &receiverLane{
		receiver:   r,
		peer:       newMessenger(r.config.Poller, r.config.Stages, r.outbox, r.config.Pinning, number),
		copies:     newCopyQueue(r.config.Engines[number], r.config.Stages, count, 1),
		buffers:    buffers,
		inbox:      make(chan negotiate.Record, r.config.Depth),
		open:       true,
		maxPending: 1,
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

// drainRecords assigns announced records to vacant buffers, up to maxPending. With a bandwidth limit it starts one
// chunk at a time, so that a chunk that may be copied does not wait until the limit permits the next one.
func (l *receiverLane) drainRecords(ctx context.Context) (took bool, err error) {
	oneByOne := l.receiver.config.Pace != nil
	for l.open && len(l.vacant) > 0 {
		waiting := len(l.copies.waiting)
		if waiting+l.copies.inFlight() >= l.maxPending || oneByOne && waiting > 0 {
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

// raiseMaxPending doubles maxPending if more records are announced, and reports whether it did. A slow engine thus gets
// as many copies as keep it busy, and a fast one reuses the same buffer, which stays in the cache.
func (l *receiverLane) raiseMaxPending() bool {
	if l.maxPending == len(l.held) || len(l.inbox) == 0 {
		return false
	}
	l.maxPending = min(2*l.maxPending, len(l.held))
	return true
}

// startRecord begins with one record, or notes the end of the inbox.
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
		Window: int64(record.Slot) * l.buffers.size,
		Buffer: l.buffers.offset(buffer),
		Length: int64(record.Length),
		Tag:    buffer,
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
	if l.raiseMaxPending() {
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

// checksumOf returns the checksum of the chunk in a buffer.
func (l *receiverLane) checksumOf(m Moved) uint64 {
	if m.Checked {
		return m.Check
	}
	watch := l.receiver.config.Stages.start()
	defer watch.charge(Checking)
	return digest.Check(l.receiver.config.Digest, l.buffers.bytes(m.Tag, int64(l.held[m.Tag].Length)))
}

// compare checks whether the target already has the chunk that the sender claims.
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

// checkChunk compares the checksum of a buffer's content with the sender's.
func (l *receiverLane) checkChunk(ctx context.Context, buffer int, check uint64) error {
	if check == l.held[buffer].Check {
		return l.accept(ctx, buffer)
	}
	return l.reject(buffer)
}

// reject asks for the chunk again, unless the limit of attempts is reached.
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

// tooManyRejected counts a rejected chunk. It limits consecutive ones to the maximum number of attempts per slot,
// independent of the attempt numbers that the sender states.
func (r *Receiver) tooManyRejected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejected++
	return r.rejected >= maxAttempts*r.config.Depth
}

// accept stores a good chunk, now or in the order of offsets.
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

// takeNext returns the buffer of the chunk that follows the ledger's prefix, if it has arrived. It reads the ledger
// without the mutex, because there is only one lane.
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
	if chunk.Kind == negotiate.DataRecord { // the target already has a claimed chunk
		if err := l.write(bytes, chunk.Offset); err != nil {
			return err
		}
	}
	watch.charge(Writing)
	defer watch.charge(Checking)
	return l.receiver.addToLedger(chunk, bytes, record.Check)
}

// write serialises writes of pinned lanes to such a target: a lane that waits for the file's own lock spins there and
// keeps the CPU from the peer's lane. It does not wait long.
func (l *receiverLane) write(bytes []byte, offset int64) error {
	if l.peer.cpu.pinned && l.receiver.config.SerialWrites && l.peer.cpu.lock(&l.receiver.writing) {
		defer l.receiver.writing.Unlock()
	}
	return l.receiver.config.Target.WriteAt(bytes, offset)
}

// storeHole processes a hole step by step, because it can have any length and take as long as writing or hashing its
// zeros.
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

// addToLedger adds the chunk to the ledger, which finds chunks that overlap.
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
