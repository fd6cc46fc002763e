// Package comchtest gives tests a control channel without a device: a pair of connections in memory, whose faults are
// chosen by the test; and the tests that every connection passes.
package comchtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// Fault returns which messages arrive instead of message number n (from 0) of one direction.
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

// Cut ends the connection instead of message n.
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

// End is one side of a pair. It implements comch.Conn.
type End struct {
	*comch.PipeEnd
	cut    *atomic.Bool // a fault has ended the connection; shared by both ends
	closed atomic.Bool

	mu    sync.Mutex
	fault Fault
	sent  int
}

var _ comch.Conn = (*End)(nil)

// NewPair returns two connected ends for messages of up to maxMessage bytes. A fault applies to what that end sends.
func NewPair(maxMessage int, hostFault, dpuFault Fault) (host, dpu *End) {
	one, other := comch.Pipe(maxMessage)
	cut := &atomic.Bool{}
	return &End{PipeEnd: one, cut: cut, fault: hostFault}, &End{PipeEnd: other, cut: cut, fault: dpuFault}
}

// Send implements comch.Conn.
func (e *End) Send(ctx context.Context, message []byte) error {
	if len(message) < 1 || len(message) > e.MaxMessage() {
		return e.PipeEnd.Send(ctx, message) // which refuses it
	}
	e.mu.Lock()
	arrive, cut := e.fault(e.sent, append([]byte(nil), message...))
	e.sent++
	e.mu.Unlock()
	if cut {
		e.cut.Store(true)
		_ = e.PipeEnd.Close()
	}
	if len(arrive) == 0 {
		return e.ended()
	}
	var first error
	for _, m := range arrive { // all of them, even if ctx ends
		if err := e.PipeEnd.Send(ctx, m); first == nil {
			first = e.explain(err)
		}
	}
	return first
}

// Recv implements comch.Conn.
func (e *End) Recv(ctx context.Context) ([]byte, error) {
	message, err := e.PipeEnd.Recv(ctx)
	return message, e.explain(err)
}

// Close implements comch.Conn.
func (e *End) Close() error {
	e.closed.Store(true)
	return e.PipeEnd.Close()
}

// explain returns the error of an end that a fault has cut off, and other errors as they are.
func (e *End) explain(err error) error {
	if errors.Is(err, comch.ErrClosed) && e.cut.Load() && !e.closed.Load() {
		return comch.ErrPeerLost
	}
	return err
}

// ended returns nil as long as the connection has not ended.
func (e *End) ended() error {
	select {
	case <-e.Done():
	default:
		return nil
	}
	if e.closed.Load() {
		return comch.ErrClosed
	}
	return comch.ErrPeerLost
}
