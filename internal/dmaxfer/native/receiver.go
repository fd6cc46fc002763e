package native

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// receiver is the role of the side that gets the file.
type receiver struct {
	terms      *terms
	session    *negotiate.NativeSession
	link       link
	account    *account
	opened     target // set by the job that opens it; settled after all jobs have returned
	target     target // the same once it has been preallocated
	window     *Window
	lanes      *pump.Receiver
	acks       *list[negotiate.Ack]
	size       int64      // of the source in bytes, by END
	sum        digest.Sum // of the source, by END
	holes      int64      // bytes of holes that were announced
	attributes []byte     // extended ones, as they arrive
}

func newReceiver(t *terms, session *negotiate.NativeSession, l link, a *account) *receiver {
	maxMessage := t.config.Conn.MaxMessage()
	return &receiver{
		terms: t, session: session, link: l, account: a,
		acks: newList(l, maxMessage, negotiate.MaxAcks(maxMessage), session.Acks),
	}
}

// begin implements role. It opens and preallocates the target in a job, since that can take as long as the disk does,
// while the window is opened.
func (r *receiver) begin(ctx context.Context) error {
	r.terms.config.Progress.Enter(job.Preparing)
	r.link.run(func() func() error {
		err := r.open(ctx)
		return func() error { return r.allocated(ctx, err) }
	})
	return nil
}

func (r *receiver) open(ctx context.Context) error {
	target, err := openTarget(ctx, r.terms)
	if err != nil {
		return err
	}
	r.opened = target
	return target.allocate(ctx)
}

func (r *receiver) allocated(ctx context.Context, err error) error {
	if r.opened != nil {
		for _, sentence := range r.opened.warnings() {
			r.account.notify(job.Warned{Text: sentence})
		}
	}
	if err != nil {
		return err
	}
	r.target = r.opened
	return r.start(ctx)
}

// windowOpened implements role.
func (r *receiver) windowOpened(ctx context.Context, w *Window) error {
	r.window = w
	return r.start(ctx)
}

// start tells the sender to begin, once there are a window and a target.
func (r *receiver) start(ctx context.Context) error {
	if r.target == nil || r.window == nil {
		return nil
	}
	progress := r.terms.config.Progress
	r.lanes = pump.NewReceiver(pump.ReceiverConfig{
		Target: r.target, Depth: r.terms.layout().Depth, Buffers: r.window.Buffers, Engines: r.window.Engines,
		InOrder: r.terms.inOrder(), SerialWrites: !r.target.concurrent(),
		Digest: r.terms.plan.Digest, Stages: progress.Stages(), Batch: r.terms.batch(), Pinning: r.terms.pinning(),
		Pace: r.link.pace(), Poller: r.link.poller(ctx), Moved: r.stored, Retransmit: r.account.retransmitting,
	})
	resume := r.target.resumable()
	r.account.begins(resume)
	message, err := r.session.Ready(uint64(resume))
	if err != nil {
		return err
	}
	progress.Enter(job.Moving)
	r.link.run(func() func() error {
		if err := r.receiveAll(ctx); err != nil {
			return failWith(misplaced(err))
		}
		return func() error { return r.finish(ctx) }
	})
	return r.link.send(ctx, message)
}

func (r *receiver) receiveAll(ctx context.Context) error {
	if err := r.lanes.Run(ctx); err != nil {
		return corrupted(r.terms.config.File.Path, err)
	}
	return closeWindow(r.window)
}

// misplaced blames the sender for chunks that do not make up a file.
func misplaced(err error) error {
	for _, why := range []error{
		digest.ErrRange, digest.ErrOverlap, digest.ErrOrder, digest.ErrParked, digest.ErrCheck,
	} {
		if errors.Is(err, why) {
			return &negotiate.Error{
				State: negotiate.Receiving, Message: negotiate.TypeChunks, Err: negotiate.ErrMalformed,
				Detail: err.Error(),
			}
		}
	}
	return err
}

// stored is called by the lanes, one at a time. The length of a stream shows only here.
func (r *receiver) stored(chunk pump.Chunk, prefix int64) error {
	if limit := r.terms.config.MaxBytes; limit > 0 && prefix > limit {
		return job.OverLimit(r.terms.config.File.Path, prefix, limit)
	}
	r.account.chunkMoved(chunk)
	return r.target.advance(prefix)
}

// take implements role.
func (r *receiver) take(ctx context.Context, step negotiate.NativeStep) error {
	switch step.Event {
	case negotiate.Announced:
		if err := r.countHoles(step.Records); err != nil {
			return err
		}
		r.lanes.Take(step.Records)
		return nil
	case negotiate.PeerMetadata:
		r.attributes = append(r.attributes, step.Metadata.Part...)
		return nil
	case negotiate.PeerEnded:
		return r.end(step)
	case negotiate.PeerCommit:
		r.commit(ctx)
		return nil
	}
	return fmt.Errorf("internal error: unexpected %s on the receiver", step.Event)
}

// countHoles bounds what a few records, of up to the whole file each, can have this side read or digest.
func (r *receiver) countHoles(records []negotiate.Record) error {
	for i := range records {
		if records[i].Kind == negotiate.HoleRecord {
			r.holes += int64(records[i].Length)
		}
	}
	if limit := r.terms.config.MaxHoles; limit > 0 && r.holes > limit && r.terms.readsHoles() {
		return r.terms.overHoles()
	}
	return nil
}

// end notes what the sender has read. The lanes then end.
func (r *receiver) end(step negotiate.NativeStep) error {
	sum, err := digest.NewSum(r.terms.plan.Digest, step.Digest)
	if err != nil {
		return err
	}
	r.size, r.sum = int64(step.Size), sum
	r.lanes.End()
	return nil
}

// finish compares what has been written with what has been read, and makes it durable.
func (r *receiver) finish(ctx context.Context) error {
	size, sum := r.lanes.Sum()
	if size != r.size || sum != r.sum {
		return job.NewError(job.ErrDigest, nil, "copy again; if it recurs, check the memory of both sides",
			"digest mismatch of %s: source has %d bytes, %s, target %d bytes, %s",
			r.terms.config.File.Path, r.size, r.sum, size, sum)
	}
	if err := r.terms.checkContent(size, sum); err != nil {
		return err
	}
	r.account.summary.Size, r.account.summary.Sum = size, sum
	r.terms.config.Progress.Enter(job.Finishing)
	r.link.run(func() func() error {
		if err := r.target.finish(ctx, sum, r.attributes); err != nil {
			return failWith(err)
		}
		return func() error { return r.sendPrepared(ctx, sum) }
	})
	return nil
}

func (r *receiver) sendPrepared(ctx context.Context, sum digest.Sum) error {
	message, err := r.session.Prepared(sum.Bytes())
	if err != nil {
		return err
	}
	return r.link.send(ctx, message)
}

// commit gives the target its final name, as the sender has asked for.
func (r *receiver) commit(ctx context.Context) {
	r.link.run(func() func() error {
		if err := r.target.commit(); err != nil {
			return failWith(err)
		}
		return func() error { return r.sendDone(context.WithoutCancel(ctx)) }
	})
}

func (r *receiver) sendDone(ctx context.Context) error {
	r.account.done(r.target.durability())
	r.terms.config.Progress.Enter(job.Concluding)
	message, err := r.session.Done(r.account.summary.Durability)
	if err != nil {
		return err
	}
	return r.link.send(ctx, message)
}

// outbox implements role.
func (r *receiver) outbox() outbox {
	if r.lanes == nil {
		return nil
	}
	return r.lanes.Outbox()
}

// flush implements role.
func (r *receiver) flush(ctx context.Context) error { return r.acks.send(ctx, r.lanes.Outbox().Take()) }

// patience implements role. It is short: what a sender does shows in its chunks.
func (r *receiver) patience() time.Duration { return r.terms.chunkPatience() }

// settle implements role. It keeps what a later transfer can resume, and nothing that is known to be wrong.
func (r *receiver) settle(failed error) (kept job.Kept, err error) {
	switch {
	case r.opened == nil:
		return job.Kept{}, nil
	case failed == nil:
		return job.Kept{}, r.opened.close()
	case worthless(failed):
		return job.Kept{}, r.opened.discard()
	default:
		bytes, lost := r.opened.keep()
		return job.Kept{Bytes: bytes, Lost: lost}, nil
	}
}

// abandon implements role. It does nothing before the target has been preallocated.
func (r *receiver) abandon(failed error) (kept job.Kept) {
	if r.target == nil {
		return job.Kept{}
	}
	return job.Kept{Bytes: r.target.abandon(!worthless(failed))}
}

// worthless reports whether a failure means that what was received is of no use. If a chunk could not be transferred
// without corruption, the others still are.
func worthless(failed error) bool {
	if errors.Is(failed, pump.ErrCorrupted) {
		return false
	}
	if errors.Is(failed, job.ErrSourceChanged) || errors.Is(failed, job.ErrDigest) {
		return true
	}
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
