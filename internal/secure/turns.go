package secure

import (
	"bytes"
	"sync"
)

// turns lets one Send at a time use the channel, in the order in which they began.
type turns struct {
	mu      sync.Mutex
	taken   bool
	waiting []*waiter
}

// waiter is a Send that waits for its turn, or the message that one has left when its context ended.
type waiter struct {
	turn    chan struct{} // closed when it is its turn
	message []byte        // left; nil as long as the Send waits
}

// enter takes the turn, or returns a waiter for it.
func (t *turns) enter() *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken {
		t.taken = true
		return nil
	}
	w := &waiter{turn: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	return w
}

// tryEnter reports whether it took the turn.
func (t *turns) tryEnter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	entered := !t.taken
	t.taken = true
	return entered
}

// leaveMessage has another Send send a copy of the message when the turn of the waiter comes. It returns false if it is
// the waiter's turn already.
func (t *turns) leaveMessage(w *waiter, message []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.turn:
		return false
	default:
		w.message = bytes.Clone(message)
		return true
	}
}

// next ends a turn. If the next one in order has left its message, next returns that, and the turn goes on.
func (t *turns) next() (left []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.taken = false
		return nil
	}
	w := t.waiting[0]
	t.waiting = t.waiting[1:]
	if w.message == nil {
		close(w.turn)
	}
	return w.message
}
