package native

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// receiver is the role of the side that gets the file or the tree.
//
//	entries ─► planner ─┬─ directory, symlink, link ──────────────► result
//	                    ├─ unchanged ─────────────────────────────► answer
//	                    └─ needed ─► answer ... lanes ─┬─ in chunks ─► finish ─► commit ─► result
//	                                                   └─ in a pack ─► put, or stage ─► flush ─► result
//
// The owner of the transfer uses it. What lanes and jobs share with it is in the parts, which say who may call them.
type receiver struct {
	*outcomes
	planner *planner
	digests *digestComparison
	chunks  *chunkStore
	packs   *packStore
	gate    *commitGate
	end     *conclusion

	window *window.Window // once it is open
	due    bool           // entries were announced; of a single file: it has been planned
	lanes  *pump.Receiver // nil: not started yet
	ended  bool           // the lanes have been told that no unit follows
	whole  *arriving      // the only file, when all of it is stored

	held         []*arriving // announced, and waiting for their extended attributes, or behind one that does
	entries      int64       // announced
	announced    int64       // bytes of the files
	allAnnounced bool        // nothing follows
}

func newReceiver(c *common) *receiver {
	r := &receiver{gate: newCommitGate()}
	targets, staged := fileLimits(c.terms.config.Local)
	r.outcomes = &outcomes{
		common: c, replies: newReplies(c, r.settled), open: newOpenEntries(targets, c.terms.plan.Links),
	}
	r.chunks = &chunkStore{outcomes: r.outcomes, gate: r.gate, wholeStored: r.wholeStored}
	r.planner = newPlanner(r.outcomes, r.chunks)
	r.digests = &digestComparison{planner: r.planner, queue: digestQueue{link: c.link}}
	r.packs = newPackStore(r.outcomes, r.gate, staged, r.planner.flushTree)
	r.end = &conclusion{outcomes: r.outcomes, usesTree: r.packs.isFlushing, closeTree: r.planner.closeTree}
	r.changed = r.end.check
	return r
}

// begin implements role. The planner works in a job, since that can take as long as the disk does, while the window is
// opened.
func (r *receiver) begin(ctx context.Context) error {
	r.chunks.working, r.packs.working, r.end.working = ctx, ctx, ctx
	if r.terms.plan.Tree {
		r.runPlanner(ctx, func() error { return r.planner.run(ctx) }, nothing)
	} else {
		r.terms.config.Progress.Enter(job.Preparing)
	}
	return nil
}

// runPlanner makes a call of the planner in a job, after which the owner calls planned.
func (r *receiver) runPlanner(ctx context.Context, call, planned func() error) {
	r.link.run(func() func() error {
		switch err := call(); {
		case err == nil:
			return planned
		case ctx.Err() == nil:
			return failWith(err)
		}
		return nothing // an interruption does not end what is being committed
	})
}

// windowOpened implements role.
func (r *receiver) windowOpened(ctx context.Context, w *window.Window) error {
	r.window = w
	return r.start(ctx)
}

// start starts the lanes once there are a window and entries, and sends the answers that waited for that. Those of a
// single file start when its target is open, which needs the CPUs on which they would poll.
func (r *receiver) start(ctx context.Context) error {
	if r.lanes != nil || r.window == nil || !r.due {
		return nil
	}
	w := r.window
	r.lanes = pump.NewReceiver(pump.ReceiverConfig{
		Depth: r.terms.layout().Depth, Buffers: w.Buffers, Engines: w.Engines, InPlace: w.InPlace,
		InOrder: r.terms.inOrder(), Pushed: r.terms.plan.Path.Pushed(),
		Digest: r.terms.plan.Digest, Stages: r.terms.config.Progress.Stages(), Outbox: r.replies.box,
		Pinning: r.terms.pinning(r.announced), Pace: r.link.pace(), Poller: r.link.poller(),
		StorePack: r.packs.storePack, Retransmit: r.account.retransmitting, Log: r.terms.contentLog(),
	})
	r.terms.config.Log.Debug().Int("lanes", len(w.Engines)).Msg("lanes started")
	r.link.run(func() func() error {
		err := r.terms.corrupted(r.terms.config.File.Path, r.lanes.Run(ctx))
		r.terms.config.Log.Debug().Err(err).Msg("lanes ended")
		if err != nil && ctx.Err() != nil {
			return nothing
		}
		if err == nil {
			err = closeWindow(w)
		}
		if err != nil {
			return failWith(misplaced(err))
		}
		return r.lanesEnded()
	})
	return r.flush(ctx)
}

// endLanes says that no unit follows.
func (r *receiver) endLanes() {
	if r.lanes != nil && !r.ended {
		r.ended = true
		r.lanes.End()
	}
}

// wholeStored follows the last byte of the only file.
func (r *receiver) wholeStored(e *arriving) {
	r.whole = e
	r.endLanes()
}

// lanesEnded follows the end of the lanes, and the release of the window, in the job that ran them.
func (r *receiver) lanesEnded() (next func() error) {
	r.end.lanesEnded()
	r.end.check()
	if r.whole == nil { // set before the lanes ended
		return nothing
	}
	return r.chunks.prepare(r.whole)
}

// settled ends the lanes when the sender can announce no content any more, and the transfer when all is decided.
func (r *receiver) settled() {
	if r.allAnnounced && r.session.Undecided() == 0 {
		r.endLanes()
	}
	r.end.check()
}

// misplaced blames the sender for chunks that do not make up a file.
func misplaced(err error) error {
	for _, why := range []error{
		digest.ErrRange, digest.ErrOverlap, digest.ErrOrder, digest.ErrParked, digest.ErrCheck,
	} {
		if errors.Is(err, why) {
			return &negotiate.Error{
				State: negotiate.Transferring, Message: negotiate.TypeChunks, Err: negotiate.ErrMalformed,
				Detail: err.Error(),
			}
		}
	}
	return err
}

// take implements role.
func (r *receiver) take(ctx context.Context, step negotiate.NativeStep) error {
	switch step.Event {
	case negotiate.TransferBegun:
		return nil
	case negotiate.None: // the sender confirms that an entry has failed
		r.settled()
		return nil
	case negotiate.EntriesAnnounced:
		return r.announce(ctx, step.Entries)
	case negotiate.PeerMetadata:
		return r.addAttributes(step.Entry, step.Metadata)
	case negotiate.Announced:
		return r.takeChunks(step.Records)
	case negotiate.Packed:
		r.lanes.TakePack(step.Pack)
		return nil
	case negotiate.PeerEnded:
		return r.endFile(step)
	case negotiate.PeerSum:
		return r.compare(ctx, step)
	case negotiate.EntryFailed:
		return r.withdrawn(step.Failure)
	case negotiate.PeerFinish:
		r.account.peerNamed(step.Transport)
		return r.finish(step.Missing)
	}
	return fmt.Errorf("internal error: unexpected %s on the receiver", step.Event)
}

// announce passes entries to the planner in their order. One with extended attributes waits until they have arrived.
func (r *receiver) announce(ctx context.Context, entries []negotiate.Entry) error {
	for i := range entries {
		e := newArriving(&entries[i])
		r.announced += max(e.size, 0)
		if err := r.terms.checkSize(r.announced); err != nil {
			return err
		}
		r.entries++
		if err := r.terms.checkEntries(r.entries); err != nil {
			return err
		}
		r.account.found(e.size)
		r.terms.config.Mirror.Announced(e.kind, e.depth, e.name)
		r.open.add(e)
		e.awaited = e.hasAttributes && e.kind != negotiate.EntryFile // of that they come when it is needed
		r.held = append(r.held, e)
	}
	if !r.terms.plan.Tree {
		return r.planFile(ctx)
	}
	r.passHeld()
	r.due = true
	return r.start(ctx)
}

// planFile has the only entry of a transfer planned.
func (r *receiver) planFile(ctx context.Context) error {
	e := r.held[0]
	r.held = nil
	r.runPlanner(ctx, func() error { return r.planner.plan(ctx, e) }, func() error {
		r.due = true
		return r.start(ctx)
	})
	return nil
}

// passHeld passes the entries to the planner that do not wait for attributes.
func (r *receiver) passHeld() {
	ready := 0
	for ready < len(r.held) && !r.held[ready].awaited {
		ready++
	}
	r.planner.add(r.held[:ready])
	r.held = r.held[:copy(r.held, r.held[ready:])]
}

// addAttributes adds a fragment of the extended attributes of an entry. Of a directory or symlink that exceeds the
// limit they are dropped, and the planner fails it.
func (r *receiver) addAttributes(number uint32, m negotiate.Metadata) error {
	e := r.open.entry(number)
	if e == nil {
		return nil // it has been decided
	}
	if m.Offset == 0 {
		if e.overLimit = !r.open.holdAttributes(e, int64(m.Total)); !e.overLimit {
			e.attributes = make([]byte, 0, m.Total)
		}
	}
	if !e.overLimit {
		e.attributes = append(e.attributes, m.Part...)
	}
	if m.Offset+uint32(len(m.Part)) < m.Total {
		return nil
	}
	if !e.overLimit {
		attributes, err := decodeAttributes(e.attributes)
		if err != nil {
			return err
		}
		e.meta.Xattrs, e.attributes = attributes, nil
	}
	e.awaited = false
	r.passHeld()
	return nil
}

// takeChunks passes chunks to the lanes. Those of a file that has failed are only acknowledged.
func (r *receiver) takeChunks(records []negotiate.Record) error {
	for i := range records {
		e := r.open.entry(records[i].Entry)
		if e != nil && r.countsTooManyHoles(e, &records[i]) {
			if err := r.chunks.failNow(e, r.terms.overHoles(e.path)); err != nil {
				return err
			}
			e = nil
		}
		switch {
		case e == nil:
			r.lanes.Take(records[i], nil)
		case e.in == nil:
			return misuse(negotiate.TypeChunks, e.number)
		default:
			r.lanes.Take(records[i], e.in)
		}
	}
	return nil
}

// misuse returns the error for content that comes in another form than that of its entry.
func misuse(message negotiate.Type, entry uint32) error {
	return &negotiate.Error{
		State: negotiate.Transferring, Message: message, Err: negotiate.ErrOutOfOrder,
		Detail: fmt.Sprintf("entry %d does not expect it", entry),
	}
}

// countsTooManyHoles bounds what a few records, of up to the whole file each, can have this side read or digest.
func (r *receiver) countsTooManyHoles(e *arriving, record *negotiate.Record) bool {
	if record.Kind != negotiate.HoleRecord {
		return false
	}
	e.holes += int64(record.Length)
	return r.terms.limitsHoles() && e.holes > r.terms.config.MaxHoles
}

// endFile notes what the sender has read of a file.
func (r *receiver) endFile(step negotiate.NativeStep) error {
	sum, err := digest.NewSum(r.terms.plan.Digest, step.Digest)
	if err != nil {
		return err
	}
	e := r.open.entry(step.Entry)
	switch {
	case e == nil:
		return nil // it has failed here
	case e.in == nil:
		return misuse(negotiate.TypeEnd, e.number)
	}
	r.chunks.end(e, int64(step.Size), sum)
	return nil
}

// compare has a file compared with the digest of the sender's.
func (r *receiver) compare(ctx context.Context, step negotiate.NativeStep) error {
	sum, err := digest.NewSum(r.terms.sumAlgorithm(), step.Digest)
	if err != nil {
		return err
	}
	if e := r.open.entry(step.Entry); e != nil {
		r.digests.compare(ctx, e, sum)
	}
	return nil
}

// withdrawn ends an entry that the sender could not send.
func (r *receiver) withdrawn(f negotiate.Failure) error {
	err := failed(f)
	if !r.terms.tolerant() {
		return err
	}
	if e := r.open.entry(f.Entry); e != nil {
		r.outcomes.withdrawn(e, err)
	}
	return nil
}

// finish notes that nothing will be announced any more, except again.
func (r *receiver) finish(missing uint32) error {
	r.allAnnounced = true
	r.account.walked()
	r.account.missingThere(int64(missing))
	r.planner.close()
	r.end.finish()
	r.settled()
	return nil
}

// pathOf implements role. The planner may be about to set the path of an entry that has no answer.
func (r *receiver) pathOf(open negotiate.OpenEntry) string {
	e := r.open.entry(open.Number)
	switch {
	case !r.terms.plan.Tree:
		return r.terms.config.File.Path
	case e == nil: // it is being decided
		return ""
	case open.Phase == negotiate.PhaseUnanswered:
		return e.name
	}
	return e.path
}

// outbox implements role. Nothing is sent that would let the sender announce content before there are lanes.
func (r *receiver) outbox() outbox {
	if r.lanes == nil {
		return nil
	}
	return r.replies.box
}

// flush implements role.
func (r *receiver) flush(ctx context.Context) error { return r.replies.flush(ctx) }

// patience implements role. What a sender does shows in its chunks, unless it looks for something to send, or reads a
// file for its digest.
func (r *receiver) patience() time.Duration {
	finishing, concluding := r.end.waits()
	_, needed, _ := r.open.counts()
	switch {
	case concluding || r.packs.isFlushing(): // the sender waits for this side
		return slowFlush
	case needed == 0 && !finishing && r.terms.plan.Tree:
		return slowWalk
	}
	patience := max(r.terms.chunkPatience(), slowWork(r.digests.bytes+r.open.unended()))
	if r.terms.plan.Tree { // many files may come in one chunk
		patience = max(patience, time.Duration(needed)*slowEntry)
	}
	return patience
}

// committing implements role.
func (r *receiver) committing() bool { return r.chunks.renames > 0 }

// committed implements role. Before there are lanes the sender is told nothing, not even that the file was there
// already.
func (r *receiver) committed() bool { return r.lanes != nil && r.rootDecided.Load() }

// halt implements role.
func (r *receiver) halt(ctx context.Context) error { return r.gate.halt(ctx) }

// settle implements role. It keeps what a later transfer can resume, and nothing that is known to be wrong.
func (r *receiver) settle(failed error) (kept job.Kept, err error) {
	r.packs.settle()
	r.open.settle()
	var errs []error
	for _, t := range r.open.targets() {
		if failed != nil && !worthless(failed) {
			bytes, lost := t.keep()
			kept = job.Kept{Bytes: kept.Bytes + bytes, Lost: lost}
			continue
		}
		errs = append(errs, settleTarget(r.terms, t, failed))
	}
	r.directories.close()
	errs = append(errs, r.planner.settle())
	return kept, errors.Join(errs...)
}

// abandon implements role. It does nothing before the target has been preallocated.
func (r *receiver) abandon(failed error) (kept job.Kept) {
	for _, t := range r.open.targets() {
		kept.Bytes += t.abandon(!worthless(failed))
	}
	return kept
}

// settleTarget ends a target that is not committed.
func settleTarget(t *terms, of target, failed error) error {
	if worthless(failed) || t.config.NoResume {
		return of.discard()
	}
	_, _ = of.keep()
	return nil
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
