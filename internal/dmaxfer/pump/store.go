package pump

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how a lane of a receiver stores units whose checksums are good.

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
	if unit.Packed() {
		return l.storePack(ctx, buffer)
	}
	in := unit.Ref.(*Incoming)
	if !in.acquire() {
		l.acknowledge(buffer, false)
		return nil
	}
	defer in.letGo()
	if unit.Record.Kind == negotiate.HoleRecord {
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
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case in.failed.Load(): // meanwhile
			l.acknowledge(buffer, false)
			return nil
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
