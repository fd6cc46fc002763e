package send

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/target"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Sender is the role of the side that has the file or the tree. The owner of the transfer uses it.
type Sender struct {
	t           *role.Transfer
	announcer   *announcer
	directories *directories
	digests     role.DigestQueue
	feed        *feed
	lanes       *pump.Sender // nil: not started yet
	transmitter *transmitter
}

var _ role.Role = (*Sender)(nil)

// New returns the role of the sender in a transfer.
func New(t *role.Transfer) *Sender {
	s := &Sender{t: t, directories: &directories{t: t}, transmitter: newTransmitter(t)}
	s.announcer = &announcer{t: t, batches: make(chan []sourceEntry, 1), directories: s.directories, known: s.allKnown}
	s.digests.Link = t.Link
	s.feed = newFeed(t, s.transmitter.box, s.cannotSend)
	return s
}

// Begin implements role.Role. It starts the transfer, and finds its entries in a job.
func (s *Sender) Begin(ctx context.Context) error {
	message, err := s.t.Session.Transfer(s.t.Message)
	if err != nil {
		return err
	}
	if err := s.t.Link.Send(ctx, message); err != nil {
		return err
	}
	if !s.t.Params.Plan.Tree {
		s.t.Params.Config.Progress.Enter(job.Preparing)
	}
	s.t.Link.Run(ctx, func(ctx context.Context) role.Call {
		if err := s.announcer.find(ctx); err != nil {
			return role.FailWith(err)
		}
		return s.announcer.advance
	})
	return nil
}

// WindowOpened implements role.Role. It starts the lanes.
func (s *Sender) WindowOpened(ctx context.Context, w *window.Window) error {
	p := s.t.Params
	s.lanes = pump.NewSender(pump.SenderConfig{
		Feed: s.feed, Slots: w.Slots, Engines: w.Engines,
		Lanes: p.Layout().Lanes, Digest: p.Plan.Digest, Stages: p.Config.Progress.Stages(),
		Outbox: s.transmitter.box, Pinning: p.Pinning(p.LocalSize()), Pace: p.Pace(),
		Poller: s.t.Link.Poller(ctx), Log: p.ContentLog(),
	})
	s.transmitter.acknowledge = s.lanes.Acknowledge
	p.Config.Log.Debug().Int("lanes", p.Layout().Lanes).Msg("lanes started")
	s.t.Link.Run(ctx, func(ctx context.Context) role.Call {
		err := p.Corrupted(s.lanes.Run(ctx))
		p.Config.Log.Debug().Err(err).Msg("lanes ended")
		if err == nil && (s.feed.delivered.Load() || p.Plan.Path.Connects()) {
			err = role.CloseWindow(w) // without a unit the DPU may be about to import memory of this side
		}
		if err != nil {
			return role.FailWith(err)
		}
		return s.finish
	})
	return nil
}

// allKnown lets the lanes end after what they have.
func (s *Sender) allKnown() {
	s.feed.finish()
	s.wake()
}

// wake has the lanes look for something to send.
func (s *Sender) wake() {
	if s.lanes != nil {
		s.lanes.Wake()
	}
}

// finish tells the receiver that nothing follows, after the end of the last file.
func (s *Sender) finish(ctx context.Context) error {
	if err := s.Flush(ctx); err != nil || s.t.Session.State() != native.Transferring {
		return err
	}
	return s.sendFinish(ctx)
}

func (s *Sender) sendFinish(ctx context.Context) error {
	s.t.Params.Config.Progress.Enter(job.Concluding)
	message, err := s.t.Session.Finish(s.t.Message, s.announcer.unannounced, s.t.Stats.Transport())
	if err != nil {
		return err
	}
	return s.t.Link.Send(ctx, message)
}

// Handle implements role.Role.
func (s *Sender) Handle(ctx context.Context, step native.Step) error {
	switch step.Event {
	case native.None: // the receiver confirms that an entry has failed
		return s.announcer.advance(ctx)
	case native.Answered:
		for _, a := range step.Answers {
			if err := s.answered(ctx, a); err != nil {
				return err
			}
		}
		return s.announcer.advance(ctx)
	case native.Acknowledged:
		s.lanes.Acknowledge(step.Acks)
		return nil
	case native.Committed:
		for _, number := range step.Results {
			s.decide(s.record(number), job.Copied, nil)
		}
		return s.announcer.advance(ctx)
	case native.EntryFailed:
		return s.refused(ctx, step.Failure)
	case native.PeerFinished:
		s.directories.finish()
		s.t.Stats.PeerNamed(step.Transport)
		s.t.Stats.Done(step.Durability)
		return nil
	}
	return fmt.Errorf("internal error: unexpected %s on the sender", step.Event)
}

// record returns what this side knows of an entry, nil if another one has taken its place.
func (s *Sender) record(number uint32) *entry {
	e, _ := s.t.Session.Record(number).(*entry)
	return e
}

// decide ends an entry. Its chunks in the lanes are not sent any more.
func (s *Sender) decide(e *entry, action job.Action, err error) {
	e.decide()
	e.action = action
	if action == job.Copied {
		s.t.Stats.Reused(e.resume - e.refused.Load())
	}
	e.late = s.t.Stats.Decided(e.number, job.FileDone{
		Path: e.path, Kind: e.kind, Bytes: e.size, Action: action, Change: e.change, Err: err,
	})
}

// logEntry begins a line about an entry.
func logEntry(p *role.Params, e *entry) *zerolog.Event { return p.LogEntry(e.number, e.path, e.kind) }

// removeLeftovers removes what an interrupted transfer in the other direction has left beside a file that both sides
// have. A failure to remove it is ignored. A side that is to send, and nothing else, changes nothing.
func (s *Sender) removeLeftovers(ctx context.Context) {
	c, plan := s.t.Params.Config, &s.t.Params.Plan
	if c.Use == job.SourceUse || !plan.Compare || plan.Tree || plan.DryRun {
		return
	}
	s.t.Link.Run(ctx, func(context.Context) role.Call {
		disk.RemoveLeftovers(c.File.FS, c.File.Name)
		return role.Nothing
	})
}

// cannotSend goes on without an entry, unless it is all there is. Lanes and jobs call it, too.
func (s *Sender) cannotSend(e *entry, err error) error {
	if e.isDecided() {
		return nil
	}
	if _, ofFile := errors.AsType[*disk.Error](err); !ofFile || !s.t.Params.Tolerant() {
		return err
	}
	s.t.Link.Post(func(ctx context.Context) error { return s.withdraw(ctx, e, err) })
	return nil
}

// withdraw tells the receiver that an entry cannot be sent.
func (s *Sender) withdraw(ctx context.Context, e *entry, err error) error {
	if e.isDecided() || !s.t.Session.MayFail(e.number) {
		return nil
	}
	failure := native.Failure{Entry: e.number, Code: s.t.Link.Code(err), Text: err.Error()}
	message, misuse := s.t.Session.Fail(s.t.Message, failure)
	if misuse != nil {
		return misuse
	}
	s.decide(e, job.Failed, err)
	if err := s.t.Link.Send(ctx, message); err != nil {
		return err
	}
	return s.announcer.advance(ctx)
}

// refused follows a failure of an entry on the receiver. A directory may fail after its result.
func (s *Sender) refused(ctx context.Context, f native.Failure) error {
	err := role.Failed(f)
	if !s.t.Params.Tolerant() {
		return err
	}
	if e := s.record(f.Entry); e != nil && !e.isDecided() {
		s.decide(e, job.Failed, err)
		return s.announcer.advance(ctx)
	}
	s.directories.failed(f.Entry, err)
	return nil
}

// Outbox implements role.Role.
func (s *Sender) Outbox() role.Outbox { return s.transmitter.box }

// Flush implements role.Role. The end of the only file is followed by the end of the transfer at once, which saves a
// round trip. The lanes still send again what is asked for.
func (s *Sender) Flush(ctx context.Context) error {
	if err := s.transmitter.flush(ctx); err != nil {
		return err
	}
	last := s.transmitter.ended && !s.t.Params.Plan.Tree
	if !last || s.t.Session.State() != native.Transferring {
		return nil
	}
	return s.sendFinish(ctx)
}

// Grace implements role.Role. It depends on what the receiver does: preallocating, filling and flushing files, reading
// them back, renaming them.
func (s *Sender) Grace() time.Duration {
	plan, grace := &s.t.Params.Plan, s.t.Params.ChunkGrace()
	if plan.StreamTarget { // which may stall for an idle timeout between any two steps
		grace = max(grace, s.t.Params.Config.IdleTimeout*time.Duration(plan.Chunk/target.Step))
	}
	unflushed := s.unflushed()
	if open := s.t.Session.Undecided(); open > 0 && plan.Tree || unflushed > 0 {
		if plan.Readback {
			unflushed *= 2
		}
		grace = max(grace, role.SlowWork(unflushed)+time.Duration(open)*role.SlowEntry)
	}
	if plan.Tree && plan.Durability != wire.DurabilityNone {
		grace = max(grace, role.SlowFlush)
	}
	if s.t.Session.Unconfirmed() > 0 {
		grace = max(grace, job.PeerRenameTime)
	}
	if s.t.Session.State() == native.Finishing && plan.Tree { // the receiver flushes what is not durable yet
		grace = max(grace, role.SlowWork(s.t.Stats.BytesFound()))
	}
	return grace
}

// unflushed returns how many bytes the receiver allocates, or flushes before a result.
func (s *Sender) unflushed() (bytes int64) {
	for open := range s.t.Session.OpenEntries() {
		e, is := open.Record.(*entry)
		if is && e.kind == wire.EntryFile && open.Phase != native.PhaseNeeded && !e.isDecided() {
			bytes += max(e.size, 0)
		}
	}
	return bytes
}

// Committing and Committed implement role.Role.
func (s *Sender) Committing() bool { return false }
func (s *Sender) Committed() bool  { return s.t.Stats.Renamed() }

// Halt implements role.Role.
func (s *Sender) Halt(context.Context) error { return nil }

// Close implements role.Role. There is nothing to keep: the source is only read.
func (s *Sender) Close(error) (kept job.Kept, err error) {
	s.announcer.close()
	for record := range s.t.Session.Records() { // the session may have decided some of them
		record.(*entry).decide()
	}
	return job.Kept{}, nil
}

// Abandon implements role.Role.
func (s *Sender) Abandon(error) job.Kept { return job.Kept{} }
