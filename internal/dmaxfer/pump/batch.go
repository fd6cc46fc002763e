package pump

import "sync"

// Batch collects what several lanes have to say until somebody carries it to the peer. The longer that takes, the more goes
// with the next message. Safe for concurrent use, with one taker.
type Batch[T any] struct {
	mu      sync.Mutex
	items   []T
	taken   []T
	waiting chan struct{} // holds a token while there may be items
}

// NewBatch returns a Batch that holds up to room items without allocating.
func NewBatch[T any](room int) *Batch[T] {
	return &Batch[T]{items: make([]T, 0, room), taken: make([]T, 0, room), waiting: make(chan struct{}, 1)}
}

// Add appends an item and never waits.
func (b *Batch[T]) Add(item T) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.mu.Unlock()
	select {
	case b.waiting <- struct{}{}:
	default:
	}
}

// Waiting delivers a token when there may be items.
func (b *Batch[T]) Waiting() <-chan struct{} { return b.waiting }

// Take returns all items, in order. They are the taker's until the next Take.
func (b *Batch[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items, b.taken = b.taken[:0], b.items
	return b.taken
}
