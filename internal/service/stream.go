package service

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const (
	// closeTime is how long the CLOSE of a native session may wait for a place in the peer's queue.
	closeTime = 5 * time.Second

	// drainTime is how long a side whose native session has failed waits for the end of the other one, which may have
	// to rename a file and to release memory first. The idle timeout may be shorter.
	drainTime = job.LongestRename + job.ReturnTime + job.ReleaseTime

	// interruptedTime is how long after an interruption a side waits for the end of the other one.
	interruptedTime = 1500 * time.Millisecond
)

// stream is the comch.Conn of the native session of one copy. No goroutine receives for it: who calls TryRecv or Recv
// takes the messages of the connection, and finds the peer's CLOSE among them. From then on nothing is taken, because
// what follows is not the copy's.
//
//	open ─┬─ Close ──────────► closing ─ the peer's CLOSE ─┬─► over
//	      └─ the peer's CLOSE ► ended ── Close ────────────┘
//
// Close and the peer's CLOSE are independent of each other, and so are the two channels that stand for them.
type stream struct {
	exchange *exchange
	late     context.Context     // of the copy, and for interruptedTime after that
	taking   *semaphore.Weighted // held while a message is taken, so that no other one can take what follows a CLOSE

	sends    *semaphore.Weighted // calls of Send that are under way; Close takes all
	closing  sync.Once
	closed   chan struct{} // closed by Close
	closeErr error
	began    time.Time // when Close was called; set before closed is closed

	ending sync.Once
	ended  chan struct{} // closed at the peer's CLOSE, or when nothing more can be received
	reason error         // of the latter, set before ended is closed

	finishing sync.Once
	done      chan struct{} // closed at the first end of any kind
}

var _ comch.Conn = (*stream)(nil)

// newStream returns the stream of the copy which both sides have just agreed on. ctx is the context of the copy. finish
// must be called.
func newStream(ctx context.Context, e *exchange) *stream {
	s := &stream{
		exchange: e, late: job.Overtime(ctx, interruptedTime),
		taking: semaphore.NewWeighted(1), sends: semaphore.NewWeighted(math.MaxInt64),
		closed: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
	}
	go s.watch()
	return s
}

// watch ends the stream with its connection. Messages that have arrived by then can still be received.
func (s *stream) watch() {
	select {
	case <-s.exchange.conn.Done():
		s.finishing.Do(func() { close(s.done) })
	case <-s.done:
	}
}

// Send implements comch.Conn.
func (s *stream) Send(ctx context.Context, message []byte) error {
	if isClosed(s.closed) || !s.sends.TryAcquire(1) {
		return comch.ErrClosed
	}
	defer s.sends.Release(1)
	if isClosed(s.ended) {
		return s.whyEnded() // the peer takes no more messages of this copy
	}
	if err := s.exchange.native(message); err != nil {
		return err
	}
	return s.exchange.conn.Send(ctx, message)
}

// Recv implements comch.Conn.
func (s *stream) Recv(ctx context.Context) ([]byte, error) {
	if err := s.taking.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer s.taking.Release(1)
	if isClosed(s.ended) {
		return nil, s.whyEnded()
	}
	message, err := s.exchange.conn.Recv(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.end(err)
		}
		return nil, err
	}
	if !s.accept(ctx, message) {
		return nil, s.whyEnded()
	}
	return message, nil
}

// TryRecv implements comch.Conn.
func (s *stream) TryRecv() (message []byte, received bool) {
	if !s.taking.TryAcquire(1) {
		return nil, false // another goroutine receives
	}
	defer s.taking.Release(1)
	if isClosed(s.ended) {
		return nil, false
	}
	message, received = s.exchange.conn.TryRecv()
	if !received || !s.accept(context.Background(), message) {
		return nil, false
	}
	return message, true
}

// Arrived implements comch.Conn.
func (s *stream) Arrived() <-chan struct{} { return s.exchange.conn.Arrived() }

// SpinLimit implements comch.Conn.
func (s *stream) SpinLimit() int { return s.exchange.conn.SpinLimit() }

// accept reports whether a message is one of the native session. Any other is the peer's CLOSE or breaks the protocol,
// and ends the stream.
func (s *stream) accept(ctx context.Context, message []byte) (native bool) {
	step, err := s.exchange.take(ctx, message)
	if err != nil || step.Event == protocol.PeerClosed {
		s.end(err)
		return false
	}
	return true
}

// end ends the direction from the peer.
func (s *stream) end(reason error) {
	s.ending.Do(func() {
		s.reason = reason
		close(s.ended)
	})
	s.finishing.Do(func() { close(s.done) })
}

// whyEnded returns the error for a use of the stream after its end.
func (s *stream) whyEnded() error {
	if s.reason != nil {
		return s.reason
	}
	return comch.ErrPeerLost // as a native session knows the end of its peer
}

// MaxMessage implements comch.Conn.
func (s *stream) MaxMessage() int { return s.exchange.conn.MaxMessage() }

// Done implements comch.Conn.
func (s *stream) Done() <-chan struct{} { return s.done }

// Close implements comch.Conn: it sends this side's CLOSE, when the calls of Send have returned.
func (s *stream) Close() error {
	s.closing.Do(func() {
		s.began = time.Now()
		close(s.closed)
		s.closeErr = s.sendClose()
		s.finishing.Do(func() { close(s.done) })
	})
	return s.closeErr
}

func (s *stream) sendClose() error {
	ctx, cancel := context.WithTimeoutCause(s.late, closeTime, errFull)
	defer cancel()
	if err := s.sends.Acquire(ctx, math.MaxInt64); err != nil {
		return context.Cause(ctx)
	}
	return s.exchange.send(ctx, (*protocol.Session).Close)
}

// finish closes the stream after a copy that ended with copied, and receives what the peer still sends until its CLOSE.
// After an error the connection cannot be used any more.
func (s *stream) finish(copied error) error {
	if err := s.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadlineCause(s.late, s.began.Add(s.grace(copied)), errNoClose)
	defer cancel()
	for ctx.Err() == nil { // regardless of what the peer sends
		if _, err := s.Recv(ctx); err != nil && isClosed(s.ended) {
			return s.reason
		}
	}
	return context.Cause(ctx)
}

// grace returns how long the whole end of a copy may take: the peer's CLOSE, and this side's CLOSE before it. After a
// success nothing is left to do for the peer. One that has broken the protocol has only a moment, and so has one that
// the copy has waited for in vain, or that a device has lost: the control connection may not notice that the network is
// gone.
func (s *stream) grace(copied error) time.Duration {
	switch {
	case copied == nil:
		return min(closeTime, s.exchange.idle)
	case wire.IsViolation(copied), errors.Is(copied, job.ErrPeerIdle),
		errors.Is(copied, wire.ErrOutcomeUnknown), errors.Is(copied, comch.ErrPeerLost),
		errors.Is(copied, wire.ErrPeerLost):
		return job.PartingTime
	}
	return min(drainTime, s.exchange.idle)
}

// The reasons for the end of a connection whose peer does not end a copy.
var (
	errFull    = silent("the peer takes no messages")
	errNoClose = silent("the peer does not end the copy")
)

// isClosed reports whether a channel on which nothing is sent has been closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
