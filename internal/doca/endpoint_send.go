package doca

import (
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// send is one message in flight. Its result is delivered once.
type send struct {
	connection *Connection
	message    []byte
	result     chan error
}

func (e *endpoint) sent(event *cabi.Event) {
	s := e.sends[event.Tag]
	delete(e.sends, event.Tag)
	s.connection.inFlight--
	switch {
	case event.Status == cabi.Success:
		s.result <- nil
	case s.connection.cause != nil:
		s.result <- s.connection.cause // the connection ended before, perhaps by our Close
	default:
		s.result <- fmt.Errorf("%w: %s", ErrDisconnected, event.Status)
	}
}

func (e *endpoint) enqueue(s *send) {
	if e.connections[s.connection.handle] != s.connection {
		s.result <- s.connection.cause
		return
	}
	s.connection.sentAny = true
	if len(s.connection.waiting) == 0 {
		e.senders = append(e.senders, s.connection)
	}
	s.connection.waiting = append(s.connection.waiting, s)
	e.submitWaiting()
}

// submitWaiting submits one message of each connection in turn until all are submitted or must wait. A connection must
// wait if it has sendLimit messages in flight, or DOCA refuses its message: whether it would take another's is not
// documented, so those are tried too.
func (e *endpoint) submitWaiting() {
	var mustWait []*Connection
	for len(e.senders) > 0 {
		c := e.senders[0]
		e.senders = e.senders[1:]
		if c.inFlight >= e.sendLimit || !e.submit(c.waiting[0]) {
			mustWait = append(mustWait, c)
			continue
		}
		c.waiting = c.waiting[1:]
		if len(c.waiting) > 0 {
			e.senders = append(e.senders, c)
		}
	}
	e.senders = mustWait
}

// submit reports whether the send is settled: accepted or failed, but not refused because the queue is full.
func (e *endpoint) submit(s *send) bool {
	e.lastTag++
	err := e.abi.ChannelSend(e.channel, s.connection.handle, s.message, e.lastTag)
	switch {
	case err == nil:
		e.sends[e.lastTag] = s
		s.connection.inFlight++
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

// dropWaiting fails what waits on a connection that has ended.
func (e *endpoint) dropWaiting(c *Connection) {
	for _, s := range c.waiting {
		s.result <- c.cause
	}
	c.waiting = nil
	e.senders = slices.DeleteFunc(e.senders, func(sender *Connection) bool { return sender == c })
}
