package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// receiving is the part of the side that gets the file.
type receiving struct {
	*native
	target   sink // set before roomy by the job that opens it
	roomy    bool // there is room for it
	receiver *pump.Receiver
	sent     digest.Sum // what the sender says that it has read
	size     int64      // of that
	holes    int64      // bytes of holes that were announced
	extra    []byte     // extended attributes, as they come
	naming   commitment // whether the target has its name
}

func newReceiving(n *native) *receiving { return &receiving{native: n} }

// begin opens the target and makes room in a job, since that can take as long as the disk does, and the window is made meanwhile.
func (r *receiving) begin(ctx context.Context) error {
	r.progress.enter(Preparing)
	r.job(func() func() error {
		err := r.prepare(ctx)
		return func() error { return r.prepared(ctx, err) }
	})
	return nil
}

func (r *receiving) prepare(ctx context.Context) error {
	target, err := r.openTarget(ctx)
	if err != nil {
		return err
	}
	r.target = target
	return target.allocate(ctx)
}

func (r *receiving) prepared(ctx context.Context, err error) error {
	if r.target != nil {
		for _, sentence := range r.target.warnings() {
			r.notify(Warned{Text: sentence})
		}
	}
	if err != nil {
		return err
	}
	r.roomy = true
	return r.start(ctx)
}

func (r *receiving) reached(ctx context.Context) error { return r.start(ctx) }

// start tells the sender to begin, once there is a window and room.
func (r *receiving) start(ctx context.Context) error {
	if !r.roomy || r.reach == nil {
		return nil
	}
	r.receiver = pump.NewReceiver(pump.ReceiverConfig{
		Target: r.target, Depth: r.layout().slots, Buffers: r.reach.buffers, Engines: r.reach.engines, InOrder: r.inOrder(),
		Digest: r.algorithm(), Stages: &r.progress.stages, Pace: r.pace(), Poller: r.poller(ctx), CPUs: r.seats(), SerialWrites: !r.target.concurrent(), Batch: r.batch(), Moved: r.stored, Retransmit: r.again,
	})
	resume := r.target.resumable()
	r.resumes(resume)
	message, err := r.session.Ready(uint64(resume))
	if err != nil {
		return err
	}
	r.progress.enter(Moving)
	r.job(func() func() error {
		if err := r.receive(ctx); err != nil {
			return failWith(misplaced(err))
		}
		return func() error { return r.finish(ctx) }
	})
	return r.send(ctx, message)
}

func (r *receiving) receive(ctx context.Context) error {
	if err := r.receiver.Run(ctx); err != nil {
		return r.corrupted(err)
	}
	return r.leave()
}

// misplaced blames the sender for pieces that do not make up a file.
func misplaced(err error) error {
	for _, why := range []error{digest.ErrRange, digest.ErrOverlap, digest.ErrOrder, digest.ErrParked, digest.ErrCheck} {
		if errors.Is(err, why) {
			return &negotiate.Error{
				State: negotiate.Receiving, Message: negotiate.TypeChunks, Err: negotiate.ErrMalformed, Detail: err.Error(),
			}
		}
	}
	return err
}

// stored is called by the lanes, one at a time. How long a stream is shows only here.
func (r *receiving) stored(piece pump.Chunk, prefix int64) error {
	if limit := r.options.MaxBytes; limit > 0 && prefix > limit {
		return overLimit(r.place.path, prefix, limit)
	}
	r.pieceMoved(piece)
	return r.target.advance(prefix)
}

func (r *receiving) take(ctx context.Context, step negotiate.NativeStep) error {
	switch step.Event {
	case negotiate.Announced:
		if err := r.countHoles(step.Records); err != nil {
			return err
		}
		r.receiver.Take(step.Records)
		return nil
	case negotiate.PeerMetadata:
		r.extra = append(r.extra, step.Metadata.Part...)
		return nil
	case negotiate.PeerEnded:
		return r.end(step)
	case negotiate.PeerCommit:
		r.commit(ctx)
		return nil
	}
	return fmt.Errorf("internal error: a receiver was told %s", step.Event)
}

// countHoles bounds what a few records, of up to the whole file each, can have this side read or digest.
func (r *receiving) countHoles(records []negotiate.Record) error {
	for i := range records {
		if records[i].Kind == negotiate.HoleRecord {
			r.holes += int64(records[i].Length)
		}
	}
	if limit := r.options.MaxHoles; limit > 0 && r.holes > limit && r.readsHoles() {
		return r.overHoles()
	}
	return nil
}

// end notes what the sender has read; the lanes then come to their end.
func (r *receiving) end(step negotiate.NativeStep) error {
	sum, err := digest.NewSum(r.algorithm(), step.Digest)
	if err != nil {
		return err
	}
	r.size, r.sent = int64(step.Size), sum
	r.receiver.End()
	return nil
}

// finish compares what has been written with what has been read, and makes it durable.
func (r *receiving) finish(ctx context.Context) error {
	size, sum := r.receiver.Sum()
	if size != r.size || sum != r.sent {
		return r.differs(size, sum)
	}
	if err := r.checkCopied(size, sum); err != nil {
		return err
	}
	r.summary.Size, r.summary.Sum = size, sum
	r.progress.enter(Finishing)
	r.job(func() func() error {
		if err := r.target.finish(ctx, sum, r.extra); err != nil {
			return failWith(err)
		}
		return func() error { return r.sayPrepared(ctx, sum) }
	})
	return nil
}

func (r *receiving) differs(size int64, sum digest.Sum) error {
	return failure(ErrDigest, nil, "copy again; if it recurs, check the memory of both sides",
		"digest mismatch of %s: source has %d bytes, %s, target %d bytes, %s", r.place.path, r.size, r.sent, size, sum)
}

func (r *receiving) sayPrepared(ctx context.Context, sum digest.Sum) error {
	message, err := r.session.Prepared(sum.Bytes())
	if err != nil {
		return err
	}
	return r.send(ctx, message)
}

// commit gives the file its name, which the sender has asked for.
func (r *receiving) commit(ctx context.Context) {
	r.naming = naming
	r.job(func() func() error {
		err := r.target.commit()
		return func() error { return r.sayDone(context.WithoutCancel(ctx), err) }
	})
}

func (r *receiving) sayDone(ctx context.Context, err error) error {
	if err != nil {
		r.naming = free
		return err
	}
	r.naming = named
	r.done(r.target.durability())
	r.progress.enter(Concluding)
	message, err := r.session.Done(r.summary.Durability)
	if err != nil {
		return err
	}
	return r.send(ctx, message)
}

func (r *receiving) waiting() <-chan struct{} {
	if r.receiver == nil {
		return nil
	}
	return r.receiver.Outbox().Waiting()
}

func (r *receiving) due() bool { return r.receiver != nil && r.receiver.Outbox().Due() }

func (r *receiving) hurry() {
	if r.receiver != nil {
		r.receiver.Outbox().Flush()
	}
}

func (r *receiving) flush(ctx context.Context) error {
	acks := r.receiver.Outbox().Take()
	for len(acks) > 0 {
		n := min(len(acks), negotiate.MaxAcks(r.conn.MaxMessage()))
		message, err := r.session.Acks(r.message[:0], acks[:n])
		if err != nil {
			return err
		}
		if err := r.send(ctx, message); err != nil {
			return err
		}
		acks = acks[n:]
	}
	return nil
}

// patience is short: of what a sender does, pieces show up.
func (r *receiving) patience() time.Duration { return r.patienceWithPiece() }

func (r *receiving) commitment() commitment { return r.naming }

// settle keeps what a later copy can go on with, and nothing that is known to be wrong.
func (r *receiving) settle(failed error) (kept Kept, err error) {
	switch {
	case r.target == nil:
		return Kept{}, nil
	case failed == nil:
		return Kept{}, r.target.close()
	case worthless(failed):
		return Kept{}, r.target.discard()
	default:
		bytes, lost := r.target.keep()
		return Kept{Bytes: bytes, Lost: lost}, nil
	}
}

// abandon does nothing where the owner does not know of a target yet, or where it may have its name by now.
func (r *receiving) abandon(failed error) (kept Kept) {
	if !r.roomy || r.naming != free {
		return Kept{}
	}
	return Kept{Bytes: r.target.abandon(!worthless(failed))}
}

// worthless tells whether a failure says that what has come is of no use. Of a piece that never arrived that is not so: the others
// did.
func worthless(failed error) bool {
	if errors.Is(failed, pump.ErrCorrupted) {
		return false
	}
	return errors.Is(failed, ErrSourceChanged) || errors.Is(failed, ErrDigest) || discredited(failed)
}

// discredited tells whether the sender gave up for such a reason.
func discredited(failed error) bool {
	aborted, is := errors.AsType[*negotiate.PeerAborted](failed)
	if !is {
		return false
	}
	switch aborted.Code {
	case negotiate.AbortSourceChanged, negotiate.AbortDigest, negotiate.AbortRefused:
		return true
	}
	return false
}
