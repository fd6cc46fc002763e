package receive

import (
	"context"
	"errors"
	"fmt"
	"time"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Receiver is the role of the side that gets the file or the tree. The owner of the transfer uses it.
type Receiver struct {
	t        *role.Transfer
	replies  *replies
	results  *results
	planner  *planner
	digests  *digests
	files    *files
	packs    *packs
	gate     *commitGate
	finisher *finisher

	window *window.Window // once it is open
	due    bool           // entries were announced; of a single file: it has been planned
	lanes  *pump.Receiver // nil: not started yet
	ended  bool           // the lanes have been told that no unit follows
	whole  *entry         // the only file, when all of it is stored

	held      []*entry // announced, and waiting for their extended attributes, or behind one that does
	entries   int64    // announced
	announced int64    // bytes of the files
}

var _ role.Role = (*Receiver)(nil)

// New returns the role of the receiver in a transfer.
func New(t *role.Transfer) *Receiver {
	r := &Receiver{t: t, replies: newReplies(t), gate: newCommitGate()}
	targets, staged := disk.DescriptorLimits(native.MaxOpen, t.Params.Config.Local)
	limits := newLimits(r.replies, targets)
	r.results = &results{
		t: t, replies: r.replies, limits: limits, links: newLinks(t.Params.Plan.Links),
		directories: &directories{
			t: t, replies: r.replies, open: make(map[*directory]bool),
			rootLeft: func() { t.Link.Post(r.check) },
		},
	}
	r.files = &files{
		t: t, results: r.results, replies: r.replies, limits: limits, gate: r.gate, flush: r.Flush,
		wholeStored: r.wholeStored,
	}
	r.planner = newPlanner(t, r.results, r.files)
	r.digests = &digests{planner: r.planner, queue: role.DigestQueue{Link: t.Link}}
	r.packs = &packs{
		t: t, results: r.results, replies: r.replies, gate: r.gate, flushTree: r.planner.flushTree, flushed: r.check,
		staging: staging{permits: weighted.NewWeighted(staged)},
	}
	r.finisher = &finisher{
		t: t, replies: r.replies, directories: r.results.directories, packs: r.packs, gate: r.gate,
		closeTree: r.planner.closeTree,
	}
	return r
}

// Begin implements role.Role. The planner works in a job, since that can take as long as the disk does, while the
// window is opened.
func (r *Receiver) Begin(ctx context.Context) error {
	if r.t.Params.Plan.Tree {
		r.runPlanner(ctx, r.planner.run, role.Nothing)
	} else {
		r.t.Params.Config.Progress.Enter(job.Preparing)
	}
	return nil
}

// runPlanner makes a call of the planner in a job, after which the owner calls planned.
func (r *Receiver) runPlanner(ctx context.Context, call func(ctx context.Context) error, planned role.Call) {
	r.t.Link.Run(ctx, func(ctx context.Context) role.Call {
		switch err := call(ctx); {
		case err == nil:
			return planned
		case ctx.Err() == nil:
			return role.FailWith(err)
		}
		return role.Nothing // an interruption does not end what is being committed
	})
}

// WindowOpened implements role.Role.
func (r *Receiver) WindowOpened(ctx context.Context, w *window.Window) error {
	r.window = w
	return r.start(ctx)
}

// start starts the lanes once there are a window and entries, and sends the answers that waited for them. The lanes of
// a single file start when its target is open, which needs the CPUs on which they would poll.
func (r *Receiver) start(ctx context.Context) error {
	if r.lanes != nil || r.window == nil || !r.due {
		return nil
	}
	w, p := r.window, r.t.Params
	r.lanes = pump.NewReceiver(pump.ReceiverConfig{
		Depth: p.Layout().Depth, Buffers: w.Buffers, Engines: w.Engines, InPlace: w.InPlace,
		InOrder: p.InOrder(), Pushed: p.Plan.Path.Pushed(),
		Digest: p.Plan.Digest, Stages: p.Config.Progress.Stages(), Outbox: r.replies.box,
		Pinning: p.Pinning(r.announced), Pace: p.Pace(), Poller: r.t.Link.Poller(ctx),
		StorePack: r.packs.store, Retransmit: r.t.Stats.Retransmitting, Log: p.ContentLog(),
	})
	p.Config.Log.Debug().Int("lanes", len(w.Engines)).Msg("lanes started")
	r.t.Link.Run(ctx, r.runLanes)
	return r.Flush(ctx)
}

// runLanes runs the lanes, in a job, and releases the window. Without a tree it then verifies the file.
func (r *Receiver) runLanes(ctx context.Context) role.Call {
	err := r.t.Params.Corrupted(r.lanes.Run(ctx))
	r.t.Params.Config.Log.Debug().Err(err).Msg("lanes ended")
	if err != nil && ctx.Err() != nil {
		return role.Nothing
	}
	if err == nil {
		err = role.CloseWindow(r.window)
	}
	if err != nil {
		return role.FailWith(misplaced(err))
	}
	then := role.Call(r.check)
	if r.whole != nil { // set before the lanes ended
		then = r.files.verify(ctx, r.whole)
	}
	return func(ctx context.Context) error {
		r.finisher.lanesEnded = true
		return then(ctx)
	}
}

// misplaced blames the sender for chunks that do not make up a file.
func misplaced(err error) error {
	if !digest.IsRefused(err) {
		return err
	}
	return &wire.Error{
		State: native.Transferring, Message: wire.TypeChunks, Err: wire.ErrMalformed, Detail: err.Error(),
	}
}

// wholeStored follows the last byte of the only file.
func (r *Receiver) wholeStored(e *entry) {
	r.whole = e
	r.endLanes()
}

// endLanes says that no unit follows.
func (r *Receiver) endLanes() {
	if r.lanes != nil && !r.ended {
		r.ended = true
		r.lanes.End()
	}
}

// Handle implements role.Role.
func (r *Receiver) Handle(ctx context.Context, step native.Step) error {
	switch step.Event {
	case native.TransferBegun:
		return r.begun()
	case native.None: // the sender confirms that an entry has failed
		return r.settled(ctx)
	case native.EntriesAnnounced:
		return r.announce(ctx, step.Entries)
	case native.PeerMetadata:
		return r.addAttributes(step.Entry, step.Metadata)
	case native.Announced:
		return r.takeChunks(ctx, step.Records)
	case native.Packed:
		r.takePack(step.Pack)
		return nil
	case native.PeerEnded:
		return r.endFile(step)
	case native.PeerSum:
		return r.compare(ctx, step)
	case native.EntryFailed:
		if err := r.withdrawn(step.Failure); err != nil {
			return err
		}
		return r.settled(ctx)
	case native.PeerFinish:
		r.t.Stats.PeerNamed(step.Transport)
		return r.finish(ctx, step.Missing)
	}
	return fmt.Errorf("internal error: unexpected %s on the receiver", step.Event)
}

// begun accepts one transfer. The protocol permits more in a session, which a dma-copy does not make.
func (r *Receiver) begun() error {
	if r.t.Session.Transfers() == 0 {
		return nil
	}
	return &wire.Error{
		State: native.Ready, Message: wire.TypeTransfer, Err: wire.ErrOutOfOrder, Detail: "a second transfer",
	}
}

// undecided returns what this side knows of an entry; nil if it is decided.
func (r *Receiver) undecided(number uint32) *entry {
	if e, is := r.t.Session.Record(number).(*entry); is && !e.isDecided() {
		return e
	}
	return nil
}

// takeChunks passes chunks to the lanes. Chunks of a file that has failed are only acknowledged.
func (r *Receiver) takeChunks(ctx context.Context, records []native.Record) error {
	for i := range records {
		e := r.undecided(records[i].Entry)
		if e != nil && r.countsTooManyHoles(e, &records[i]) {
			if err := r.files.fail(ctx, e, r.t.Params.OverHoles(e.path)); err != nil {
				return err
			}
			e = nil
		}
		if e != nil {
			r.lanes.Take(records[i], e.in)
		} else {
			r.lanes.Take(records[i], nil)
		}
	}
	return nil
}

// countsTooManyHoles bounds what a few records, of up to the whole file each, can have this side read or digest.
func (r *Receiver) countsTooManyHoles(e *entry, record *native.Record) bool {
	if record.Kind != native.HoleRecord {
		return false
	}
	e.holes += int64(record.Length)
	return r.t.Params.LimitsHoles() && e.holes > r.t.Params.Config.MaxHoles
}

// takePack passes whole files to the lanes, which leave out those that have failed.
func (r *Receiver) takePack(pack native.Pack) {
	entries := make([]*entry, len(pack.Files))
	for i := range pack.Files {
		entries[i] = r.undecided(pack.Files[i].Entry)
	}
	r.lanes.TakePack(pack, entries)
}

// endFile notes what the sender has read of a file.
func (r *Receiver) endFile(step native.Step) error {
	sum, err := digest.NewSum(r.t.Params.Plan.Digest, step.Digest)
	if err != nil {
		return err
	}
	if e := r.undecided(step.Entry); e != nil { // otherwise it has failed here
		r.files.ended(e, int64(step.Size), sum)
	}
	return nil
}

// compare has a file compared with the digest of the sender's.
func (r *Receiver) compare(ctx context.Context, step native.Step) error {
	sum, err := digest.NewSum(r.t.Params.Plan.SumDigest(), step.Digest)
	if err != nil {
		return err
	}
	if e := r.undecided(step.Entry); e != nil {
		r.digests.compare(ctx, e, sum)
	}
	return nil
}

// withdrawn ends an entry that the sender could not send.
func (r *Receiver) withdrawn(f native.Failure) error {
	err := role.Failed(f)
	if !r.t.Params.Tolerant() {
		return err
	}
	if e := r.undecided(f.Entry); e != nil {
		r.results.withdrawn(e, err)
	}
	return nil
}

// finish notes that nothing will be announced any more, except again.
func (r *Receiver) finish(ctx context.Context, missing uint32) error {
	r.t.Stats.Walked()
	r.t.Stats.MissingThere(int64(missing))
	close(r.planner.queue)
	r.finisher.finishing = true
	return r.settled(ctx)
}

// check ends the transfer if nothing is left to do.
func (r *Receiver) check(ctx context.Context) error { return r.finisher.check(ctx) }

// settled ends the lanes when the sender can announce no content any more, and the transfer when all is decided.
func (r *Receiver) settled(ctx context.Context) error {
	if r.finisher.finishing && r.t.Session.Undecided() == 0 {
		r.endLanes()
	}
	return r.check(ctx)
}

// Outbox implements role.Role. Nothing is sent that would let the sender announce content before there are lanes.
func (r *Receiver) Outbox() role.Outbox {
	if r.lanes == nil {
		return nil
	}
	return r.replies.box
}

// Flush implements role.Role.
func (r *Receiver) Flush(ctx context.Context) error {
	if err := r.replies.flush(ctx); err != nil {
		return err
	}
	return r.settled(ctx)
}

// Grace implements role.Role. A sender's work shows in its chunks, unless it looks for something to send, or reads a
// file for its digest.
func (r *Receiver) Grace() time.Duration {
	needed, unended := 0, int64(0)
	for open := range r.t.Session.OpenEntries() {
		if open.Phase == native.PhaseNeeded || open.Phase == native.PhaseEnded {
			needed++
		}
		if e, is := open.Record.(*entry); is && !e.isDecided() {
			unended += e.awaitedEnd()
		}
	}
	tree := r.t.Params.Plan.Tree
	switch {
	case r.finisher.concluding || r.packs.staging.isFlushing(): // the sender waits for this side
		return role.SlowFlush
	case needed == 0 && !r.finisher.finishing && tree:
		return role.SlowWalk
	}
	grace := max(r.t.Params.ChunkGrace(), role.SlowWork(r.digests.bytes+unended))
	if tree { // many files may come in one chunk
		grace = max(grace, time.Duration(needed)*role.SlowEntry)
	}
	return grace
}

// Committing implements role.Role.
func (r *Receiver) Committing() bool { return r.files.renames > 0 }

// Committed implements role.Role. Before there are lanes the sender is told nothing, not even that the file was there
// already.
func (r *Receiver) Committed() bool { return r.lanes != nil && r.results.rootDecided.Load() }

// Halt implements role.Role.
func (r *Receiver) Halt(ctx context.Context) error { return r.gate.halt(ctx) }

// Close implements role.Role. It keeps what a later transfer can resume, and nothing that is known to be wrong.
func (r *Receiver) Close(failed error) (kept job.Kept, err error) {
	r.packs.staging.close()
	var errs []error
	for e := range r.unfinished {
		if e.own != nil {
			e.own.Release()
		}
		t := e.opened()
		switch {
		case t == nil:
		case failed != nil && !worthless(failed):
			bytes, lost := t.Keep()
			kept = job.Kept{Bytes: kept.Bytes + bytes, Lost: lost}
		default:
			errs = append(errs, endTarget(r.t.Params, t, failed))
		}
	}
	r.results.directories.closeAll()
	errs = append(errs, r.planner.closeFailed())
	return kept, errors.Join(errs...)
}

// Abandon implements role.Role. It does nothing before the target has been preallocated.
func (r *Receiver) Abandon(failed error) (kept job.Kept) {
	for e := range r.unfinished {
		if t := e.opened(); t != nil {
			kept.Bytes += t.Abandon(!worthless(failed))
		}
	}
	return kept
}

// unfinished iterates over the entries that are not decided here.
func (r *Receiver) unfinished(yield func(*entry) bool) {
	for record := range r.t.Session.Records() {
		if e, is := record.(*entry); is && !e.isDecided() && !yield(e) {
			return
		}
	}
}
