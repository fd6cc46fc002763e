package native

import (
	"context"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// sender is the role of the side that has the file.
type sender struct {
	terms   *terms
	session *negotiate.NativeSession
	link    link
	account *account
	stream  *disk.Stream // nil: the source is the local file
	window  *Window      // from its opening until it has been released
	lanes   *pump.Sender // once the receiver is ready
	records *list[negotiate.Record]
	written []byte // the digest of what the receiver has written, by PREPARED
}

func newSender(t *terms, session *negotiate.NativeSession, l link, a *account) *sender {
	maxMessage := t.config.Conn.MaxMessage()
	return &sender{
		terms: t, session: session, link: l, account: a,
		records: newList(l, maxMessage, negotiate.MaxRecords(maxMessage), session.Chunks),
	}
}

// begin implements role. Only a stream has to be opened: a file is.
func (s *sender) begin(ctx context.Context) error {
	if !s.terms.config.File.Stream {
		return nil
	}
	in, err := s.terms.config.File.OpenInput()
	if err != nil {
		return job.NewError(job.ErrSource, err, "connect a file or a pipe to it",
			"cannot read standard input: %s", disk.Reason(err))
	}
	s.stream = disk.NewStream(in, s.terms.config.Progress.Touch)
	context.AfterFunc(ctx, s.stream.Close) // a lane may wait for more
	return nil
}

// windowOpened implements role.
func (s *sender) windowOpened(ctx context.Context, w *Window) error {
	s.window = w
	return s.start(ctx)
}

// take implements role.
func (s *sender) take(ctx context.Context, step negotiate.NativeStep) error {
	switch step.Event {
	case negotiate.PeerReady:
		return s.start(ctx)
	case negotiate.Acknowledged:
		s.lanes.Acknowledge(step.Acks)
		return nil
	case negotiate.PeerPrepared:
		s.written = step.Digest
		return s.commit(ctx)
	case negotiate.PeerDone:
		s.account.done(step.Durability)
		return nil
	}
	return fmt.Errorf("internal error: unexpected %s on the sender", step.Event)
}

// start sends the file in a job, once this side's window is open and the receiver is ready.
func (s *sender) start(ctx context.Context) error {
	if s.session.State() != negotiate.Sending || s.window == nil {
		return nil
	}
	progress := s.terms.config.Progress
	s.account.begins(int64(s.session.Resume()))
	s.lanes = pump.NewSender(pump.SenderConfig{
		Reader: s.reader(), Slots: s.window.Slots, Engines: s.window.Engines, Lanes: s.terms.layout().Lanes,
		Digest: s.terms.plan.Digest, Stages: progress.Stages(), Batch: s.terms.batch(), Pinning: s.terms.pinning(),
		Pace: s.link.pace(), Poller: s.link.poller(ctx),
		Moved: s.account.chunkMoved, Retransmit: s.account.retransmitting,
	})
	progress.Enter(job.Moving)
	s.link.run(func() func() error {
		attributes, err := s.sendAll(ctx)
		if err != nil {
			return failWith(err)
		}
		return func() error { return s.end(ctx, attributes) }
	})
	return nil
}

// sendAll sends the file, and returns the attributes to send after it once the source is known not to have changed.
func (s *sender) sendAll(ctx context.Context) (attributes []byte, err error) {
	if err := corrupted(s.terms.config.File.Path, s.lanes.Run(ctx)); err != nil {
		return nil, err
	}
	if err := s.checkSource(); err != nil {
		return nil, err
	}
	if !s.terms.plan.XAttr || s.stream != nil {
		return nil, nil
	}
	return readAttributes(s.terms.config.File)
}

// reader reads the source as the plan wants it.
func (s *sender) reader() pump.Reader {
	if s.stream != nil {
		return pump.NewStreamReader(s.stream)
	}
	return pump.NewFileReader(s.terms.config.File.Source, int64(s.session.Resume()), s.holes())
}

func (s *sender) holes() pump.Holes {
	switch {
	case !s.terms.plan.Sparse:
		return pump.FillHoles
	case s.terms.plan.Readback:
		return pump.CheckHoles
	default:
		return pump.KeepHoles
	}
}

// end tells the receiver what has been sent, and releases the window in a job.
func (s *sender) end(ctx context.Context, attributes []byte) error {
	size, sum := s.lanes.Sum()
	if err := s.terms.checkContent(size, sum); err != nil {
		return err
	}
	if err := s.sendAttributes(ctx, attributes); err != nil {
		return err
	}
	s.terms.config.Progress.Enter(job.Concluding)
	s.account.summary.Size, s.account.summary.Sum = size, sum
	message, err := s.session.End(uint64(size), sum.Bytes())
	if err != nil {
		return err
	}
	window := s.window
	s.link.run(func() func() error {
		if err := closeWindow(window); err != nil {
			return failWith(err)
		}
		return func() error {
			s.window = nil
			return s.commit(ctx)
		}
	})
	return s.link.send(ctx, message)
}

func (s *sender) sendAttributes(ctx context.Context, blob []byte) error {
	most := negotiate.MaxMetadataPart(s.terms.config.Conn.MaxMessage())
	for offset := 0; offset < len(blob); offset += most {
		message, err := s.session.Metadata(negotiate.Metadata{
			Total: uint32(len(blob)), Offset: uint32(offset), Part: blob[offset:min(offset+most, len(blob))],
		})
		if err != nil {
			return err
		}
		if err := s.link.send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// checkSource returns an error for a source that has changed since it was opened.
func (s *sender) checkSource() error {
	if s.stream != nil || s.terms.plan.AllowChanging {
		return nil
	}
	return s.terms.config.File.Source.Verify()
}

// commit lets the receiver commit, once that is prepared and this side has released the window: the receiver has what
// was read here, and the source has not changed since.
func (s *sender) commit(ctx context.Context) error {
	if s.session.State() != negotiate.Deciding || s.window != nil {
		return nil
	}
	written, err := digest.NewSum(s.terms.plan.Digest, s.written)
	if err != nil {
		return err
	}
	if read := s.account.summary.Sum; written != read {
		return job.NewError(job.ErrDigest, nil, "copy again; if it recurs, check the memory of both sides",
			"digest mismatch of %s: source %s, target %s", s.terms.config.File.Path, read, written)
	}
	s.link.run(func() func() error {
		if err := s.checkSource(); err != nil {
			return failWith(err)
		}
		return func() error { return s.sendCommit(ctx) }
	})
	return nil
}

func (s *sender) sendCommit(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message, err := s.session.Commit()
	if err != nil {
		return err
	}
	return s.link.send(context.WithoutCancel(ctx), message) // interrupted, it would be unknown whether it was sent
}

// outbox implements role.
func (s *sender) outbox() outbox {
	if s.lanes == nil {
		return nil
	}
	return s.lanes.Outbox()
}

// flush implements role.
func (s *sender) flush(ctx context.Context) error {
	return s.records.send(ctx, s.lanes.Outbox().Take())
}

// patience implements role. It depends on what the receiver does: preallocating, filling and flushing the file, reading
// it back, renaming it.
func (s *sender) patience() time.Duration {
	plan := &s.terms.plan
	switch s.session.State() {
	case negotiate.AwaitReady:
		return slowWork(s.terms.size())
	case negotiate.AwaitPrepared, negotiate.Deciding:
		if plan.Readback {
			return slowWork(2 * s.account.summary.Size)
		}
		return slowWork(s.account.summary.Size)
	case negotiate.AwaitDone:
		return job.PeerRenameTime
	}
	if plan.StreamTarget { // which may stall for an idle timeout between any two steps
		return max(s.terms.chunkPatience(), s.terms.config.IdleTimeout*time.Duration(plan.Chunk/streamStep))
	}
	return s.terms.chunkPatience()
}

// settle implements role. There is nothing to keep: the source is only read.
func (s *sender) settle(error) (kept job.Kept, err error) {
	if s.stream != nil {
		s.stream.Close()
	}
	return job.Kept{}, nil
}

// abandon implements role.
func (s *sender) abandon(error) job.Kept { return job.Kept{} }

// closeWindow releases a window as soon as nothing moves any more, and before the commit, so that a failure is one of
// the transfer.
func closeWindow(w *Window) error {
	if err := w.Close(); err != nil {
		return fmt.Errorf("releasing the window: %w", err)
	}
	return nil
}
