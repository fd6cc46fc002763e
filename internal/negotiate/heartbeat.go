package negotiate

import "encoding/binary"

const heartbeatSize = 16

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
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeHeartbeat), b.Phase)
	return binary.BigEndian.AppendUint64(dst, b.Work)
}

// DecodeBeat decodes a HEARTBEAT. It fails with ErrMalformed.
func DecodeBeat(msg []byte) (Beat, error) {
	if err := checkFixed(msg, TypeHeartbeat, heartbeatSize); err != nil {
		return Beat{}, err
	}
	return Beat{Phase: binary.BigEndian.Uint32(msg[4:]), Work: binary.BigEndian.Uint64(msg[8:])}, nil
}

func checkBeat(b, earlier Beat) error {
	if !b.mayFollow(earlier) {
		return malformed(TypeHeartbeat, "%d bytes of work in phase %d, after %d in phase %d",
			b.Work, b.Phase, earlier.Work, earlier.Phase)
	}
	return nil
}
