package pump

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

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

// Incoming is a file that a receiver's lanes write chunk by chunk. Several lanes may use it concurrently.
type Incoming struct {
	Target       Target
	Size         int64 // bytes that a chunk of it may reach; more is a violation of the protocol
	SerialWrites bool  // the target allows one writer at a time, for which others would spin

	// Moved is called, by one lane at a time, for each chunk that the target has, and for each step of a hole, with
	// the length of the prefix without a gap. A chunk is acknowledged before. An error ends the transfer.
	Moved func(chunk Chunk, prefix int64) error

	// Failed is called by a lane for which the target has failed. If it returns nil, the rest of the file is ignored;
	// otherwise the error ends the transfer. It may be nil.
	Failed func(err error) error

	failed  atomic.Bool
	waiting atomic.Pointer[receiverLane] // has chunks of it that wait for earlier ones

	mu     sync.Mutex
	ledger *digest.Ledger
}

// NewIncoming returns the file of a transfer by that digest with so many slots. The caller sets the other fields.
func NewIncoming(target Target, a digest.Algorithm, slots int) *Incoming {
	return &Incoming{Target: target, ledger: digest.NewLedger(a, slots)}
}

// Prefix returns the number of bytes without a gap from the beginning of the file.
func (in *Incoming) Prefix() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ledger.Prefix()
}

// Sum returns the digest of the prefix.
func (in *Incoming) Sum() digest.Sum {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ledger.Sum()
}

// Ignore has all further chunks acknowledged and not stored, as well as those that wait for earlier ones.
func (in *Incoming) Ignore() {
	in.failed.Store(true)
	if l := in.waiting.Load(); l != nil {
		select {
		case l.ignored <- struct{}{}:
		default:
		}
	}
}

// fail returns the error that ends the transfer because of err, or nil.
func (in *Incoming) fail(err error) error {
	if err == nil || in.Failed == nil {
		return err
	}
	in.Ignore()
	return in.Failed(err)
}

// ReceiverConfig configures a Receiver. The caller keeps ownership of everything in it.
type ReceiverConfig struct {
	Depth  int // number of slots of the window
	Digest digest.Algorithm
	Stages *Stages

	// Buffers is the private memory of each lane. It has Depth slots if InOrder.
	Buffers []Slots

	// Engines copy from the window to Buffers. There is one for each lane.
	Engines []Engine

	// InOrder stores the chunks of a file in the order of their offsets, for an ordered digest or a stream. There is
	// one lane then.
	InOrder bool

	// Pace waits until the bandwidth limit allows so many more bytes. It may be nil.
	Pace func(ctx context.Context, bytes int64) error

	// Poller is nil if another goroutine carries the messages.
	Poller Poller

	// Pinning pins the lanes to CPUs. If nil, the lanes are not pinned.
	Pinning Pinning

	// Outbox takes the acknowledgements.
	Outbox *Batch[Reply]

	// StorePack is called by a lane with whole files whose checksums are good. It returns what is to be done after
	// the unit has been acknowledged, or nil. An error ends the transfer.
	StorePack func(ctx context.Context, pack *negotiate.Pack, content []byte) (after func(), err error)

	// Retransmit is called for each unit that the sender is to send again.
	Retransmit func(unit *Unit)
}

// Reply is what a receiver has for the peer: an acknowledgement, or else what the owner of the outbox has added.
type Reply struct {
	Ack   negotiate.Ack
	Other any // not nil: not an acknowledgement
}

// Receiver stores the units that the sender announces.
type Receiver struct {
	config ReceiverConfig
	lanes  []*receiverLane
	packs  []negotiate.Pack // by slot: that of the unit announced last

	// writing is taken by pinned lanes, which would spin in the file's own lock.
	writing sync.Mutex

	rejected atomic.Int64 // units since the last good one
}

// NewReceiver returns a Receiver. Run starts it.
func NewReceiver(c ReceiverConfig) *Receiver {
	r := &Receiver{config: c, packs: make([]negotiate.Pack, c.Depth)}
	for i := range c.Engines {
		r.lanes = append(r.lanes, newReceiverLane(r, i))
	}
	return r
}

// Take accepts an announced chunk of a file. It never blocks, because the sender announces a slot only after it has
// been acknowledged.
func (r *Receiver) Take(record negotiate.Record, of *Incoming) {
	r.lanes[int(record.Slot)%len(r.lanes)].inbox <- Unit{Record: record, Ref: of}
}

// TakePack accepts announced whole files. It never blocks, and keeps nothing of pack.
func (r *Receiver) TakePack(pack negotiate.Pack) {
	own := &r.packs[pack.Slot]
	own.Slot, own.Attempt, own.Files = pack.Slot, pack.Attempt, append(own.Files[:0], pack.Files...)
	record := negotiate.Record{Slot: pack.Slot, Attempt: pack.Attempt}
	r.lanes[int(pack.Slot)%len(r.lanes)].inbox <- Unit{Record: record, Pack: *own}
}

// End says that no unit follows. It must be called once.
func (r *Receiver) End() {
	for _, l := range r.lanes {
		close(l.inbox)
	}
}

// Run receives until End has been called and everything is stored. When it returns all lanes have ended. After an
// error, moves may still be in flight until the engines are closed.
func (r *Receiver) Run(ctx context.Context) error {
	return runLanes(ctx, r.lanes, r.config.Pinning)
}

// receiverLane receives the units of the slots whose number modulo the number of lanes is its own.
type receiverLane struct {
	receiver   *Receiver
	peer       messenger
	copies     copyQueue // into buffers
	buffers    Slots
	inbox      chan Unit
	open       bool          // inbox may still deliver
	maxPending int           // number of copies that may be pending
	vacant     []int         // buffers
	held       []Unit        // by buffer
	outOfOrder []int         // buffers with a good unit that cannot be stored yet; InOrder only
	ignored    chan struct{} // delivers a token when some of those are not to be stored
}

func newReceiverLane(r *Receiver, number int) *receiverLane {
	buffers := r.config.Buffers[number]
	count := buffers.Count()
	l := &receiverLane{
		receiver:   r,
		peer:       newMessenger(r.config.Poller, r.config.Stages, r.config.Outbox, r.config.Pinning, number),
		copies:     newCopyQueue(r.config.Engines[number], r.config.Stages, count, 1),
		buffers:    buffers,
		inbox:      make(chan Unit, r.config.Depth),
		open:       true,
		maxPending: 1,
		held:       make([]Unit, count),
		outOfOrder: make([]int, 0, count),
		ignored:    make(chan struct{}, 1),
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
		took, err := l.drainInbox(ctx)
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

// drainInbox assigns announced units to vacant buffers, up to maxPending. With a bandwidth limit it starts one unit at
// a time, so that a unit that may be copied does not wait until the limit permits the next one.
func (l *receiverLane) drainInbox(ctx context.Context) (took bool, err error) {
	oneByOne := l.receiver.config.Pace != nil
	for l.open && len(l.vacant) > 0 {
		waiting := len(l.copies.waiting)
		if waiting+l.copies.inFlight() >= l.maxPending || oneByOne && waiting > 0 {
			return took, nil
		}
		select {
		case unit, open := <-l.inbox:
			if err := l.startUnit(ctx, unit, open); err != nil {
				return took, err
			}
			took = true
		default:
			return took, nil
		}
	}
	return took, nil
}

// raiseMaxPending doubles maxPending if more units are announced, and reports whether it did. A slow engine thus gets
// as many copies as keep it busy, and a fast one reuses the same buffer, which stays in the cache.
func (l *receiverLane) raiseMaxPending() bool {
	if l.maxPending == len(l.held) || len(l.inbox) == 0 {
		return false
	}
	l.maxPending = min(2*l.maxPending, len(l.held))
	return true
}

// startUnit begins with one unit, or notes the end of the inbox.
func (l *receiverLane) startUnit(ctx context.Context, unit Unit, open bool) error {
	if l.open = open; !open {
		return nil
	}
	buffer := l.vacant[len(l.vacant)-1]
	l.vacant = l.vacant[:len(l.vacant)-1]
	l.held[buffer] = unit
	held := &l.held[buffer]
	switch {
	case ignored(held):
		l.acknowledge(buffer, false)
		return nil
	case held.Used() == 0:
		return l.accept(ctx, buffer)
	case !held.Packed() && held.Record.Kind == negotiate.ClaimRecord:
		return l.compare(ctx, buffer)
	}
	if err := l.peer.pace(ctx, l.receiver.config.Pace, held.Used()); err != nil {
		return err
	}
	l.copies.add(Move{
		Window: int64(held.Record.Slot) * l.buffers.size,
		Buffer: l.buffers.offset(buffer),
		Length: held.Used(),
		Tag:    buffer,
		Plain:  held.Packed(),
	})
	return nil
}

// ignored reports whether the unit is a chunk of a file that has failed.
func ignored(u *Unit) bool {
	in, is := u.Ref.(*Incoming)
	return is && (in == nil || in.failed.Load())
}

// progress handles a unit that has arrived in its buffer, while it is in the cache. With wait it sleeps until one
// arrives or the sender announces more.
func (l *receiverLane) progress(ctx context.Context, wait bool) error {
	watch := l.receiver.config.Stages.start()
	copied := l.copies.poll()
	watch.charge(Copying)
	if len(copied) > 0 || !wait {
		return l.handleMoved(ctx, copied)
	}
	if l.copies.inFlight() == 0 {
		return l.awaitUnit(ctx)
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

func (l *receiverLane) awaitUnit(ctx context.Context) error {
	watch := l.receiver.config.Stages.start()
	unit, what, err := receive(ctx, &l.peer, l.inbox, l.ignored)
	watch.charge(Peer)
	switch {
	case err != nil:
		return err
	case what == arrivedWake:
		return l.storeDue(ctx)
	}
	return l.startUnit(ctx, unit, what == arrivedItem)
}

func (l *receiverLane) handleMoved(ctx context.Context, copied []Moved) error {
	for _, m := range copied {
		held := &l.held[m.Tag]
		if m.Err != nil {
			return moveFailed(held, m.Err)
		}
		good := false
		if held.Packed() {
			good = l.goodPack(m.Tag)
		} else {
			good = l.checksumOf(m) == held.Record.Check
		}
		if err := l.judge(ctx, m.Tag, good); err != nil {
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
	return digest.Check(l.receiver.config.Digest, l.buffers.bytes(m.Tag, l.held[m.Tag].Used()))
}

// goodPack compares the checksums of all files in a buffer.
func (l *receiverLane) goodPack(buffer int) bool {
	watch := l.receiver.config.Stages.start()
	defer watch.charge(Checking)
	pack := &l.held[buffer].Pack
	content := l.buffers.bytes(buffer, l.held[buffer].Used())
	for i := range pack.Files {
		f := &pack.Files[i]
		if digest.Check(l.receiver.config.Digest, ContentOf(f, content)) != f.Check {
			return false
		}
	}
	return true
}

// compare checks whether the target already has the chunk that the sender claims.
func (l *receiverLane) compare(ctx context.Context, buffer int) error {
	held := &l.held[buffer]
	in := held.Ref.(*Incoming)
	watch := l.receiver.config.Stages.start()
	err := in.Target.ReadAt(l.buffers.bytes(buffer, held.Used()), int64(held.Record.Offset))
	watch.charge(Writing)
	if err != nil {
		return l.failed(in, buffer, err)
	}
	return l.judge(ctx, buffer, l.checksumOf(Moved{Tag: buffer}) == held.Record.Check)
}

// judge stores a unit whose checksums are those of the sender, and rejects any other.
func (l *receiverLane) judge(ctx context.Context, buffer int, good bool) error {
	if good {
		return l.accept(ctx, buffer)
	}
	return l.reject(buffer)
}

// reject asks for the unit again, unless the limit of attempts is reached.
func (l *receiverLane) reject(buffer int) error {
	unit := &l.held[buffer]
	if unit.Packed() || unit.Record.Kind == negotiate.DataRecord {
		if unit.Record.Attempt+1 == maxAttempts || l.receiver.tooManyRejected() {
			return fmt.Errorf("%s: %w", unit, ErrCorrupted)
		}
		l.receiver.config.Retransmit(unit)
	}
	l.acknowledge(buffer, true)
	return nil
}

// tooManyRejected counts a rejected unit. It limits consecutive ones to the maximum number of attempts per slot,
// independent of the attempt numbers that the sender states.
func (r *Receiver) tooManyRejected() bool {
	return r.rejected.Add(1) >= int64(maxAttempts*r.config.Depth)
}

// accept stores a good unit, now or in the order of offsets.
func (l *receiverLane) accept(ctx context.Context, buffer int) error {
	if !l.receiver.config.InOrder || l.held[buffer].Packed() {
		return l.store(ctx, buffer)
	}
	l.outOfOrder = append(l.outOfOrder, buffer)
	l.held[buffer].Ref.(*Incoming).waiting.Store(l) // before storeDue looks whether it is ignored
	return l.storeDue(ctx)
}

// storeDue stores the chunks that follow their files' prefixes.
func (l *receiverLane) storeDue(ctx context.Context) error {
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

// takeNext returns the buffer of a chunk that follows its file's prefix, or that is to be ignored. It reads the ledger
// without the mutex, because there is only one lane.
func (l *receiverLane) takeNext() (buffer int, due bool) {
	for i, buffer := range l.outOfOrder {
		held := &l.held[buffer]
		in := held.Ref.(*Incoming)
		if int64(held.Record.Offset) == in.ledger.Prefix() || in.failed.Load() {
			last := len(l.outOfOrder) - 1
			l.outOfOrder[i] = l.outOfOrder[last]
			l.outOfOrder = l.outOfOrder[:last]
			return buffer, true
		}
	}
	return 0, false
}

func (l *receiverLane) store(ctx context.Context, buffer int) error {
	unit := &l.held[buffer]
	switch {
	case unit.Packed():
		return l.storePack(ctx, buffer)
	case ignored(unit):
		l.acknowledge(buffer, false)
		return nil
	case unit.Record.Kind == negotiate.HoleRecord:
		return l.storeHole(ctx, buffer)
	}
	return l.storeChunk(buffer)
}

func (l *receiverLane) storePack(ctx context.Context, buffer int) error {
	unit := &l.held[buffer]
	l.receiver.rejected.Store(0)
	watch := l.receiver.config.Stages.start()
	after, err := l.receiver.config.StorePack(ctx, &unit.Pack, l.buffers.bytes(buffer, unit.Used()))
	watch.charge(Writing)
	if err != nil {
		return err
	}
	l.acknowledge(buffer, false)
	if after != nil {
		after()
	}
	return nil
}

func (l *receiverLane) storeChunk(buffer int) error {
	unit := &l.held[buffer]
	watch, chunk, in := l.receiver.config.Stages.start(), unit.Chunk(), unit.Ref.(*Incoming)
	bytes := l.buffers.bytes(buffer, chunk.Length)
	if chunk.Kind == negotiate.DataRecord { // the target already has a claimed chunk
		if err := l.write(in, bytes, chunk.Offset); err != nil {
			return l.failed(in, buffer, err)
		}
	}
	watch.charge(Writing)
	defer watch.charge(Checking)
	return l.stored(in, chunk, bytes, buffer)
}

// failed acknowledges the chunk of a file whose target has failed, unless that ends the transfer.
func (l *receiverLane) failed(in *Incoming, buffer int, err error) error {
	if err := in.fail(err); err != nil {
		return err
	}
	l.acknowledge(buffer, false)
	return nil
}

// write serialises writes of pinned lanes to a target that has SerialWrites: a lane that waits for the file's own lock
// spins there and keeps the CPU from the peer's lane. It does not wait long.
func (l *receiverLane) write(in *Incoming, bytes []byte, offset int64) error {
	if l.peer.cpu.pinned && in.SerialWrites && l.peer.cpu.lock(&l.receiver.writing) {
		defer l.receiver.writing.Unlock()
	}
	return in.Target.WriteAt(bytes, offset)
}

// storeHole processes a hole step by step, because it can have any length and take as long as writing or hashing its
// zeros.
func (l *receiverLane) storeHole(ctx context.Context, buffer int) error {
	unit := &l.held[buffer]
	hole, in := unit.Chunk(), unit.Ref.(*Incoming)
	for end := hole.Offset + hole.Length; hole.Offset < end; hole.Offset += hole.Length {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		hole.Length = min(holeStep, end-hole.Offset)
		watch := l.receiver.config.Stages.start()
		if err := in.Target.Punch(hole.Offset, hole.Length); err != nil {
			return l.failed(in, buffer, err)
		}
		watch.charge(Writing)
		acknowledged := noBuffer
		if hole.Offset+hole.Length == end {
			acknowledged = buffer
		}
		if err := l.stored(in, hole, nil, acknowledged); err != nil {
			return err
		}
		watch.charge(Checking)
	}
	return nil
}

const noBuffer = -1

// stored adds a chunk to the ledger of its file, which finds chunks that overlap, and acknowledges the unit in a
// buffer unless there is none.
func (l *receiverLane) stored(in *Incoming, chunk Chunk, bytes []byte, buffer int) error {
	l.receiver.rejected.Store(0)
	in.mu.Lock()
	defer in.mu.Unlock()
	check := uint64(0)
	if buffer != noBuffer {
		check = l.held[buffer].Record.Check
	}
	if err := AddToLedger(in.ledger, chunk, bytes, check); err != nil {
		return err
	}
	if buffer != noBuffer {
		l.acknowledge(buffer, false)
	}
	return in.Moved(chunk, in.ledger.Prefix())
}

func (l *receiverLane) acknowledge(buffer int, bad bool) {
	l.receiver.config.Outbox.Add(Reply{Ack: negotiate.Ack{Slot: uint32(l.held[buffer].Record.Slot), Bad: bad}})
	l.vacant = append(l.vacant, buffer)
}
