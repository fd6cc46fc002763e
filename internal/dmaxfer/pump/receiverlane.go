package pump

import (
	"context"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

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
	if !in.acquire() {
		l.acknowledge(buffer, false)
		return nil
	}
	watch := l.receiver.config.Stages.start()
	err := in.Target.ReadAt(l.buffers.bytes(buffer, held.Used()), int64(held.Record.Offset))
	watch.charge(Writing)
	in.letGo()
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
