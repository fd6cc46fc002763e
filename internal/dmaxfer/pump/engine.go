package pump

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// Move is one copy between the window and this side's buffers, in the direction of the Engine.
type Move struct {
	Window int64 // offset in the window in bytes
	Buffer int64 // offset in the buffers in bytes
	Length int64 // in bytes, from 1 to the size of a slot
	Tag    int   // returned in Moved
	Plain  bool  // the checksum of the copied bytes is of no use

	// More are further ranges of the window, which follow in the buffer. All together are at most as long as a slot,
	// and the move is Plain. Only a Gatherer gets any. They are valid until the move has ended.
	More []Range
}

// Range is a part of the window, in bytes.
type Range struct {
	Offset, Length int64
}

// Moved is the completion of the Move with the same Tag.
type Moved struct {
	Tag     int
	Err     error
	Checked bool   // the engine has computed the checksum of the copied bytes
	Check   uint64 // the checksum, if Checked
}

// Engine copies between the window and buffers. Several moves can be in flight and end in any order. An Engine
// belongs to one lane. Its owner calls Close after the lane has ended; Close returns when no memory is accessed any
// more.
type Engine interface {
	// Submit accepts as many moves as the engine has capacity for, from the first on, and returns their number.
	Submit(moves []Move) (int, error)

	// Reap waits for the end of at least one move and returns the number of completions written to into. With none in
	// flight it returns 0. If ctx ends, Reap returns its cause.
	Reap(ctx context.Context, into []Moved) (int, error)

	// Poll is Reap without waiting.
	Poll(into []Moved) int

	// Inflight returns the number of moves submitted and not reaped.
	Inflight() int

	// Close releases the engine's resources.
	Close() error
}

// Gatherer is an Engine of a receiver that can copy several ranges of the window with one move.
type Gatherer interface {
	Engine

	// MaxRanges returns the maximum number of ranges of one move, at least 1. It does not change.
	MaxRanges() int
}

// InPlace guards the buffers of a receiver's lane where content arrives in them: a slot's buffer has the slot's number
// among the lane's slots. A move has the buffer of its slot, and the engine copies nothing. The methods are called by
// the lane.
type InPlace interface {
	// Occupy is called before the lane writes to a buffer itself. It fails if the peer has sent content for the slot,
	// which it must not do then.
	Occupy(buffer int) error

	// Release is called when the lane no longer uses what a move or Occupy has put into a buffer, before the slot is
	// acknowledged.
	Release(buffer int)
}

// maxRanges returns the maximum number of ranges of one move of an engine.
func maxRanges(e Engine) int {
	if g, gathers := e.(Gatherer); gathers {
		return g.MaxRanges()
	}
	return 1
}

// Copier is the Engine of a receiving host. It copies out of the window with the CPU, immediately, and computes the
// checksums.
type Copier struct {
	window, buffers []byte
	digest          digest.Algorithm
	ended           []Moved
}

var _ Engine = (*Copier)(nil)

// NewCopier returns a Copier for up to depth moves in flight that computes the chunk checksums of the given
// algorithm.
func NewCopier(window, buffers []byte, depth int, checks digest.Algorithm) *Copier {
	return &Copier{window: window, buffers: buffers, digest: checks, ended: make([]Moved, 0, depth)}
}

// Submit implements Engine.
func (c *Copier) Submit(moves []Move) (int, error) {
	moves = moves[:min(len(moves), cap(c.ended)-len(c.ended))]
	for _, m := range moves {
		from, to := c.window[m.Window:m.Window+m.Length], c.buffers[m.Buffer:m.Buffer+m.Length]
		if m.Plain {
			copy(to, from)
			c.ended = append(c.ended, Moved{Tag: m.Tag})
			continue
		}
		check := digest.CheckedCopy(c.digest, to, from)
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
