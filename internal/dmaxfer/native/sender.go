package native

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// sender is the role of the side that has the file or the tree.
//
//	source ─► announce ─► answers ─┬─ need ─► feed ─► lanes ─► results
//	                               ├─ sum  ─► digest in a job ─► another answer
//	                               └─ have
//
// The owner of the transfer uses it, except for cannotSend and ending.
type sender struct {
	*common
	working context.Context // of the transfer; set by begin

	finder      *finder
	announcer   *announcer
	entries     *sentEntries
	digests     digestQueue
	feed        *feed
	lanes       *pump.Sender // nil: not started yet
	transmitter *transmitter
}

func newSender(c *common) *sender {
	s := &sender{common: c, finder: &finder{common: c, more: make(chan struct{}, 1)}, entries: newSentEntries(c)}
	s.announcer = &announcer{common: c, finder: s.finder, entries: s.entries, known: s.allKnown}
	s.digests.link = c.link
	s.transmitter = newTransmitter(c, s.entries)
	s.feed = newFeed(c, s.transmitter.box, s.ending)
	return s
}

// begin implements role. It starts the transfer, and finds its entries in a job.
func (s *sender) begin(ctx context.Context) error {
	s.working, s.feed.working = ctx, ctx
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
		if err := s.finder.find(ctx, func() error { return s.announcer.found(ctx) }); err != nil {
			return failWith(err)
		}
		return func() error { return s.announcer.walkEnded(ctx) }
	})
	return nil
}

// windowOpened implements role. It starts the lanes.
func (s *sender) windowOpened(_ context.Context, w *window.Window) error {
	ctx := s.working
	s.lanes = pump.NewSender(pump.SenderConfig{
		Feed: s.feed, Slots: w.Slots, Engines: w.Engines,
		Lanes: s.terms.layout().Lanes, Digest: s.terms.plan.Digest, Stages: s.terms.config.Progress.Stages(),
		Outbox: s.transmitter.box, Pinning: s.terms.pinning(s.terms.localSize()), Pace: s.link.pace(),
		Poller: s.link.poller(), Log: s.terms.contentLog(),
	})
	s.transmitter.acknowledge = s.lanes.Acknowledge
	s.terms.config.Log.Debug().Int("lanes", s.terms.layout().Lanes).Msg("lanes started")
	s.link.run(func() func() error {
		err := s.terms.corrupted(s.terms.config.File.Path, s.lanes.Run(ctx))
		s.terms.config.Log.Debug().Err(err).Msg("lanes ended")
		if err == nil && (s.feed.delivered.Load() || s.terms.plan.Path.Connects()) {
			err = closeWindow(w) // without a unit the DPU may be about to import memory of this side
		}
		if err != nil {
			return failWith(err)
		}
		return func() error { return s.finish(ctx) }
	})
	return nil
}

// allKnown lets the lanes end after what they have.
func (s *sender) allKnown() {
	s.feed.finish()
	s.wake()
}

// wake has the lanes look for something to send.
func (s *sender) wake() {
	if s.lanes != nil {
		s.lanes.Wake()
	}
}

// finish tells the receiver that nothing follows, after the end of the last file.
func (s *sender) finish(ctx context.Context) error {
	if err := s.flush(ctx); err != nil || s.session.State() != negotiate.Transferring {
		return err
	}
	return s.sendFinish(ctx)
}

func (s *sender) sendFinish(ctx context.Context) error {
	s.terms.config.Progress.Enter(job.Concluding)
	message, err := s.session.Finish(s.message, s.announcer.unannounced, s.account.transport())
	if err != nil {
		return err
	}
	return s.link.send(ctx, message)
}

// take implements role.
func (s *sender) take(ctx context.Context, step negotiate.NativeStep) error {
	switch step.Event {
	case negotiate.None: // the receiver confirms that an entry has failed
		return s.announcer.advance(ctx)
	case negotiate.Answered:
		return s.answered(ctx, step.Answers)
	case negotiate.Acknowledged:
		s.lanes.Acknowledge(step.Acks)
		return nil
	case negotiate.Committed:
		for _, number := range step.Results {
			s.entries.decide(s.entries.entry(number), job.Copied, nil)
		}
		return s.announcer.advance(ctx)
	case negotiate.EntryFailed:
		return s.refused(ctx, step.Failure)
	case negotiate.PeerFinished:
		s.entries.settling.finish()
		s.account.peerNamed(step.Transport)
		s.account.done(step.Durability)
		return nil
	}
	return fmt.Errorf("internal error: unexpected %s on the sender", step.Event)
}

// answered follows the receiver's answers.
func (s *sender) answered(ctx context.Context, answers []negotiate.Answer) error {
	for _, a := range answers {
		o := s.entries.entry(a.Entry)
		switch {
		case a.Kind == negotiate.AnswerHave:
			s.removeLeftovers()
			s.entries.decide(o, job.Unchanged, nil)
		case a.Kind == negotiate.AnswerExists:
			s.entries.decide(o, job.Existing, nil)
		case a.Kind == negotiate.AnswerSum:
			s.entries.debug(o).Msg("entry compared")
			s.sendSum(ctx, o)
		case s.terms.plan.DryRun:
			o.change = a.Change
			s.entries.decide(o, job.WouldCopy, nil)
		default:
			logNeeded(s.entries.debug(o), int64(a.Offset))
			s.entries.answered(o)
			s.account.begins(o.size, int64(a.Offset))
			o.resume = int64(a.Offset)
			s.notResumed(o, a.Discarded)
			if err := s.announcer.sendAttributes(ctx, o); err != nil {
				return err
			}
			s.feed.need(o)
			s.wake()
		}
	}
	return s.announcer.advance(ctx)
}

// sendSum computes and sends the digest of a file.
func (s *sender) sendSum(ctx context.Context, o *outgoing) {
	s.digests.add(func() func() error {
		sum, err := sumOf(ctx, s.terms, o)
		if err == nil {
			err = s.ending(o, o.size, sum)
		}
		return func() error {
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

// notResumed tells the user that all of a file is sent, although an interrupted copy has left a part of it.
func (s *sender) notResumed(o *outgoing, why negotiate.Discarded) {
	if why == 0 || s.terms.config.Local { // the receiver tells the same user
		return
	}
	s.account.notify(job.Warned{Text: fmt.Sprintf(
		"sending all of %s: the %s does not use what an interrupted copy has left of it: %s",
		o.path, s.terms.config.Side.Other(), why)})
}

// removeLeftovers removes what an interrupted transfer in the other direction has left beside a file that both sides
// have. A failure to remove it is ignored. A side that is to send, and nothing else, changes nothing.
func (s *sender) removeLeftovers() {
	if s.terms.config.Use == job.SourceUse {
		return
	}
	if !s.terms.plan.Compare || s.terms.plan.Tree || s.terms.plan.DryRun {
		return
	}
	file := s.terms.config.File
	s.link.run(func() func() error {
		disk.RemoveLeftovers(file.FS, file.Name)
		return nothing
	})
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
	s.entries.decide(o, job.Failed, err)
	if err := s.link.send(ctx, message); err != nil {
		return err
	}
	return s.announcer.advance(ctx)
}

// refused follows a failure of an entry on the receiver. That of a directory may come after its result.
func (s *sender) refused(ctx context.Context, f negotiate.Failure) error {
	err := failed(f)
	if !s.terms.tolerant() {
		return err
	}
	if o := s.entries.entry(f.Entry); o != nil {
		s.entries.decide(o, job.Failed, err)
		return s.announcer.advance(ctx)
	}
	s.entries.settling.failed(f.Entry, err)
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

// pathOf implements role.
func (s *sender) pathOf(open negotiate.OpenEntry) string {
	o := s.entries.entry(open.Number)
	switch {
	case !s.terms.plan.Tree:
		return s.terms.config.File.Path
	case o == nil:
		return ""
	}
	return o.path
}

// outbox implements role.
func (s *sender) outbox() outbox { return s.transmitter.box }

// flush implements role. The end of the only file is followed by the end of the transfer at once, which saves a round
// trip. The lanes still send again what is asked for.
func (s *sender) flush(ctx context.Context) error {
	if err := s.transmitter.flush(ctx); err != nil {
		return err
	}
	last := s.transmitter.ended && !s.terms.plan.Tree
	if !last || s.session.State() != negotiate.Transferring {
		return nil
	}
	return s.sendFinish(ctx)
}

// patience implements role. It depends on what the receiver does: preallocating, filling and flushing files, reading
// them back, renaming them.
func (s *sender) patience() time.Duration {
	plan, patience := &s.terms.plan, s.terms.chunkPatience()
	if plan.StreamTarget { // which may stall for an idle timeout between any two steps
		patience = max(patience, s.terms.config.IdleTimeout*time.Duration(plan.Chunk/streamStep))
	}
	if open := s.session.Undecided(); open > 0 && plan.Tree || s.entries.owed > 0 {
		owed := s.entries.owed
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
	s.finder.close()
	s.entries.close()
	s.announcer.close()
	return job.Kept{}, nil
}

// abandon implements role.
func (s *sender) abandon(error) job.Kept { return job.Kept{} }

// closeWindow releases a window as soon as nothing moves any more, so that a failure is one of the transfer.
func closeWindow(w *window.Window) error {
	w.Clean()
	if err := w.Close(); err != nil {
		return fmt.Errorf("releasing the window: %w", err)
	}
	return nil
}
