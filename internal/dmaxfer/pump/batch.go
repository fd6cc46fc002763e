package pump

import "sync"

// Batch collects what several lanes have to say until somebody carries it to the peer. A message costs more than a chunk of small
// size, so items wait for others: until there are enough of them, or until somebody flushes, such as a lane that has nothing else to do.
// Safe for concurrent use, with one taker.
type Batch[T any] struct {
	mu        sync.Mutex
	items     []T
	taken     []T
	threshold int           // items
	due       bool          // items are to go
	notified  bool          // since the last Take
	waiting   chan struct{} // holds a token once somebody is called for them
}

// NewBatch returns a Batch that holds up to room items without allocating, and is due from enough of them on.
func NewBatch[T any](capacity, threshold int) *Batch[T] {
	return &Batch[T]{
		items: make([]T, 0, capacity), taken: make([]T, 0, capacity), threshold: threshold, waiting: make(chan struct{}, 1),
	}
}

// Add appends an item and never waits.
func (b *Batch[T]) Add(item T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, item)
	b.due = b.due || len(b.items) >= b.threshold
}

// Flush makes the items due that wait for others.
func (b *Batch[T]) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.due = len(b.items) > 0
}

// Due reports whether items are to be taken.
func (b *Batch[T]) Due() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.due
}

// Call calls whoever waits for what is due, once.
func (b *Batch[T]) Call() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.due || b.notified {
		return
	}
	b.notified = true
	select {
	case b.waiting <- struct{}{}:
	default: // somebody took without having been called
	}
}

// Waiting delivers a token when somebody is called.
func (b *Batch[T]) Waiting() <-chan struct{} { return b.waiting }

// Take returns all items, in order. They are the taker's until the next Take.
func (b *Batch[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items, b.taken, b.due, b.notified = b.taken[:0], b.items, false, false
	return b.taken
}
