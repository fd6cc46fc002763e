package pump

import (
	"context"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// receiverLane receives the units of the slots whose number modulo the number of lanes is its own.
type receiverLane struct {
	receiver   *Receiver
	peer       messenger
	copies     copyQueue // into buffers
	inPlace    InPlace   // of the buffers; nil: the engine copies into them
	maxRanges  int       // number of units that one copy fetches at most
	buffers    Slots
	inbox      chan Unit
	open       bool          // inbox may still deliver
	next       Unit          // taken from inbox, to be started when that is possible
	hasNext    bool          // next is one; then open is true
	maxPending int           // number of copies that may be pending
	vacant     []int         // buffers; unused if inPlace
	contents   []content     // by buffer
	held       []heldUnit    // by slot of the lane
	holding    int           // number of units that are held
	outOfOrder []*heldUnit   // good ones that cannot be stored yet; InOrder only
	ignored    chan struct{} // delivers a token when some of those are not to be stored
}

// heldUnit is a unit from its start to its acknowledgement. Its bytes are in a buffer, alone or with other units'.
type heldUnit struct {
	Unit
	buffer int   // noBuffer: it has none
	start  int64 // offset of its bytes in the buffers
}

const noBuffer = -1

// content is what a copy has put, or is to put, into a buffer.
type content struct {
	units  []*heldUnit // in the order of their bytes
	held   int         // number of them that are not acknowledged; the buffer is vacant without any
	length int64       // in bytes
	more   []Range     // of the window, of all units but the first
}

func newReceiverLane(r *Receiver, number int) *receiverLane {
	buffers, engine := r.config.Buffers[number], r.config.Engines[number]
	count, lanes := buffers.Count(), len(r.config.Engines)
	l := &receiverLane{
		receiver:   r,
		peer:       newMessenger(r.config.Poller, r.config.Stages, r.config.Outbox, r.config.Pinning, number),
		copies:     newCopyQueue(engine, r.config.Stages, count, 1),
		maxRanges:  maxRanges(engine),
		buffers:    buffers,
		inbox:      make(chan Unit, r.config.Depth),
		open:       true,
		maxPending: 1,
		contents:   make([]content, count),
		held:       make([]heldUnit, (r.config.Depth-number+lanes-1)/lanes),
		ignored:    make(chan struct{}, 1),
	}
	if r.config.InPlace != nil {
		l.inPlace = r.config.InPlace[number]
	}
	l.outOfOrder = make([]*heldUnit, 0, len(l.held))
	together := min(l.maxRanges, len(l.held))
	for buffer := range count {
		l.vacant = append(l.vacant, buffer)
		l.contents[buffer] = content{units: make([]*heldUnit, 0, together), more: make([]Range, 0, together-1)}
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
		if !l.open && l.holding == 0 {
			return nil
		}
		if err := l.progress(ctx, !took); err != nil {
			return err
		}
		l.peer.poll()
	}
}

// drainInbox starts announced units, as long as one more copy may be pending, or the last one that waits for the engine
// can fetch more units.
func (l *receiverLane) drainInbox(ctx context.Context) (took bool, err error) {
	for l.hasNext || l.mayCopy() || l.joinable(1) {
		if !l.takeNext() || !l.startable(&l.next) {
			return took, nil
		}
		l.hasNext = false
		if err := l.startUnit(ctx, &l.next); err != nil {
			return took, err
		}
		took = true
	}
	return took, nil
}

// takeNext takes next from the inbox unless there is one, and reports whether there is one then.
func (l *receiverLane) takeNext() bool {
	if l.hasNext || !l.open {
		return l.hasNext
	}
	select {
	case l.next, l.open = <-l.inbox:
		l.hasNext = l.open
	default:
	}
	return l.hasNext
}

// startable reports whether there is space for a unit.
func (l *receiverLane) startable(u *Unit) bool {
	return l.mayCopy() || l.needsNoBuffer(u) || !isClaim(u) && l.joinable(u.Used())
}

// mayCopy reports whether one more copy may be pending, and has a buffer. With a bandwidth limit units are started one
// at a time, so that a unit that may be copied does not wait until the limit permits the next one.
func (l *receiverLane) mayCopy() bool {
	waiting := len(l.copies.waiting)
	return (l.inPlace != nil || len(l.vacant) > 0) && waiting+l.copies.inFlight() < l.maxPending &&
		(l.receiver.config.Pace == nil || waiting == 0)
}

// joinable reports whether the last copy that waits for the engine can also fetch a unit of so many bytes.
func (l *receiverLane) joinable(bytes int64) bool {
	if l.maxRanges == 1 || l.receiver.config.Pace != nil || len(l.copies.waiting) == 0 {
		return false
	}
	c := &l.contents[l.copies.last().Tag]
	return len(c.units) < l.maxRanges && c.length+bytes <= l.buffers.size
}

// raiseMaxPending doubles maxPending if more units are announced, and reports whether it did. A slow engine thus gets
// as many copies as keep it busy, and a fast one reuses the same buffer, which stays in the cache.
func (l *receiverLane) raiseMaxPending() bool {
	if l.maxPending == len(l.contents) || !l.hasNext && len(l.inbox) == 0 {
		return false
	}
	l.maxPending = min(2*l.maxPending, len(l.contents))
	return true
}

// startUnit begins with a unit. It keeps a copy of *unit.
func (l *receiverLane) startUnit(ctx context.Context, unit *Unit) error {
	u := &l.held[int(unit.Record.Slot)/len(l.receiver.config.Engines)]
	*u = heldUnit{Unit: *unit, buffer: noBuffer}
	l.holding++
	switch {
	case l.skipped(&u.Unit):
		l.acknowledge(u, false)
		return nil
	case u.Used() == 0:
		return l.accept(ctx, u)
	case isClaim(&u.Unit):
		l.occupy(u)
		return l.compare(ctx, u)
	}
	if err := l.peer.pace(ctx, l.receiver.config.Pace, u.Used()); err != nil {
		return err
	}
	l.fetch(u)
	return nil
}

// fetch has the engine copy a unit: with others, behind which it finds space, or into a vacant buffer.
func (l *receiverLane) fetch(u *heldUnit) {
	used, offset := u.Used(), int64(u.Record.Slot)*l.buffers.size
	if !l.joinable(used) {
		l.occupy(u)
		l.copies.add(Move{Window: offset, Buffer: u.start, Length: used, Tag: u.buffer, Plain: u.Packed()})
		return
	}
	last := l.copies.last()
	c := &l.contents[last.Tag]
	u.buffer, u.start = last.Tag, l.buffers.offset(last.Tag)+c.length
	c.units, c.length, c.held = append(c.units, u), c.length+used, c.held+1
	c.more = append(c.more, Range{Offset: offset, Length: used})
	last.More, last.Plain = c.more, true
}

// occupy gives a unit a vacant buffer.
func (l *receiverLane) occupy(u *heldUnit) {
	buffer := l.takeBuffer(u)
	u.buffer, u.start = buffer, l.buffers.offset(buffer)
	c := &l.contents[buffer]
	c.units, c.length, c.held = append(c.units[:0], u), u.Used(), 1
	c.more = c.more[:0]
}

// takeBuffer returns the vacant buffer for a unit.
func (l *receiverLane) takeBuffer(u *heldUnit) int {
	if l.inPlace != nil {
		return int(u.Record.Slot) / len(l.receiver.config.Engines)
	}
	last := len(l.vacant) - 1
	buffer := l.vacant[last]
	l.vacant = l.vacant[:last]
	return buffer
}

// vacate makes a buffer vacant.
func (l *receiverLane) vacate(buffer int) {
	if l.inPlace != nil {
		l.inPlace.Release(buffer)
	} else {
		l.vacant = append(l.vacant, buffer)
	}
}

// bytes returns the bytes of a unit.
func (l *receiverLane) bytes(u *heldUnit) []byte {
	end := u.start + u.Used()
	return l.buffers.memory[u.start:end:end]
}

func isClaim(u *Unit) bool { return !u.Packed() && u.Record.Kind == native.ClaimRecord }

func (l *receiverLane) needsNoBuffer(u *Unit) bool { return u.Used() == 0 || l.skipped(u) }

// skipped reports whether a unit is acknowledged without a look at its content, and without a wait for it.
func (l *receiverLane) skipped(u *Unit) bool {
	pushed := l.receiver.config.Pushed && u.Used() > 0 && !isClaim(u)
	return ignored(u) && !pushed
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
	case what == arrivedEnd:
		l.open = false
		return nil
	}
	return l.startUnit(ctx, &unit)
}

func (l *receiverLane) handleMoved(ctx context.Context, copied []Moved) error {
	for _, m := range copied {
		c := &l.contents[m.Tag]
		if m.Err != nil {
			return c.moveFailed(m.Err)
		}
		for _, u := range c.units {
			u.trace(&l.receiver.config.Log, "content received")
			if ignored(&u.Unit) {
				l.acknowledge(u, false)
				continue
			}
			if err := l.judge(ctx, u, l.good(u, m)); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveFailed returns the error of a copy.
func (c *content) moveFailed(err error) error {
	if others := len(c.units) - 1; others > 0 {
		err = fmt.Errorf("together with %d more: %w", others, err)
	}
	return moveFailed(&c.units[0].Unit, err)
}

// good reports whether a unit that was copied has the sender's checksums.
func (l *receiverLane) good(u *heldUnit, m Moved) bool {
	if u.Packed() {
		return l.goodPack(u)
	}
	return l.checksumOf(u, m) == u.Record.Check
}

// checksumOf returns the checksum of a chunk.
func (l *receiverLane) checksumOf(u *heldUnit, m Moved) uint64 {
	if m.Checked {
		return m.Check
	}
	watch := l.receiver.config.Stages.start()
	defer watch.charge(Checking)
	return checkOf(u.Record.Kind, l.receiver.config.Digest, l.bytes(u))
}

// goodPack compares the checksums of all files of a unit.
func (l *receiverLane) goodPack(u *heldUnit) bool {
	watch := l.receiver.config.Stages.start()
	defer watch.charge(Checking)
	content := l.bytes(u)
	for i := range u.Pack.Files {
		f := &u.Pack.Files[i]
		if digest.Check(l.receiver.config.Digest, ContentOf(f, content)) != f.Check {
			return false
		}
	}
	return true
}

// compare checks whether the target already has the chunk that the sender claims.
func (l *receiverLane) compare(ctx context.Context, u *heldUnit) error {
	if l.inPlace != nil {
		if err := l.inPlace.Occupy(u.buffer); err != nil {
			return err
		}
	}
	in := u.Ref.(*Incoming)
	if !in.acquire() {
		l.acknowledge(u, false)
		return nil
	}
	watch := l.receiver.config.Stages.start()
	err := in.Target.ReadAt(l.bytes(u), int64(u.Record.Offset))
	watch.charge(Writing)
	in.release()
	if err != nil {
		return l.failed(in, u, err)
	}
	return l.judge(ctx, u, l.checksumOf(u, Moved{}) == u.Record.Check)
}

// judge stores a unit whose checksums match the sender's, and rejects any other.
func (l *receiverLane) judge(ctx context.Context, u *heldUnit, good bool) error {
	if good {
		return l.accept(ctx, u)
	}
	return l.reject(u)
}

// reject asks for the unit again, unless the limit of attempts is reached.
func (l *receiverLane) reject(u *heldUnit) error {
	if !isClaim(&u.Unit) {
		if u.Record.Attempt+1 == maxAttempts || l.receiver.tooManyRejected() {
			return fmt.Errorf("%s: %w", &u.Unit, ErrCorrupted)
		}
		l.receiver.config.Retransmit(&u.Unit)
	}
	l.acknowledge(u, true)
	return nil
}

// acknowledge ends a unit. Its buffer is vacant after the last one in it.
func (l *receiverLane) acknowledge(u *heldUnit, bad bool) {
	l.holding--
	if u.buffer != noBuffer {
		c := &l.contents[u.buffer]
		if c.held--; c.held == 0 {
			l.vacate(u.buffer)
		}
	}
	l.receiver.config.Outbox.Add(Reply{Ack: native.Ack{Slot: uint32(u.Record.Slot), Bad: bad}})
}

// tooManyRejected counts a rejected unit. It limits consecutive ones to the maximum number of attempts per slot,
// independent of the attempt numbers that the sender states.
func (r *Receiver) tooManyRejected() bool {
	return r.rejected.Add(1) >= int64(maxAttempts*r.config.Depth)
}
