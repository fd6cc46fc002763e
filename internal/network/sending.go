package network

import (
	"bytes"
	"errors"
	"sync"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// outgoing has the messages of a Control that the socket has not taken yet.
type outgoing struct {
	broken chan struct{} // closed when nothing can be sent any more

	mu      sync.Mutex
	waiting []waitingMessage // in order, without the one that is being sent
	writing bool             // a writer sends them
	failed  error            // why nothing can be sent any more
}

// waitingMessage is one that is sent even if the context of its Send ends.
type waitingMessage struct {
	bytes []byte
	sent  chan struct{} // closed when the socket has all of it
}

// maxWaiting is how many messages may wait, for a peer that takes none. There are so many only if the contexts of most
// of their Sends have ended.
const maxWaiting = 1024

// errTakesNothing is a peer with too many messages waiting.
var errTakesNothing = errors.New("the peer takes no messages")

// add sends a message at once if the socket takes it, and otherwise returns a channel that is closed when it does. An
// error is permanent.
func (o *outgoing) add(c *Control, message []byte) (sent <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return nil, o.failed
	}
	if !o.writing {
		n, err := tryWrite(c.raw, message)
		if err != nil || n == len(message) {
			o.failLocked(err)
			return nil, err
		}
		message = message[n:]
	}
	if len(o.waiting) == maxWaiting {
		o.failLocked(errTakesNothing)
		return nil, errTakesNothing
	}
	m := waitingMessage{bytes.Clone(message), make(chan struct{})}
	o.waiting = append(o.waiting, m)
	if !o.writing {
		o.writing = true
		c.run(c.write)
	}
	return m.sent, nil
}

// fail ends sending, unless err is nil.
func (o *outgoing) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failLocked(err)
}

func (o *outgoing) failLocked(err error) {
	if err != nil && o.failed == nil {
		o.failed = err
		close(o.broken)
	}
}

// write is the goroutine that sends what waits.
func (c *Control) write() {
	for {
		m, waits := c.out.first()
		if !waits {
			return
		}
		if _, err := c.socket.Write(m.bytes); err != nil {
			c.out.fail(comch.ErrPeerLost)
			return
		}
		close(m.sent)
	}
}

// first removes and returns the first message. Without one the writer ends.
func (o *outgoing) first() (m waitingMessage, waits bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.waiting, o.writing = nil, false
		return waitingMessage{}, false
	}
	m = o.waiting[0]
	o.waiting = o.waiting[1:]
	return m, true
}
