package negotiate

// Beat is the content of a HEARTBEAT: how far this side's own work has come, which the peer cannot see.
type Beat struct {
	Phase uint32 // what the side is doing, at most MaxPhase; its own numbers, which never decrease
	Work  uint64 // bytes done in this phase; never decreases within a phase
}

// mayFollow reports whether a side may send b after earlier.
func (b Beat) mayFollow(earlier Beat) bool {
	if b.Phase > MaxPhase {
		return false
	}
	return b.Phase > earlier.Phase || b.Phase == earlier.Phase && b.Work >= earlier.Work
}

// AppendBeat appends a HEARTBEAT.
func AppendBeat(dst []byte, b Beat) []byte {
	c := sending(dst, TypeHeartbeat)
	b.fields(&c)
	return c.bytes
}

// DecodeBeat decodes a HEARTBEAT. It fails with ErrMalformed.
func DecodeBeat(msg []byte) (b Beat, err error) {
	c := receiving(msg, TypeHeartbeat)
	b.fields(&c)
	return b, c.end()
}

func (b *Beat) fields(c *codec) {
	integer(c, &b.Phase)
	integer(c, &b.Work)
}

func checkBeat(b, earlier Beat) error {
	if !b.mayFollow(earlier) {
		return malformed(TypeHeartbeat, "%d bytes of work in phase %d, after %d in phase %d",
			b.Work, b.Phase, earlier.Work, earlier.Phase)
	}
	return nil
}
