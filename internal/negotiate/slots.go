package negotiate

// slotTable knows which slots are outstanding: announced, and not acknowledged yet. Both sides keep one, and the same.
type slotTable struct {
	lengths      []uint64 // of each slot's last record
	inFlight     []bool
	outstanding  int
	pending      uint64 // bytes of the outstanding records
	acknowledged uint64 // bytes that were acknowledged as good
}

func newSlotTable(slots uint32) slotTable {
	return slotTable{lengths: make([]uint64, slots), inFlight: make([]bool, slots)}
}

// has tells whether there is such a slot at all.
func (t *slotTable) exists(slot uint32) bool { return uint64(slot) < uint64(len(t.inFlight)) }

// claimed are the bytes that no further record may cover: of the outstanding ones and of those that went well.
func (t *slotTable) covered() uint64 { return t.pending + t.acknowledged }

func (t *slotTable) occupy(slot uint32, length uint64) {
	t.lengths[slot], t.inFlight[slot] = length, true
	t.outstanding++
	t.pending += length
}

// untake is for a record that was not sent after all.
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

// unsettle is for an acknowledgement that was not sent after all.
func (t *slotTable) undoAcknowledge(a Ack) {
	if !a.Bad {
		t.acknowledged -= t.lengths[a.Slot]
	}
	t.occupy(a.Slot, t.lengths[a.Slot])
}
