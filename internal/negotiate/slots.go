package negotiate

// slotTable tracks which slots are in flight: announced and not acknowledged yet. Both sides keep the same table.
type slotTable struct {
	lengths      []uint64 // of each slot's last record
	inFlight     []bool   // by slot
	outstanding  int      // number of slots in flight
	pending      uint64   // bytes of the records in flight
	acknowledged uint64   // bytes acknowledged as good
}

func newSlotTable(slots uint32) slotTable {
	return slotTable{lengths: make([]uint64, slots), inFlight: make([]bool, slots)}
}

// exists reports whether the window has such a slot.
func (t *slotTable) exists(slot uint32) bool { return uint64(slot) < uint64(len(t.inFlight)) }

// covered returns the number of bytes in flight or acknowledged, which no further record may cover.
func (t *slotTable) covered() uint64 { return t.pending + t.acknowledged }

func (t *slotTable) occupy(slot uint32, length uint64) {
	t.lengths[slot], t.inFlight[slot] = length, true
	t.outstanding++
	t.pending += length
}

// release undoes occupy for a record that was not sent.
func (t *slotTable) release(slot uint32) {
	t.inFlight[slot] = false
	t.outstanding--
	t.pending -= t.lengths[slot]
}

func (t *slotTable) acknowledge(a Ack) {
	t.release(a.Slot)
	if !a.Bad {
		t.acknowledged += t.lengths[a.Slot]
	}
}

// undoAcknowledge undoes acknowledge for an acknowledgement that was not sent.
func (t *slotTable) undoAcknowledge(a Ack) {
	if !a.Bad {
		t.acknowledged -= t.lengths[a.Slot]
	}
	t.occupy(a.Slot, t.lengths[a.Slot])
}
