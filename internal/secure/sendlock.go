package secure

import (
	"bytes"
	"sync"
)

// sendLock is a fair lock: one Send at a time uses the channel, in the order in which they began. A Send whose context
// ends while it waits leaves its message in the queue, for the holder of the lock to send.
type sendLock struct {
	mu    sync.Mutex
	held  bool
	queue []*waiter
}

// waiter is a Send that waits for the lock, or the message that one has left when its context ended.
type waiter struct {
	granted chan struct{} // closed when it holds the lock
	message []byte        // left; nil as long as the Send waits
}

// acquire takes the lock, or returns a waiter for it.
func (l *sendLock) acquire() *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		l.held = true
		return nil
	}
	w := &waiter{granted: make(chan struct{})}
	l.queue = append(l.queue, w)
	return w
}

// tryAcquire reports whether it took the lock.
func (l *sendLock) tryAcquire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	acquired := !l.held
	l.held = true
	return acquired
}

// leave replaces the waiter by a copy of the message. It returns false if the waiter already holds the lock.
func (l *sendLock) leave(w *waiter, message []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.granted:
		return false
	default:
		w.message = bytes.Clone(message)
		return true
	}
}

// release passes the lock to the next waiter. If that has left its message, release returns the message and the caller
// still holds the lock: it has to send the message and call release again.
func (l *sendLock) release() (left []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.held = false
		return nil
	}
	w := l.queue[0]
	l.queue = l.queue[1:]
	if w.message == nil {
		close(w.granted)
	}
	return w.message
}
