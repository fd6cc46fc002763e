// Package comchtest gives tests a control channel without a device: a pair of connections in memory, whose faults are
// chosen by the test.
package comchtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// Fault returns which messages arrive in place of message number n (from 0) of one direction.
// Returning none drops it; cut ends the connection.
type Fault func(n int, message []byte) (arrive [][]byte, cut bool)

// Faultless delivers every message once.
func Faultless(_ int, message []byte) ([][]byte, bool) { return [][]byte{message}, false }

// Drop loses message n.
func Drop(n int) Fault {
	return func(i int, message []byte) ([][]byte, bool) {
		if i == n {
			return nil, false
		}
		return [][]byte{message}, false
	}
}

// Truncate shortens message n to length bytes.
func Truncate(n, length int) Fault {
	return func(i int, message []byte) ([][]byte, bool) {
		if i == n {
			message = message[:min(length, len(message))]
		}
		return [][]byte{message}, false
	}
}

// Cut ends the connection in place of message n.
func Cut(n int) Fault {
	return func(i int, message []byte) ([][]byte, bool) { return [][]byte{message}, i == n }
}

// Delay makes every message late by d.
func Delay(d time.Duration) Fault {
	return func(_ int, message []byte) ([][]byte, bool) {
		time.Sleep(d)
		return [][]byte{message}, false
	}
}

// queueLength is the number of messages that a direction holds before Send waits: as many as a connection of a device
// holds unread.
const queueLength = 1024

// link is what both ends share.
type link struct {
	once sync.Once
	done chan struct{}
}

func (l *link) cut() { l.once.Do(func() { close(l.done) }) }

// direction is what one end has sent and the other has not received.
type direction struct {
	queue   chan []byte
	arrived chan struct{}
}

func newDirection() direction {
	return direction{queue: make(chan []byte, queueLength), arrived: make(chan struct{}, 1)}
}

func (d direction) announce() {
	select {
	case d.arrived <- struct{}{}:
	default:
	}
}

// End is one side of a pair. It implements comch.Conn and comch.Polling.
type End struct {
	link       *link
	in, out    direction
	maxMessage int
	closed     chan struct{}
	closeOnce  sync.Once

	mu    sync.Mutex
	fault Fault
	sent  int
}

var (
	_ comch.Conn    = (*End)(nil)
	_ comch.Polling = (*End)(nil)
)

// NewPair returns two connected ends for messages of up to maxMessage bytes. A fault applies to what that end sends.
func NewPair(maxMessage int, hostFault, dpuFault Fault) (host, dpu *End) {
	shared := &link{done: make(chan struct{})}
	toDPU, toHost := newDirection(), newDirection()
	newEnd := func(in, out direction, fault Fault) *End {
		return &End{
			link: shared, in: in, out: out, maxMessage: maxMessage, closed: make(chan struct{}), fault: fault,
		}
	}
	return newEnd(toHost, toDPU, hostFault), newEnd(toDPU, toHost, dpuFault)
}

// Send implements comch.Conn.
func (e *End) Send(ctx context.Context, message []byte) error {
	if len(message) < 1 || len(message) > e.maxMessage {
		return fmt.Errorf("message of %d bytes, not 1 to %d: %w", len(message), e.maxMessage, doca.CodeInvalidValue)
	}
	e.mu.Lock()
	arrive, cut := e.fault(e.sent, append([]byte(nil), message...))
	e.sent++
	e.mu.Unlock()
	if cut {
		e.link.cut()
	}
	if err := e.ended(); err != nil {
		return err
	}
	for _, m := range arrive {
		select {
		case e.out.queue <- m:
			e.out.announce()
		case <-e.link.done:
			return e.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Recv implements comch.Conn.
func (e *End) Recv(ctx context.Context) ([]byte, error) {
	select {
	case m := <-e.in.queue:
		return m, nil
	default:
	}
	select {
	case m := <-e.in.queue:
		return m, nil
	case <-e.link.done:
		return e.rest()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (e *End) rest() ([]byte, error) {
	select {
	case m := <-e.in.queue:
		return m, nil
	default:
		return nil, e.ended()
	}
}

func (e *End) ended() error {
	select {
	case <-e.closed:
		return comch.ErrClosed
	default:
	}
	select {
	case <-e.link.done:
		return comch.ErrPeerLost
	default:
		return nil
	}
}

// TryRecv implements comch.Polling.
func (e *End) TryRecv() ([]byte, bool) {
	select {
	case m := <-e.in.queue:
		return m, true
	default:
		return nil, false
	}
}

// Arrived implements comch.Polling.
func (e *End) Arrived() <-chan struct{} { return e.in.arrived }

// StartPolling implements comch.Polling. What arrives is announced nevertheless.
func (*End) StartPolling() {}

// StopPolling implements comch.Polling.
func (*End) StopPolling() {}

// Patience implements comch.Polling. It is short, since the system wakes no thread here.
func (*End) Patience() int { return 2 }

// MaxMessage implements comch.Conn.
func (e *End) MaxMessage() int { return e.maxMessage }

// Done implements comch.Conn.
func (e *End) Done() <-chan struct{} { return e.link.done }

// Close implements comch.Conn.
func (e *End) Close() error {
	e.closeOnce.Do(func() { close(e.closed) })
	e.link.cut()
	return nil
}
