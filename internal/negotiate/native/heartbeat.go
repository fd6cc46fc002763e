package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Beat is the content of a HEARTBEAT: how far this side's own work has come, which the peer cannot see.
type Beat struct {
	Phase uint32 // what the side is doing, at most MaxPhase; its own numbers, which never decrease
	Work  uint64 // bytes done in this phase; never decreases within a phase
}

// follow makes b the next beat of the same side, if that may follow.
func (b *Beat) follow(next Beat) error {
	ahead := next.Phase > b.Phase || next.Phase == b.Phase && next.Work >= b.Work
	if !ahead || next.Phase > MaxPhase {
		return wire.Malformed(wire.TypeHeartbeat, "%d bytes of work in phase %d, after %d in phase %d",
			next.Work, next.Phase, b.Work, b.Phase)
	}
	*b = next
	return nil
}

// AppendBeat appends a HEARTBEAT.
func AppendBeat(dst []byte, b Beat) []byte {
	c := wire.Sending(dst, wire.TypeHeartbeat)
	b.fields(&c)
	return c.Bytes()
}

// DecodeBeat decodes a HEARTBEAT. It fails with ErrMalformed.
func DecodeBeat(msg []byte) (b Beat, err error) {
	c := wire.Receiving(msg, wire.TypeHeartbeat)
	b.fields(&c)
	return b, c.End()
}

func (b *Beat) fields(c *wire.Codec) {
	wire.Integer(c, &b.Phase)
	wire.Integer(c, &b.Work)
}
