package negotiate

// slotTable knows which slots are outstanding: announced, and not acknowledged yet. Both sides keep one, and the same.
type slotTable struct {
	lengths     []uint64 // of each slot's last record
	taken       []bool
	outstanding int
	pending     uint64 // bytes of the outstanding records
	settled     uint64 // bytes that were acknowledged as good
}

func newSlotTable(slots uint32) slotTable {
	return slotTable{lengths: make([]uint64, slots), taken: make([]bool, slots)}
}

// has tells whether there is such a slot at all.
func (t *slotTable) has(slot uint32) bool { return uint64(slot) < uint64(len(t.taken)) }

// claimed are the bytes that no further record may cover: of the outstanding ones and of those that went well.
func (t *slotTable) claimed() uint64 { return t.pending + t.settled }

func (t *slotTable) take(slot uint32, length uint64) {
	t.lengths[slot], t.taken[slot] = length, true
	t.outstanding++
	t.pending += length
}

// untake is for a record that was not sent after all.
func (t *slotTable) untake(slot uint32) {
	t.taken[slot] = false
	t.outstanding--
	t.pending -= t.lengths[slot]
}

func (t *slotTable) settle(a Ack) {
	t.untake(a.Slot)
	if !a.Bad {
		t.settled += t.lengths[a.Slot]
	}
}

// unsettle is for an acknowledgement that was not sent after all.
func (t *slotTable) unsettle(a Ack) {
	if !a.Bad {
		t.settled -= t.lengths[a.Slot]
	}
	t.take(a.Slot, t.lengths[a.Slot])
}
