package pump

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// This file is how a lane of a receiver stores units whose checksums are good.

// accept stores a good unit, now or in the order of offsets.
func (l *receiverLane) accept(ctx context.Context, u *heldUnit) error {
	if !l.receiver.config.InOrder || u.Packed() {
		return l.store(ctx, u)
	}
	l.outOfOrder = append(l.outOfOrder, u)
	u.Ref.(*Incoming).waiting.Store(l) // before storeDue looks whether it is ignored
	return l.storeDue(ctx)
}

// storeDue stores the chunks that follow their files' prefixes.
func (l *receiverLane) storeDue(ctx context.Context) error {
	for {
		u := l.takeDue()
		if u == nil {
			return nil
		}
		if err := l.store(ctx, u); err != nil {
			return err
		}
	}
}

// takeDue returns a chunk that follows its file's prefix, or that is to be ignored; nil if there is none. It reads the
// ledger without the mutex, because there is only one lane.
func (l *receiverLane) takeDue() *heldUnit {
	for i, u := range l.outOfOrder {
		in := u.Ref.(*Incoming)
		if int64(u.Record.Offset) == in.ledger.Prefix() || in.failed.Load() {
			last := len(l.outOfOrder) - 1
			l.outOfOrder[i] = l.outOfOrder[last]
			l.outOfOrder = l.outOfOrder[:last]
			return u
		}
	}
	return nil
}

func (l *receiverLane) store(ctx context.Context, u *heldUnit) error {
	if u.Packed() {
		return l.storePack(ctx, u)
	}
	in := u.Ref.(*Incoming)
	if !in.acquire() {
		l.acknowledge(u, false)
		return nil
	}
	defer in.release()
	if u.Record.Kind == native.HoleRecord {
		return l.storeHole(ctx, u)
	}
	return l.storeChunk(u)
}

func (l *receiverLane) storePack(ctx context.Context, u *heldUnit) error {
	l.receiver.rejected.Store(0)
	watch := l.receiver.config.Stages.start()
	after, err := l.receiver.config.StorePack(ctx, &u.Unit, l.bytes(u))
	watch.charge(Writing)
	if err != nil {
		return err
	}
	l.acknowledge(u, false)
	if after != nil {
		after()
	}
	return nil
}

func (l *receiverLane) storeChunk(u *heldUnit) error {
	watch, chunk, in := l.receiver.config.Stages.start(), u.Chunk(), u.Ref.(*Incoming)
	bytes := l.bytes(u)
	if chunk.Kind == native.DataRecord { // the target already has a claimed chunk
		if err := l.write(in, bytes, chunk.Offset); err != nil {
			return l.failed(in, u, err)
		}
	}
	watch.charge(Writing)
	defer watch.charge(Checking)
	return l.stored(in, chunk, bytes, u)
}

// failed acknowledges the chunk of a file whose target has failed, unless that ends the transfer.
func (l *receiverLane) failed(in *Incoming, u *heldUnit, err error) error {
	if err := in.fail(err); err != nil {
		return err
	}
	l.acknowledge(u, false)
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
func (l *receiverLane) storeHole(ctx context.Context, u *heldUnit) error {
	hole, in := u.Chunk(), u.Ref.(*Incoming)
	for end := hole.Offset + hole.Length; hole.Offset < end; hole.Offset += hole.Length {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case in.failed.Load(): // meanwhile
			l.acknowledge(u, false)
			return nil
		}
		hole.Length = min(holeStep, end-hole.Offset)
		watch := l.receiver.config.Stages.start()
		if err := in.Target.Punch(hole.Offset, hole.Length); err != nil {
			return l.failed(in, u, err)
		}
		watch.charge(Writing)
		var whole *heldUnit
		if hole.Offset+hole.Length == end {
			whole = u
		}
		if err := l.stored(in, hole, nil, whole); err != nil {
			return err
		}
		watch.charge(Checking)
	}
	return nil
}

// stored adds a chunk to the ledger of its file, which finds chunks that overlap, and acknowledges the unit, which is
// nil before the last step of a hole.
func (l *receiverLane) stored(in *Incoming, chunk Chunk, bytes []byte, u *heldUnit) error {
	l.receiver.rejected.Store(0)
	in.mu.Lock()
	defer in.mu.Unlock()
	check := uint64(0)
	if u != nil {
		check = u.Record.Check
	}
	if err := AddToLedger(in.ledger, chunk, bytes, check); err != nil {
		return err
	}
	if u != nil {
		l.acknowledge(u, false)
	}
	return in.Moved(chunk, in.ledger.Prefix())
}
