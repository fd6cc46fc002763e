package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// slot is one slot of the window.
type slot struct {
	inFlight bool // announced and not acknowledged yet
	marked   bool // named by the list that is being checked
	packed   bool // has a pack; otherwise a record
	entry    uint32
	length   uint64 // bytes of the record
	first    uint16 // with packed: place in the entry table of the first file
}

// slotTable tracks which slots are in flight. Both sides keep the same table.
type slotTable struct {
	slots        []slot
	outstanding  int    // number of slots in flight
	acknowledged uint64 // how often slots were acknowledged
}

func newSlotTable(depth uint32) slotTable { return slotTable{slots: make([]slot, depth)} }

// vacant returns a slot for a new record or pack.
func (t *slotTable) vacant(message wire.Type, number uint32) (*slot, error) {
	if uint64(number) >= uint64(len(t.slots)) {
		return nil, wire.Malformed(message, "slot %d of %d", number, len(t.slots))
	}
	if t.slots[number].inFlight {
		return nil, &wire.Error{Message: message, Err: wire.ErrOutOfOrder, Detail: "a slot in flight"}
	}
	return &t.slots[number], nil
}

// inFlight returns a slot that may be acknowledged.
func (t *slotTable) inFlight(number uint32) (*slot, error) {
	if uint64(number) >= uint64(len(t.slots)) {
		return nil, wire.Malformed(wire.TypeAcks, "slot %d of %d", number, len(t.slots))
	}
	if s := &t.slots[number]; s.inFlight && !s.marked {
		return s, nil
	}
	return nil, &wire.Error{Message: wire.TypeAcks, Err: wire.ErrOutOfOrder,
		Detail: "an acknowledgement for a slot not in flight"}
}
