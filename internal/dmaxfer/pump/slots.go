package pump

// Slots is memory divided into slots of equal size.
type Slots struct {
	memory []byte
	size   int64
}

// NewSlots divides memory, whose length must be a multiple of size bytes.
func NewSlots(memory []byte, size int64) Slots { return Slots{memory: memory, size: size} }

// Count returns the number of slots.
func (s Slots) Count() int { return int(int64(len(s.memory)) / s.size) }

func (s Slots) offset(slot int) int64 { return int64(slot) * s.size }

// Bytes returns the first length bytes of a slot.
func (s Slots) Bytes(slot int, length int64) []byte {
	start := s.offset(slot)
	return s.memory[start : start+length : start+length]
}
