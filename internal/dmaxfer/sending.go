package dmaxfer

import (
	"context"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// sending is the part of the side that has the file.
type sending struct {
	*native
	stream   *disk.Stream // nil: the source is the place's file
	sender   *pump.Sender // once the receiver is ready
	ready    bool         // it is
	resume   int64        // and has so much already
	ended    bool         // the receiver has been told that this was all
	left     bool         // and the window has been given back
	prepared bool         // the receiver has all of it
	written  []byte       // and this is its digest
	asked    bool         // the receiver has been let to give the file its name
}

func newSending(n *native) *sending { return &sending{native: n} }

// begin has nothing to prepare but a stream: a source is open.
func (s *sending) begin(ctx context.Context) error {
	if !s.place.stream {
		return nil
	}
	in, err := s.options.stdin()
	if err != nil {
		return failure(ErrSource, err, "connect a file or a pipe to it", "cannot read standard input: %s", disk.Reason(err))
	}
	s.stream = disk.NewStream(in, s.progress.stirred)
	context.AfterFunc(ctx, s.stream.Close) // a lane may wait for more
	return nil
}

func (s *sending) reached(ctx context.Context) error { return s.start(ctx) }

func (s *sending) take(ctx context.Context, step negotiate.NativeStep) error {
	switch step.Event {
	case negotiate.PeerReady:
		s.ready, s.resume = true, int64(step.Resume)
		return s.start(ctx)
	case negotiate.Acknowledged:
		s.sender.Acknowledge(step.Acks)
		return nil
	case negotiate.PeerPrepared:
		s.prepared, s.written = true, step.Digest
		return s.commit(ctx)
	case negotiate.PeerDone:
		s.done(step.Durability)
		return nil
	}
	return fmt.Errorf("internal error: a sender was told %s", step.Event)
}

// start sends the file in a job, once there is a window and the receiver has made room.
func (s *sending) start(ctx context.Context) error {
	if !s.ready || s.reach == nil {
		return nil
	}
	s.resumes(s.resume)
	s.sender = pump.NewSender(pump.SenderConfig{
		Reader: s.reader(), Slots: s.reach.slots, Engines: s.reach.engines, Lanes: s.layout().lanes,
		Digest: s.algorithm(), Stages: &s.progress.stages, Pace: s.pace(), Poller: s.poller(ctx), CPUs: s.seats(), Batch: s.batch(), Moved: s.pieceMoved, Retransmit: s.again,
	})
	s.progress.enter(Moving)
	s.job(func() func() error {
		attributes, err := s.sendAll(ctx)
		if err != nil {
			return failWith(err)
		}
		return func() error { return s.end(ctx, attributes) }
	})
	return nil
}

// sendAll sends the file, and returns the attributes to send after it once it is known that the source is what it was.
func (s *sending) sendAll(ctx context.Context) (attributes []byte, err error) {
	if err := s.corrupted(s.sender.Run(ctx)); err != nil {
		return nil, err
	}
	if err := s.checkSource(); err != nil {
		return nil, err
	}
	return s.attributes()
}

// reader reads the source as the plan wants it.
func (s *sending) reader() pump.Reader {
	if s.stream != nil {
		return pump.NewStreamReader(s.stream)
	}
	return pump.NewFileReader(s.place.source, s.resume, s.holes())
}

func (s *sending) holes() pump.Holes {
	switch {
	case !s.plan.Sparse:
		return pump.FillHoles
	case s.plan.Readback:
		return pump.CheckHoles
	default:
		return pump.KeepHoles
	}
}

// end says what has been sent.
func (s *sending) end(ctx context.Context, attributes []byte) error {
	size, sum := s.sender.Sum()
	if err := s.checkCopied(size, sum); err != nil {
		return err
	}
	if err := s.sendAttributes(ctx, attributes); err != nil {
		return err
	}
	s.progress.enter(Concluding)
	s.summary.Size, s.summary.Sum = size, sum
	message, err := s.session.End(uint64(size), sum.Bytes())
	if err != nil {
		return err
	}
	s.ended = true
	s.job(func() func() error {
		err := s.leave()
		return func() error { return s.hasLeft(ctx, err) }
	})
	return s.send(ctx, message)
}

func (s *sending) hasLeft(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	s.left = true
	return s.commit(ctx)
}

// checkSource finds a source that is no longer what it was when it was opened.
func (s *sending) checkSource() error {
	if s.stream != nil || s.plan.AllowChanging {
		return nil
	}
	return s.place.source.Verify()
}

// commit lets the receiver give the file its name, once the receiver is prepared and this side has left the window: the receiver has what was
// read here, and the source has not changed since.
func (s *sending) commit(ctx context.Context) error {
	if !s.prepared || !s.left {
		return nil
	}
	written, err := digest.NewSum(s.algorithm(), s.written)
	if err != nil {
		return err
	}
	if written != s.summary.Sum {
		return failure(ErrDigest, nil, "copy again; if it recurs, check the memory of both sides",
			"digest mismatch of %s: source %s, target %s", s.place.path, s.summary.Sum, written)
	}
	s.job(func() func() error {
		err := s.checkSource()
		return func() error { return s.sayCommit(ctx, err) }
	})
	return nil
}

func (s *sending) sayCommit(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message, err := s.session.Commit()
	if err != nil {
		return err
	}
	s.asked = true
	return s.send(context.WithoutCancel(ctx), message) // who is interrupted here would not know whether it was sent
}

func (s *sending) waiting() <-chan struct{} {
	if s.sender == nil {
		return nil
	}
	return s.sender.Outbox().Waiting()
}

func (s *sending) due() bool { return s.sender != nil && s.sender.Outbox().Due() }

func (s *sending) hurry() {
	if s.sender != nil {
		s.sender.Outbox().Flush()
	}
}

func (s *sending) flush(ctx context.Context) error {
	records, most := s.sender.Outbox().Take(), negotiate.MaxRecords(s.conn.MaxMessage())
	for len(records) > 0 {
		n := min(len(records), most)
		message, err := s.session.Chunks(s.message[:0], records[:n])
		if err != nil {
			return err
		}
		if err := s.send(ctx, message); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// patience depends on what the receiver does: making room, filling it, flushing the file and reading it back, giving it its name.
func (s *sending) patience() time.Duration {
	switch {
	case s.asked:
		return slowNaming
	case !s.ready:
		return slowWork(s.size())
	case s.ended && s.plan.Readback:
		return slowWork(2 * s.summary.Size)
	case s.ended:
		return slowWork(s.summary.Size)
	case s.plan.StreamTarget: // which may stand still for an idle timeout between any two steps
		return max(s.patienceWithPiece(), s.watch.idle*time.Duration(s.plan.Chunk/streamStep))
	}
	return s.patienceWithPiece()
}

func (s *sending) commitment() commitment {
	if s.asked {
		return asked
	}
	return free
}

// settle has nothing to keep: the source is only read.
func (s *sending) settle(error) (kept Kept, err error) {
	if s.stream != nil {
		s.stream.Close()
	}
	return Kept{}, nil
}

func (s *sending) abandon(error) Kept { return Kept{} }
