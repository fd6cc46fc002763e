package window

import (
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// SlotMatcher is the part of a receiver's pump.Engine that all paths on which the sender sends have in common. A move
// ends when the content of its slot has arrived, and has been copied to the lane's buffers unless it arrives in them;
// move and content come in any order. It belongs to the lane and is not safe for concurrent use.
type SlotMatcher struct {
	path        wire.Path
	buffers     []byte // the lane's own; nil: content stays where it has arrived
	chunk       int64
	depth       int // slots of the window
	lane, lanes int
	digest      digest.Algorithm
	free        func(from int64) error

	slots  []slotArrival // of this lane, in the order of their numbers
	wanted int           // moves that wait for their content
	ended  []pump.Moved
}

// slotArrival is what has happened of the two events that a move needs.
type slotArrival struct {
	arrived bool // the content:
	content []byte
	from    int64 // what free is called with

	wanted bool
	move   pump.Move
}

// NewSlotMatcher returns the SlotMatcher of a lane. It has the slots whose number modulo the number of lanes is lane,
// and copies to buffers. free is called when content has been copied, with the value that Arrive had for it: the memory
// may then receive the next message. Without buffers both are nil, and nothing is copied.
func NewSlotMatcher(buffers []byte, l Layout, lane int, free func(from int64) error) *SlotMatcher {
	slots := l.LaneSlots(lane)
	return &SlotMatcher{
		path: l.Path, buffers: buffers, chunk: l.Chunk, depth: l.Depth, lane: lane, lanes: l.Lanes, digest: l.Digest,
		free: free, slots: make([]slotArrival, slots), ended: make([]pump.Moved, 0, slots),
	}
}

// LaneSlots returns how many of the slots belong to a lane. Lane 0 has the most.
func (l Layout) LaneSlots(lane int) int { return (l.Depth - lane + l.Lanes - 1) / l.Lanes }

// Submit takes the moves of pump.Engine.Submit. There is space for all of them.
func (s *SlotMatcher) Submit(moves []pump.Move) error {
	for _, m := range moves {
		slot := &s.slots[int(m.Window/s.chunk)/s.lanes]
		slot.wanted, slot.move = true, m
		s.wanted++
		if err := s.settle(slot); err != nil {
			return err
		}
	}
	return nil
}

// Arrive takes the content of a slot, which must not change until free is called with from, or without buffers until
// the lane has released it. It returns a *wire.Error for a slot that is not the lane's, or has content already,
// and for content of another length than its record says.
func (s *SlotMatcher) Arrive(slot uint32, content []byte, from int64) error {
	if slot >= uint32(s.depth) || int(slot)%s.lanes != s.lane {
		return s.Violation("slot %d is not one of lane %d", slot, s.lane)
	}
	arrived := &s.slots[int(slot)/s.lanes]
	if arrived.arrived {
		return s.Violation("slot %d twice", slot)
	}
	arrived.arrived, arrived.content, arrived.from = true, content, from
	return s.settle(arrived)
}

// settle ends the move of a slot if its content has arrived.
func (s *SlotMatcher) settle(slot *slotArrival) error {
	if !slot.arrived || !slot.wanted {
		return nil
	}
	m := slot.move
	if int64(len(slot.content)) != m.Length {
		return s.Violation("a message of %d bytes for a record of %d", len(slot.content), m.Length)
	}
	moved := pump.Moved{Tag: m.Tag}
	if s.buffers != nil {
		moved = s.copy(m, slot.content)
	}
	s.ended = append(s.ended, moved)
	slot.arrived, slot.wanted, slot.content = false, false, nil
	s.wanted--
	if s.free == nil {
		return nil
	}
	return s.free(slot.from)
}

// copy copies content to the buffer of a move.
func (s *SlotMatcher) copy(m pump.Move, content []byte) pump.Moved {
	to := s.buffers[m.Buffer : m.Buffer+m.Length]
	if m.Plain {
		copy(to, content)
		return pump.Moved{Tag: m.Tag}
	}
	return pump.Moved{Tag: m.Tag, Checked: true, Check: digest.CheckedCopy(s.digest, to, content)}
}

// Violation returns the error for what the peer must not send.
func (s *SlotMatcher) Violation(format string, args ...any) error {
	return &wire.Error{
		Err: wire.ErrMalformed, Detail: fmt.Sprintf("on the path %s: ", s.path) + fmt.Sprintf(format, args...),
	}
}

// Waits reports whether moves wait for their content and none has ended.
func (s *SlotMatcher) Waits() bool { return s.wanted > 0 && len(s.ended) == 0 }

// Take returns ended moves in into, as pump.Engine.Poll does.
func (s *SlotMatcher) Take(into []pump.Moved) int {
	n := copy(into, s.ended)
	s.ended = s.ended[:copy(s.ended, s.ended[n:])]
	return n
}

// Inflight returns the number of moves submitted and not taken.
func (s *SlotMatcher) Inflight() int { return s.wanted + len(s.ended) }
