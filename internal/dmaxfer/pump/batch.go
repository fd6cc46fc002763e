package pump

import "sync"

// Batch collects items of several lanes until one goroutine takes them for a message to the peer. A message costs
// more than a small chunk, so items wait until there are enough of them or until Flush, for example by a lane that
// has no other work. A Batch is safe for concurrent use, with one taker at a time.
type Batch[T any] struct {
	mu        sync.Mutex
	items     []T           // not taken yet
	taken     []T           // returned by the last Take; reused by the next
	threshold int           // number of items that are due without Flush
	due       bool          // items are to be taken
	notified  bool          // since the last Take
	waiting   chan struct{} // holds a token after a notification
}

// NewBatch returns a Batch that holds up to capacity items without allocating. Its items are due as soon as there are
// threshold of them.
func NewBatch[T any](capacity, threshold int) *Batch[T] {
	return &Batch[T]{
		items:     make([]T, 0, capacity),
		taken:     make([]T, 0, capacity),
		threshold: threshold,
		waiting:   make(chan struct{}, 1),
	}
}

// Add appends an item. It never blocks.
func (b *Batch[T]) Add(item T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, item)
	b.due = b.due || len(b.items) >= b.threshold
}

// Flush makes all items due.
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

// Len returns the number of items that are not taken yet.
func (b *Batch[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}

// Call sends a token on Waiting if items are due, at most once between two calls of Take.
func (b *Batch[T]) Call() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.due || b.notified {
		return
	}
	b.notified = true
	select {
	case b.waiting <- struct{}{}:
	default: // the items were taken without a notification
	}
}

// Waiting returns the channel on which Call sends.
func (b *Batch[T]) Waiting() <-chan struct{} { return b.waiting }

// Take returns all items in order. They are valid until the next Take.
func (b *Batch[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items, b.taken, b.due, b.notified = b.taken[:0], b.items, false, false
	return b.taken
}
