package doca

import (
	"context"
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// send is one message of a connection. Its result is delivered once.
type send struct {
	connection *Connection
	message    []byte
	result     chan error
}

// sendQueue submits the messages of an endpoint to DOCA. It belongs to run.
//
// Messages to one connection wait until the earlier ones to it are accepted or fail, not for those to others: each
// connection may have limit messages in flight, so that a client that does not receive cannot use all tasks of the
// context, and the others take turns.
type sendQueue struct {
	limit    int // messages in flight of one connection
	submit   func(to cabi.Connection, message []byte, tag uint64) error
	inFlight map[uint64]*send // by tag
	turns    []*Connection    // those with waiting messages, the next to submit first
	lastTag  uint64
}

// outbox is the part of a sendQueue that belongs to one connection.
type outbox struct {
	waiting  []*send // not yet accepted by DOCA, in order
	inFlight int
}

func (q *sendQueue) enqueue(s *send) {
	c := s.connection
	if c.hasEnded() {
		s.result <- c.cause
		return
	}
	if len(c.outbox.waiting) == 0 {
		q.turns = append(q.turns, c)
	}
	c.outbox.waiting = append(c.outbox.waiting, s)
	q.submitWaiting()
}

// submitWaiting submits one message of each connection in turn until all are submitted or must wait. A connection must
// wait if it has limit messages in flight, or DOCA refuses its message: whether it would take another's is not
// documented, so those are tried too.
func (q *sendQueue) submitWaiting() {
	var mustWait []*Connection
	for len(q.turns) > 0 {
		c := q.turns[0]
		q.turns = q.turns[1:]
		if c.outbox.inFlight >= q.limit || !q.trySubmit(c.outbox.waiting[0]) {
			mustWait = append(mustWait, c)
			continue
		}
		c.outbox.waiting = c.outbox.waiting[1:]
		if len(c.outbox.waiting) > 0 {
			q.turns = append(q.turns, c)
		}
	}
	q.turns = mustWait
}

// trySubmit reports whether the send is settled: accepted or failed, but not refused because DOCA's queue is full.
func (q *sendQueue) trySubmit(s *send) bool {
	q.lastTag++
	err := q.submit(s.connection.handle, s.message, q.lastTag)
	switch {
	case err == nil:
		q.inFlight[q.lastTag] = s
		s.connection.outbox.inFlight++
	case isAgain(err):
		return false
	default:
		s.result <- err
	}
	return true
}

func isAgain(err error) bool {
	failure, ok := err.(*Error)
	return ok && failure.Code == cabi.Again
}

// refused reports whether DOCA has refused a message of a connection without others in flight, whose completion would
// be the time to retry.
func (q *sendQueue) refused() bool {
	return slices.ContainsFunc(q.turns, func(c *Connection) bool { return c.outbox.inFlight == 0 })
}

func (q *sendQueue) sent(event *cabi.Event) {
	s := q.inFlight[event.Tag]
	delete(q.inFlight, event.Tag)
	s.connection.outbox.inFlight--
	switch {
	case event.Status == cabi.Success:
		s.result <- nil
	case s.connection.cause != nil:
		s.result <- s.connection.cause // the connection ended before, perhaps by our Close
	default:
		s.result <- fmt.Errorf("%w: %s", ErrDisconnected, event.Status)
	}
}

// drop fails what waits on a connection that has ended.
func (q *sendQueue) drop(c *Connection) {
	for _, s := range c.outbox.waiting {
		s.result <- c.cause
	}
	c.outbox.waiting = nil
	q.turns = slices.DeleteFunc(q.turns, func(sender *Connection) bool { return sender == c })
}

// failAll fails what is in flight, because nothing polls any more.
func (q *sendQueue) failAll(cause error) {
	for _, s := range q.inFlight {
		s.result <- cause
	}
}

// Send returns when the message is in the peer's queue; the peer may not have read it yet. message has 1 to MaxMessage
// bytes and may be reused afterwards. Send waits while the queue is full. If ctx ends first, the message still arrives
// unless the connection ends. Errors: ErrDisconnected, ErrClosed, ctx's cause. Implements:
// doca_comch_server_task_send_alloc_init, doca_task_submit.
func (c *Connection) Send(ctx context.Context, message []byte) error {
	if len(message) < 1 || len(message) > c.MaxMessage() {
		return fmt.Errorf("message of %d bytes, not 1 to %d: %w", len(message), c.MaxMessage(), CodeInvalidValue)
	}
	return c.send(ctx, message)
}

func (c *Connection) send(ctx context.Context, message []byte) error {
	s := &send{connection: c, message: append([]byte(nil), message...), result: make(chan error, 1)}
	accepted := c.endpoint.do(func() {
		c.inbox.limit = c.endpoint.config.unread
		c.endpoint.sending.enqueue(s)
	})
	if !accepted {
		return c.cause // all connections of an endpoint that has ended have ended
	}
	select {
	case err := <-s.result: // mostly so; it saves waiting for ctx
		return err
	default:
	}
	select {
	case err := <-s.result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
