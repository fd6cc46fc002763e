package pump

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// Move is one copy between the window and the memory of this side's buffers. The Engine knows which way.
type Move struct {
	Window int64 // offset in the window, bytes
	Buffer int64 // offset in the buffers, bytes
	Length int64 // bytes, 1 to the size of a slot
	Tag    int   // comes back in Moved
}

// Moved is the end of the Move with the same Tag.
type Moved struct {
	Tag     int
	Err     error
	Checked bool   // the engine has computed the check of what it has copied
	Check   uint64 // which is this
}

// Engine copies between the window and buffers, several moves at a time, which end in any order. It belongs to one lane;
// Close is for its owner, after the lane has ended, and waits until no memory is touched any more.
type Engine interface {
	// Submit takes as many moves as there is room for, from the first on, and says how many.
	Submit(moves []Move) (int, error)

	// Reap waits for the end of at least one move; with none in flight it returns 0. ctx ends the wait with its cause.
	Reap(ctx context.Context, into []Moved) (int, error)

	// Poll is Reap without the wait.
	Poll(into []Moved) int

	// Inflight is how many moves have been submitted and not reaped.
	Inflight() int

	// Close gives back what the engine holds.
	Close() error
}

// Copier is the Engine of a receiving host: a plain copy out of the window, done at once, together with the check.
type Copier struct {
	window, buffers []byte
	digest          digest.Algorithm
	ended           []Moved
}

var _ Engine = (*Copier)(nil)

// NewCopier returns a Copier for up to depth moves in flight, of chunks with the checks of this digest.
func NewCopier(window, buffers []byte, depth int, checks digest.Algorithm) *Copier {
	return &Copier{window: window, buffers: buffers, digest: checks, ended: make([]Moved, 0, depth)}
}

// Submit implements Engine.
func (c *Copier) Submit(moves []Move) (int, error) {
	moves = moves[:min(len(moves), cap(c.ended)-len(c.ended))]
	for _, m := range moves {
		check := digest.CheckedCopy(c.digest, c.buffers[m.Buffer:m.Buffer+m.Length], c.window[m.Window:m.Window+m.Length])
		c.ended = append(c.ended, Moved{Tag: m.Tag, Checked: true, Check: check})
	}
	return len(moves), nil
}

// Reap implements Engine.
func (c *Copier) Reap(_ context.Context, into []Moved) (int, error) { return c.Poll(into), nil }

// Poll implements Engine.
func (c *Copier) Poll(into []Moved) int {
	n := copy(into, c.ended)
	c.ended = c.ended[:copy(c.ended, c.ended[n:])]
	return n
}

// Inflight implements Engine.
func (c *Copier) Inflight() int { return len(c.ended) }

// Close implements Engine.
func (c *Copier) Close() error { return nil }
