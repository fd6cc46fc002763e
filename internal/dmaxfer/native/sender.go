package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// sender is the role of the side that has the file or the tree.
//
//	source ─► announce ─► answers ─┬─ need ─► feed ─► lanes ─► results
//	                               ├─ sum  ─► digest in a job ─► another answer
//	                               └─ have
type sender struct {
	terms   *terms
	session *negotiate.NativeSession
	link    link
	account *account

	source      entrySource   // opened by the job that uses it, closed after all jobs have ended
	more        chan struct{} // delivers a token when the source may go on
	waiting     []sourceEntry // to be announced
	described   []negotiate.Entry
	walked      bool   // the source has come to its end
	unannounced uint32 // entries of the source that cannot be sent

	table      [negotiate.MaxOpen]*outgoing // undecided entries, by number
	announced  uint32                       // entries
	settling   settling
	unanswered int         // files
	owed       int64       // bytes that the receiver allocates, or flushes before a result
	sums       []*outgoing // whose digest the receiver wants; the first one is being computed
	allKnown   bool        // no file will be needed any more

	window *Window
	lanes  *pump.Sender // once this side's window is open
	feed   feed
	box    *pump.Batch[pump.Announcement]

	message []byte // reused for each message
	records []negotiate.Record

	mu     sync.Mutex
	unseen []sourceEntry // that the source has found, and the owner has not seen yet
}

// entrySource supplies the entries of a transfer, in their order.
type entrySource interface {
	// next returns some entries, or io.EOF after the last. It may take long, and is called by one job.
	next(ctx context.Context) ([]sourceEntry, error)

	// close releases what the source holds.
	close()
}

// sourceEntry is an entry of the transfer, or one that cannot be sent.
type sourceEntry struct {
	*outgoing
	described negotiate.Entry
	err       error // not nil: why it cannot be sent
}

func newSender(t *terms, session *negotiate.NativeSession, l link, a *account) *sender {
	maxMessage := t.config.Conn.MaxMessage()
	s := &sender{
		terms: t, session: session, link: l, account: a, more: make(chan struct{}, 1),
		box:     pump.NewBatch[pump.Announcement](2*int(t.plan.Depth), t.batch()),
		message: make([]byte, 0, maxMessage),
		records: make([]negotiate.Record, 0, negotiate.MaxRecords(maxMessage)),
	}
	s.settling.report = a.report
	s.feed = feed{
		terms: t, outbox: s.box, account: a, most: negotiate.MaxPacked(maxMessage, t.plan.Digest), ending: s.ending,
		opening: make(semaphore, 1),
	}
	return s
}

// begin implements role. It starts the transfer, and finds its entries in a job.
func (s *sender) begin(ctx context.Context) error {
	s.feed.working = ctx
	s.feed.failed = func(o *outgoing, err error) error { return s.cannotSend(ctx, o, err) }
	message, err := s.session.Transfer(s.message)
	if err != nil {
		return err
	}
	if err := s.link.send(ctx, message); err != nil {
		return err
	}
	if !s.terms.plan.Tree {
		s.terms.config.Progress.Enter(job.Preparing)
	}
	s.link.run(func() func() error {
		source, err := openSource(ctx, s.terms, s.account)
		if err == nil {
			s.source = source
			err = s.walk(ctx)
		}
		if err != nil {
			return failWith(err)
		}
		return func() error { return s.walkEnded(ctx) }
	})
	return nil
}

// walk passes the entries of the source to the owner of the transfer, and waits while enough of them wait to be
// announced.
func (s *sender) walk(ctx context.Context) error {
	for {
		entries, err := s.source.next(ctx)
		if len(entries) > 0 {
			s.mu.Lock()
			s.unseen = append(s.unseen, entries...)
			s.mu.Unlock()
			s.link.post(func() error { return s.found(ctx) })
			select {
			case <-s.more:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// found takes entries from the source.
func (s *sender) found(ctx context.Context) error {
	entries := s.takeUnseen()
	for i, e := range entries {
		if err := s.admit(e); err != nil {
			s.waiting = append(s.waiting, entries[i:]...) // to be released
			return err
		}
	}
	return s.advance(ctx)
}

// admit has an entry announced, unless it cannot be sent.
func (s *sender) admit(e sourceEntry) error {
	if e.err != nil {
		return s.missing(e)
	}
	s.account.found(e.size)
	if err := s.terms.checkSize(s.account.bytesFound()); err != nil {
		return err
	}
	s.waiting = append(s.waiting, e)
	return nil
}

func (s *sender) takeUnseen() []sourceEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.unseen
	s.unseen = nil
	return entries
}

// missing counts an entry that the receiver does not learn of.
func (s *sender) missing(e sourceEntry) error {
	if !s.terms.tolerant() || e.path == "" { // without its root there is no tree
		return e.err
	}
	s.unannounced++
	s.account.found(0)
	s.account.decided(e.path, e.kind, 0, job.Failed, e.err)
	return nil
}

func (s *sender) walkEnded(ctx context.Context) error {
	s.walked = true
	s.account.walked()
	return s.advance(ctx)
}

// advance announces as many entries as the protocol permits, and lets the lanes end after the last file.
func (s *sender) advance(ctx context.Context) error {
	for len(s.waiting) > 0 {
		announced, err := s.announce(ctx)
		if err != nil {
			return err
		}
		if announced == 0 {
			break
		}
	}
	if len(s.waiting) < fewWaiting && !s.walked {
		select {
		case s.more <- struct{}{}:
		default:
		}
	}
	if s.walked && len(s.waiting) == 0 && s.unanswered == 0 && !s.allKnown {
		s.allKnown = true
		s.feed.finish()
		s.wake()
	}
	return nil
}

// announce sends one message with entries, and their extended attributes.
func (s *sender) announce(ctx context.Context) (announced int, err error) {
	s.described = s.described[:0]
	for i := range s.waiting {
		s.described = append(s.described, s.waiting[i].described)
		if len(s.waiting[i].attributes) > 0 && s.waiting[i].kind != negotiate.EntryFile {
			break // they come right after the entry
		}
	}
	if s.session.Room() == 0 {
		return 0, nil
	}
	message, used, err := s.session.Entries(s.message, s.described)
	if err != nil {
		return 0, err
	}
	sent := s.waiting[:used]
	for i := range sent {
		s.register(sent[i].outgoing, sent[i].described.Depth)
	}
	if err := s.link.send(ctx, message); err != nil {
		return 0, err
	}
	last := sent[used-1].outgoing
	s.waiting = s.waiting[:copy(s.waiting, s.waiting[used:])]
	if last.kind == negotiate.EntryFile {
		return used, nil // the receiver may not need them
	}
	return used, s.sendAttributes(ctx, last)
}

func (s *sender) register(o *outgoing, depth int) {
	o.number = s.announced
	s.settling.announced(o, depth)
	s.announced++
	s.table[o.number%negotiate.MaxOpen] = o
	if o.kind == negotiate.EntryFile {
		s.unanswered++
		s.owed += max(o.size, 0)
	}
}

// entry returns an entry that is not decided yet.
func (s *sender) entry(number uint32) (*outgoing, error) {
	if o := s.table[number%negotiate.MaxOpen]; o != nil && o.number == number {
		return o, nil
	}
	return nil, fmt.Errorf("internal error: entry %d is not known", number)
}

func (s *sender) sendAttributes(ctx context.Context, o *outgoing) error {
	most := negotiate.MaxMetadataPart(s.terms.config.Conn.MaxMessage())
	for offset, blob := 0, o.attributes; offset < len(blob); offset += most {
		message, err := s.session.Metadata(s.message, o.number, negotiate.Metadata{
			Total: uint32(len(blob)), Offset: uint32(offset), Part: blob[offset:min(offset+most, len(blob))],
		})
		if err != nil {
			return err
		}
		if err := s.link.send(ctx, message); err != nil {
			return err
		}
	}
	o.attributes = nil
	return nil
}

// windowOpened implements role. It starts the lanes.
func (s *sender) windowOpened(ctx context.Context, w *Window) error {
	s.window = w
	s.lanes = pump.NewSender(pump.SenderConfig{
		Feed: &s.feed, Slots: w.Slots, Engines: w.Engines, Lanes: s.terms.layout().Lanes,
		Digest: s.terms.plan.Digest, Stages: s.terms.config.Progress.Stages(), Outbox: s.box,
		Pinning: s.terms.pinning(s.terms.localSize()), Pace: s.link.pace(), Poller: s.link.poller(ctx),
	})
	s.link.run(func() func() error {
		err := corrupted(s.terms.config.File.Path, s.lanes.Run(ctx))
		if err == nil && s.feed.delivered.Load() { // otherwise the DPU may be about to import the window
			err = closeWindow(w)
		}
		if err != nil {
			return failWith(err)
		}
		return func() error { return s.finish(ctx) }
	})
	return nil
}

// wake has the lanes look for something to send.
func (s *sender) wake() {
	if s.lanes != nil {
		s.lanes.Wake()
	}
}

// finish tells the receiver that nothing follows.
func (s *sender) finish(ctx context.Context) error {
	if err := s.flush(ctx); err != nil { // the end of the last file
		return err
	}
	s.terms.config.Progress.Enter(job.Concluding)
	message, err := s.session.Finish(s.message, s.unannounced)
	if err != nil {
		return err
	}
	return s.link.send(ctx, message)
}

// take implements role.
func (s *sender) take(ctx context.Context, step negotiate.NativeStep) error {
	switch step.Event {
	case negotiate.None: // the receiver confirms that an entry has failed
		return s.advance(ctx)
	case negotiate.Answered:
		return s.answered(ctx, step.Answers)
	case negotiate.Acknowledged:
		s.lanes.Acknowledge(step.Acks)
		return nil
	case negotiate.Committed:
		action := job.Copied
		if s.terms.plan.DryRun {
			action = job.WouldCopy
		}
		for _, number := range step.Results {
			o, err := s.entry(number)
			if err != nil {
				return err
			}
			s.decide(o, action, nil)
		}
		return s.advance(ctx)
	case negotiate.EntryFailed:
		return s.refused(ctx, step.Failure)
	case negotiate.PeerFinished:
		s.settling.finish()
		s.account.done(step.Durability)
		return nil
	}
	return fmt.Errorf("internal error: unexpected %s on the sender", step.Event)
}

// answered follows the receiver's answers.
func (s *sender) answered(ctx context.Context, answers []negotiate.Answer) error {
	for _, a := range answers {
		o, err := s.entry(a.Entry)
		if err != nil {
			return err
		}
		switch {
		case a.Kind == negotiate.AnswerHave:
			s.decide(o, job.Unchanged, nil)
		case a.Kind == negotiate.AnswerSum:
			s.wantSum(ctx, o)
		case s.terms.plan.DryRun:
			s.decide(o, job.WouldCopy, nil)
		default:
			s.answer(o)
			s.account.begins(o.size, int64(a.Offset))
			o.resume = int64(a.Offset)
			if err := s.sendAttributes(ctx, o); err != nil {
				return err
			}
			s.feed.need(o)
			s.wake()
		}
	}
	return s.advance(ctx)
}

// answer notes that the receiver's answer for a file is final.
func (s *sender) answer(o *outgoing) {
	if !o.answered {
		o.answered = true
		s.unanswered--
		s.owed -= max(o.size, 0)
	}
}

// decide ends an entry. What lanes still have of it is not sent any more.
func (s *sender) decide(o *outgoing, action job.Action, err error) {
	s.table[o.number%negotiate.MaxOpen] = nil
	if o.kind == negotiate.EntryFile {
		s.answer(o)
	}
	if o.flushing {
		s.owed -= max(o.size, 0)
	}
	o.decide()
	if err == nil && s.terms.failsLate(o.kind) {
		s.account.decidedEntry()
		o.directory.decided(action)
	} else {
		s.account.decided(o.path, o.kind, o.size, action, err)
	}
}

// wantSum computes the digest of a file in a job, after those that were wanted before.
func (s *sender) wantSum(ctx context.Context, o *outgoing) {
	if s.sums = append(s.sums, o); len(s.sums) == 1 {
		s.computeSum(ctx)
	}
}

func (s *sender) computeSum(ctx context.Context) {
	o := s.sums[0]
	s.link.run(func() func() error {
		sum, err := sumOf(ctx, s.terms, o)
		if err == nil {
			err = s.ending(o, o.size, sum)
		}
		return func() error {
			if s.sums = s.sums[1:]; len(s.sums) > 0 {
				s.computeSum(ctx)
			}
			if err != nil || o.decided.Load() { // the receiver may have failed it meanwhile
				return s.cannotSend(ctx, o, err)
			}
			message, err := s.session.Sum(s.message, o.number, sum.Bytes())
			if err != nil {
				return err
			}
			return s.link.send(ctx, message)
		}
	})
}

// sumOf reads a file for its digest.
func sumOf(ctx context.Context, t *terms, o *outgoing) (digest.Sum, error) {
	if !o.acquire() {
		return digest.Sum{}, errDecided
	}
	defer o.letGo()
	c, err := o.open()
	if err != nil {
		return digest.Sum{}, err
	}
	defer c.close()
	sum, _, err := digest.Of(ctx, t.sumAlgorithm(), &sourceReader{source: c.source, progress: t.config.Progress})
	if err != nil {
		return digest.Sum{}, err
	}
	return sum, c.source.Verify()
}

// sourceReader reads a source from its beginning, and reports its progress.
type sourceReader struct {
	source   *disk.Source
	progress *job.Progress
	offset   int64
}

// Read implements io.Reader.
func (r *sourceReader) Read(p []byte) (int, error) {
	n := min(int64(len(p)), r.source.Info().Size-r.offset)
	if n == 0 {
		return 0, io.EOF
	}
	if err := r.source.ReadAt(p[:n], r.offset); err != nil {
		return 0, err
	}
	r.offset += n
	r.progress.Touch()
	return int(n), nil
}

// cannotSend goes on without an entry, unless it is all there is. Lanes call it, too.
func (s *sender) cannotSend(ctx context.Context, o *outgoing, err error) error {
	if o.decided.Load() {
		return nil
	}
	if _, ofFile := errors.AsType[*disk.Error](err); !ofFile || !s.terms.tolerant() {
		return err
	}
	s.link.post(func() error { return s.withdraw(ctx, o, err) })
	return nil
}

// withdraw tells the receiver that an entry cannot be sent.
func (s *sender) withdraw(ctx context.Context, o *outgoing, err error) error {
	if o.decided.Load() || !s.session.MayFail(o.number) {
		return nil
	}
	failure := negotiate.Failure{Entry: o.number, Code: s.link.code(err), Text: err.Error()}
	message, misuse := s.session.Fail(s.message, failure)
	if misuse != nil {
		return misuse
	}
	s.decide(o, job.Failed, err)
	if err := s.link.send(ctx, message); err != nil {
		return err
	}
	return s.advance(ctx)
}

// refused follows a failure of an entry on the receiver. That of a directory may come after its result.
func (s *sender) refused(ctx context.Context, f negotiate.Failure) error {
	err := failed(f)
	if !s.terms.tolerant() {
		return err
	}
	if o := s.table[f.Entry%negotiate.MaxOpen]; o != nil && o.number == f.Entry {
		s.decide(o, job.Failed, err)
		return s.advance(ctx)
	}
	s.settling.failed(f.Entry, err)
	return nil
}

// failed returns the error of an entry that the peer has failed.
func failed(f negotiate.Failure) error { return &negotiate.PeerAborted{Code: f.Code, Text: f.Text} }

// ending is called by a lane when all of a file has been read.
func (s *sender) ending(_ *outgoing, size int64, sum digest.Sum) error {
	if s.terms.plan.Tree {
		return nil
	}
	s.account.content(size, sum)
	return s.terms.checkContent(size, sum)
}

// outbox implements role.
func (s *sender) outbox() outbox { return s.box }

// flush implements role.
func (s *sender) flush(ctx context.Context) error {
	s.records = s.records[:0]
	for _, a := range s.box.Take() {
		var err error
		switch {
		case a.End != nil:
			err = s.sendEnd(ctx, a.End)
		case withdraw(a.Unit):
			s.lanes.Acknowledge([]negotiate.Ack{{Slot: uint32(a.Unit.Record.Slot)}})
		case a.Unit.Packed():
			err = s.sendPack(ctx, a.Unit)
		default:
			s.records = append(s.records, a.Unit.Record)
			if len(s.records) == cap(s.records) {
				err = s.sendChunks(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
	return s.sendChunks(ctx)
}

func (s *sender) sendChunks(ctx context.Context) error {
	if len(s.records) == 0 {
		return nil
	}
	message, err := s.session.Chunks(s.message, s.records)
	if err != nil {
		return err
	}
	s.records = s.records[:0]
	return s.link.send(ctx, message)
}

func (s *sender) sendPack(ctx context.Context, unit *pump.Unit) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message, err := s.session.Pack(s.message, unit.Pack)
	if err != nil {
		return err
	}
	if unit.Pack.Attempt == 0 {
		for _, o := range unit.Ref.([]*outgoing) {
			s.ended(o)
		}
	}
	return s.sendWhole(ctx, message)
}

func (s *sender) sendEnd(ctx context.Context, end *pump.End) error {
	o := s.table[end.Entry%negotiate.MaxOpen]
	if o == nil || o.number != end.Entry {
		return nil // it has been decided meanwhile
	}
	if err := s.sendChunks(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message, err := s.session.End(s.message, end.Entry, uint64(end.Size), end.Sum.Bytes())
	if err != nil {
		return err
	}
	s.ended(o)
	return s.sendWhole(ctx, message)
}

// sendWhole sends a message after which the receiver may commit. If it were interrupted it would not be known whether
// it was sent.
func (s *sender) sendWhole(ctx context.Context, message []byte) error {
	return s.link.send(context.WithoutCancel(ctx), message)
}

// ended notes that the receiver may flush and commit a file.
func (s *sender) ended(o *outgoing) {
	o.flushing = true
	s.owed += max(o.size, 0)
}

// patience implements role. It depends on what the receiver does: preallocating, filling and flushing files, reading
// them back, renaming them.
func (s *sender) patience() time.Duration {
	plan, patience := &s.terms.plan, s.terms.chunkPatience()
	if plan.StreamTarget { // which may stall for an idle timeout between any two steps
		patience = max(patience, s.terms.config.IdleTimeout*time.Duration(plan.Chunk/streamStep))
	}
	if open := s.session.Undecided(); open > 0 && plan.Tree || s.owed > 0 {
		owed := s.owed
		if plan.Readback {
			owed *= 2
		}
		patience = max(patience, slowWork(owed)+time.Duration(open)*slowEntry)
	}
	if plan.Tree && plan.Durability != negotiate.DurabilityNone {
		patience = max(patience, slowFlush)
	}
	if s.session.Unconfirmed() > 0 {
		patience = max(patience, job.PeerRenameTime)
	}
	if s.session.State() == negotiate.Finishing && plan.Tree { // the receiver flushes what is not durable yet
		patience = max(patience, slowWork(s.account.bytesFound()))
	}
	return patience
}

// committing and committed implement role.
func (s *sender) committing() bool { return false }
func (s *sender) committed() bool  { return s.account.renamed() }

// halt implements role.
func (s *sender) halt(context.Context) error { return nil }

// settle implements role. There is nothing to keep: the source is only read.
func (s *sender) settle(error) (kept job.Kept, err error) {
	if s.source != nil {
		s.source.close()
	}
	for _, o := range s.table {
		if o != nil {
			o.decide()
		}
	}
	for _, e := range append(s.waiting, s.takeUnseen()...) {
		e.decide()
	}
	return job.Kept{}, nil
}

// abandon implements role.
func (s *sender) abandon(error) job.Kept { return job.Kept{} }

// closeWindow releases a window as soon as nothing moves any more, so that a failure is one of the transfer.
func closeWindow(w *Window) error {
	if err := w.Close(); err != nil {
		return fmt.Errorf("releasing the window: %w", err)
	}
	return nil
}
