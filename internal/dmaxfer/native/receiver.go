package native

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// receiver is the role of the side that gets the file or the tree.
//
//	entries ─► planner ─┬─ directory, symlink, link ──────────────► result
//	                    ├─ unchanged ─────────────────────────────► answer
//	                    └─ needed ─► answer ... lanes ─┬─ in chunks ─► finish ─► commit ─► result
//	                                                   └─ in a pack ─► put, or stage ─► flush ─► result
type receiver struct {
	terms   *terms
	session *negotiate.NativeSession
	link    link
	account *account
	working context.Context // of the transfer; set by begin

	window  *Window
	lanes   *pump.Receiver // once this side's window is open
	planner *planner
	box     *pump.Batch[pump.Reply]

	// The following are used by the owner of the transfer only.
	held         []*arriving // announced, and waiting for their extended attributes, or behind one that does
	entries      int64       // announced
	allAnnounced bool        // nothing follows
	ended        bool        // the lanes have been told so
	whole        *arriving   // the only file, when all of it is stored
	announced    int64       // bytes of the files
	holes        int64       // bytes of holes that were announced
	renames      int         // jobs that rename a target
	message      []byte      // reused for each message
	acks         []negotiate.Ack
	answers      []negotiate.Answer
	results      []uint32
	failures     []failure

	mu          sync.Mutex
	table       [negotiate.MaxOpen]*arriving // undecided entries, by number
	open        int                          // number of entries in table
	needed      int                          // those of them whose content the sender is to send
	directories map[*directory]bool          // that have not got their final attributes yet
	finishing   bool                         // nothing will be announced any more
	missing     uint32                       // entries that the sender could not announce
	lanesDone   bool
	concluding  bool        // everything is decided
	failed      int64       // entries
	failedFiles failedPaths // if hard links are preserved
	root        outcome
	staged      []stagedFile
	stageable   *weighted.Weighted // has stageLimit permits, one for each file that is staged
	stageLimit  int64
	flushing    bool          // a job commits staged files
	commits     int           // lanes and jobs that are committing files
	halted      bool          // nothing may be committed any more
	idle        chan struct{} // closed when halted and nothing is being committed
}

func newReceiver(t *terms, session *negotiate.NativeSession, l link, a *account) *receiver {
	maxMessage := t.config.Conn.MaxMessage()
	r := &receiver{
		terms: t, session: session, link: l, account: a,
		box:     pump.NewBatch[pump.Reply](2*int(t.plan.Depth), t.batch()),
		message: make([]byte, 0, maxMessage),
		acks:    make([]negotiate.Ack, 0, negotiate.MaxAcks(maxMessage)),
		answers: make([]negotiate.Answer, 0, negotiate.MaxAnswers(maxMessage)),
		results: make([]uint32, 0, negotiate.MaxResults(maxMessage)),
	}
	r.planner = newPlanner(r)
	r.stageLimit = stageLimit()
	r.stageable = weighted.NewWeighted(r.stageLimit)
	r.directories, r.failedFiles = make(map[*directory]bool), newFailedPaths()
	r.idle = make(chan struct{})
	return r
}

// begin implements role. The planner works in a job, since that can take as long as the disk does, while the window is
// opened.
func (r *receiver) begin(ctx context.Context) error {
	r.working = ctx
	if !r.terms.plan.Tree {
		r.terms.config.Progress.Enter(job.Preparing)
	}
	r.link.run(func() func() error {
		if err := r.planner.run(ctx); err != nil && ctx.Err() == nil {
			return failWith(err)
		}
		return nothing // an interruption does not end what is being committed
	})
	return nil
}

// windowOpened implements role.
func (r *receiver) windowOpened(ctx context.Context, w *Window) error {
	r.window = w
	r.start(ctx)
	return nil
}

// start starts the lanes once there is a window, and the size of a file is known.
func (r *receiver) start(ctx context.Context) {
	if r.lanes != nil || r.window == nil || r.entries == 0 {
		return
	}
	w := r.window
	r.lanes = pump.NewReceiver(pump.ReceiverConfig{
		Depth: r.terms.layout().Depth, Buffers: w.Buffers, Engines: w.Engines, InOrder: r.terms.inOrder(),
		Digest: r.terms.plan.Digest, Stages: r.terms.config.Progress.Stages(), Outbox: r.box,
		Pinning: r.terms.pinning(r.announced), Pace: r.link.pace(), Poller: r.link.poller(ctx),
		StorePack: r.storePack, Retransmit: r.account.retransmitting,
	})
	r.link.run(func() func() error {
		err := corrupted(r.terms.config.File.Path, r.lanes.Run(ctx))
		if err != nil && ctx.Err() != nil {
			return nothing
		}
		if err == nil {
			err = closeWindow(w)
		}
		if err != nil {
			return failWith(misplaced(err))
		}
		return r.lanesEnded
	})
	r.settled()
}

// endLanes says that no unit follows.
func (r *receiver) endLanes() {
	if r.lanes != nil && !r.ended {
		r.ended = true
		r.lanes.End()
	}
}

// lanesEnded follows the end of the lanes, and the release of the window.
func (r *receiver) lanesEnded() error {
	r.mu.Lock()
	r.lanesDone = true
	r.mu.Unlock()
	r.checkComplete()
	if r.whole != nil {
		return r.finishFile(r.whole)
	}
	return nil
}

// settled ends the lanes when the sender can announce no content any more, and the transfer when all is decided.
func (r *receiver) settled() {
	if r.allAnnounced && r.session.Undecided() == 0 {
		r.endLanes()
	}
	r.checkComplete()
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
		return r.end(step)
	case negotiate.PeerSum:
		return r.compare(ctx, step)
	case negotiate.EntryFailed:
		return r.withdrawn(step.Failure)
	case negotiate.PeerFinish:
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
		r.register(e)
		e.awaited = e.awaited && e.kind != negotiate.EntryFile // of that they come when it is needed
		r.held = append(r.held, e)
	}
	r.passHeld()
	r.start(ctx)
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

// addAttributes adds a fragment of the extended attributes of an entry.
func (r *receiver) addAttributes(number uint32, m negotiate.Metadata) error {
	e := r.entry(number)
	if e == nil {
		return nil // it has been decided
	}
	e.attributes = append(e.attributes, m.Part...)
	if uint32(len(e.attributes)) < m.Total {
		return nil
	}
	var err error
	if e.meta.Xattrs, err = decodeAttributes(e.attributes); err != nil {
		return err
	}
	e.attributes, e.awaited = nil, false
	r.passHeld()
	return nil
}

// takeChunks passes chunks to the lanes. Those of a file that has failed are only acknowledged.
func (r *receiver) takeChunks(records []negotiate.Record) error {
	for i := range records {
		if err := r.countHoles(&records[i]); err != nil {
			return err
		}
		e := r.entry(records[i].Entry)
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

// countHoles bounds what a few records, of up to the whole file each, can have this side read or digest.
func (r *receiver) countHoles(record *negotiate.Record) error {
	if record.Kind != negotiate.HoleRecord {
		return nil
	}
	r.holes += int64(record.Length)
	if limit := r.terms.config.MaxHoles; limit > 0 && r.holes > limit && r.terms.readsHoles() {
		return r.terms.overHoles()
	}
	return nil
}

// end notes what the sender has read of a file.
func (r *receiver) end(step negotiate.NativeStep) error {
	sum, err := digest.NewSum(r.terms.plan.Digest, step.Digest)
	if err != nil {
		return err
	}
	e := r.entry(step.Entry)
	if e == nil {
		return nil // it has failed here
	}
	if e.in == nil {
		return misuse(negotiate.TypeEnd, e.number)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended, e.endSize, e.endSum = true, int64(step.Size), sum
	r.checkStored(e)
	return nil
}

// compare has a file compared with the digest of the sender's.
func (r *receiver) compare(ctx context.Context, step negotiate.NativeStep) error {
	sum, err := digest.NewSum(r.terms.sumAlgorithm(), step.Digest)
	if err != nil {
		return err
	}
	if e := r.entry(step.Entry); e != nil {
		r.planner.compare(ctx, e, sum)
	}
	return nil
}

// withdrawn ends an entry that the sender could not send.
func (r *receiver) withdrawn(f negotiate.Failure) error {
	err := failed(f)
	if !r.terms.tolerant() {
		return err
	}
	if e := r.entry(f.Entry); e != nil && r.claimFailed(e) {
		r.abandonEntry(e, err)
	}
	return nil
}

// finish notes that nothing will be announced any more, except again.
func (r *receiver) finish(missing uint32) error {
	r.allAnnounced = true
	r.account.missing(int64(missing))
	r.planner.close()
	r.mu.Lock()
	r.finishing, r.missing = true, missing
	r.mu.Unlock()
	r.settled()
	return nil
}

// checkComplete ends the transfer once everything is decided and no lane is at work.
func (r *receiver) checkComplete() {
	r.mu.Lock()
	complete := r.finishing && r.lanesDone && r.open == 0 && len(r.directories) == 0 && !r.concluding
	r.concluding = r.concluding || complete
	r.mu.Unlock()
	if complete {
		r.link.post(r.conclude)
	}
}

// conclude flushes what is not durable yet, in a job, and reports the end of the transfer. An interruption does not keep
// the sender from learning what has been committed.
func (r *receiver) conclude() error {
	if err := r.flush(context.WithoutCancel(r.working)); err != nil {
		return err
	}
	if !r.session.Settled() {
		r.mu.Lock()
		r.concluding = false // until the sender has confirmed which entries have failed
		r.mu.Unlock()
		return nil
	}
	r.mu.Lock()
	whole := r.failed == 0 && r.missing == 0
	r.mu.Unlock()
	r.link.run(func() func() error {
		err := r.planner.closeTree(whole)
		return func() error {
			if err != nil {
				return err
			}
			return r.sendFinished(context.WithoutCancel(r.working))
		}
	})
	return nil
}

func (r *receiver) sendFinished(ctx context.Context) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	durability := r.terms.durability()
	r.terms.config.Progress.Enter(job.Concluding)
	message, err := r.session.Finished(r.message, durability)
	if err != nil {
		return err
	}
	r.account.done(durability)
	return r.link.send(ctx, message)
}

// outbox implements role. Nothing is sent that would let the sender announce content before there are lanes.
func (r *receiver) outbox() outbox {
	if r.lanes == nil {
		return nil
	}
	return r.box
}

// flush implements role. Acknowledgements come first: the result of a file follows that of its last chunk.
func (r *receiver) flush(ctx context.Context) error {
	replies := r.box.Take()
	r.acks = r.acks[:0]
	for i := range replies {
		if replies[i].Other == nil {
			r.acks = append(r.acks, replies[i].Ack)
		}
	}
	if err := sendList(ctx, r.link, r.message, negotiate.MaxAcks(cap(r.message)), r.acks, r.session.Acks); err != nil {
		return err
	}
	r.answers, r.results = r.answers[:0], r.results[:0]
	r.failures = r.failures[:0]
	for i := range replies {
		switch reply := replies[i].Other.(type) {
		case negotiate.Answer:
			r.answers = append(r.answers, reply)
		case []uint32:
			r.results = append(r.results, reply...)
		case failure:
			r.failures = append(r.failures, reply)
		}
	}
	if err := r.sendOutcomes(ctx); err != nil {
		return err
	}
	r.settled()
	return nil
}

func (r *receiver) sendOutcomes(ctx context.Context) error {
	most := cap(r.message)
	if r.session.State() == negotiate.Cancelling {
		r.answers = r.answers[:0] // a sender that has given up wants none
	}
	err := sendList(ctx, r.link, r.message, negotiate.MaxAnswers(most), r.answers, r.session.Answers)
	if err != nil {
		return err
	}
	err = sendList(ctx, r.link, r.message, negotiate.MaxResults(most), r.results, r.session.Results)
	if err != nil {
		return err
	}
	for _, f := range r.failures {
		if !f.late && !r.session.MayFail(f.entry) {
			continue // the sender has failed it, too
		}
		message, err := r.session.Fail(r.message, negotiate.Failure{
			Entry: f.entry, Code: r.link.code(f.err), Text: f.err.Error(),
		})
		if err != nil {
			return err
		}
		if err := r.link.send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// patience implements role. What a sender does shows in its chunks, unless it looks for something to send, or computes
// a digest.
func (r *receiver) patience() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.flushing || r.concluding: // the sender waits for this side
		return slowFlush
	case r.needed == 0 && !r.finishing && r.terms.plan.Tree:
		return slowWalk
	}
	patience := max(r.terms.chunkPatience(), slowWork(r.planner.summing()))
	if r.terms.plan.Tree { // many files may come in one chunk
		patience = max(patience, time.Duration(r.needed)*slowEntry)
	}
	return patience
}

// committing and committed implement role.
func (r *receiver) committing() bool { return r.renames > 0 }

func (r *receiver) committed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.root != undecided
}

// halt implements role.
func (r *receiver) halt(ctx context.Context) error {
	r.mu.Lock()
	r.halted = true
	if r.commits == 0 {
		close(r.idle)
	}
	r.mu.Unlock()
	select {
	case <-r.idle:
		return nil
	case <-ctx.Done():
		return errors.New("a file is still being committed")
	}
}

// beginCommit reports whether a lane or a job may commit files. If so it calls endCommit when their results are in the
// outbox.
func (r *receiver) beginCommit() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halted {
		return false
	}
	r.commits++
	return true
}

func (r *receiver) endCommit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.commits--; r.commits == 0 && r.halted {
		close(r.idle)
	}
}

// errHalted ends what would commit files after halt.
var errHalted = errors.New("the transfer was given up")

// settle implements role. It keeps what a later transfer can resume, and nothing that is known to be wrong.
func (r *receiver) settle(failed error) (kept job.Kept, err error) {
	r.mu.Lock()
	staged, open := r.staged, r.table
	r.mu.Unlock()
	r.discard(staged)
	var errs []error
	for _, e := range open {
		if e == nil || e.target == nil {
			continue
		}
		if failed != nil && !worthless(failed) {
			bytes, lost := e.target.keep()
			kept = job.Kept{Bytes: kept.Bytes + bytes, Lost: lost}
			continue
		}
		errs = append(errs, r.settleTarget(e.target, failed))
	}
	for d := range r.directories {
		d.close()
	}
	errs = append(errs, r.planner.settle())
	return kept, errors.Join(errs...)
}

// settleTarget ends a target that is not committed.
func (r *receiver) settleTarget(t target, failed error) error {
	if worthless(failed) || r.terms.config.NoResume {
		return t.discard()
	}
	_, _ = t.keep()
	return nil
}

// abandon implements role. It does nothing before the target has been preallocated.
func (r *receiver) abandon(failed error) (kept job.Kept) {
	r.mu.Lock()
	open := r.table
	r.mu.Unlock()
	for _, e := range open {
		if e != nil && e.target != nil {
			kept.Bytes += e.target.abandon(!worthless(failed))
		}
	}
	return kept
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
