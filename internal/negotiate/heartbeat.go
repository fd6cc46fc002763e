package negotiate

import "encoding/binary"

const heartbeatSize = 16

// Beat is a sign of life: how much a side has done that the peer cannot see.
type Beat struct {
	Phase uint32 // what the side is doing, at most MaxPhase; the numbers are its own, and never decrease
	Work  uint64 // bytes done of it; never decreases within a phase
}

// MaxPhase is the last phase that there can be: who only counts phases does not seem to work for ever.
const MaxPhase = 15

// follows tells whether a side may say b after earlier.
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

// DecodeBeat reads a HEARTBEAT. ErrMalformed.
func DecodeBeat(msg []byte) (Beat, error) {
	if err := checkFixed(msg, TypeHeartbeat, heartbeatSize); err != nil {
		return Beat{}, err
	}
	return Beat{Phase: binary.BigEndian.Uint32(msg[4:]), Work: binary.BigEndian.Uint64(msg[8:])}, nil
}

func checkBeat(b, earlier Beat) error {
	if !b.mayFollow(earlier) {
		return malformed(TypeHeartbeat, "%d bytes of work in phase %d, after %d in phase %d", b.Work, b.Phase, earlier.Work, earlier.Phase)
	}
	return nil
}
