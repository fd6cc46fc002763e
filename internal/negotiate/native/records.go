package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const (
	recordSize = 32
	ackSize    = 8
)

// Kind is the kind of a record.
type Kind uint8

// The kinds.
const (
	DataRecord  Kind = 1 // the chunk's bytes are in the slot
	HoleRecord  Kind = 2 // the chunk consists of zeros
	ClaimRecord Kind = 3 // the receiver has the chunk, and compares it with the checksum
)

var recordNames = []string{DataRecord: "data", HoleRecord: "hole", ClaimRecord: "claim"}

// String returns the kind's name in docs/PROTOCOL.md.
func (k Kind) String() string { return wire.NameOf(recordNames, k, "kind") }

// Record announces one chunk of a file. It occupies its slot until it is acknowledged, whatever its kind.
type Record struct {
	Kind    Kind
	Attempt uint8 // number of times that the chunk was sent before, at most MaxAttempt
	Slot    uint16
	Entry   uint32
	Offset  uint64 // in the file in bytes
	Length  uint64 // bytes, never 0; at most a chunk unless it is a hole
	Check   uint64 // checksum of the chunk by the plan's digest; 0 for a hole
}

// Ack is the receiver's acknowledgement of the record or the pack in a slot, which is vacant then.
type Ack struct {
	Slot uint32
	Bad  bool // the chunk, or the whole pack, must be sent again, as data
}

// MaxRecords returns the number of records in a message of maxMessage bytes.
func MaxRecords(maxMessage int) int { return max(0, maxMessage-wire.ListSize) / recordSize }

// MaxAcks returns the number of acknowledgements in a message of maxMessage bytes.
func MaxAcks(maxMessage int) int { return max(0, maxMessage-wire.ListSize) / ackSize }

// AppendChunks appends a CHUNKS.
func AppendChunks(dst []byte, records []Record) []byte {
	return wire.EncodeList(dst, wire.TypeChunks, records, (*Record).fields)
}

// DecodeChunks appends the records of a CHUNKS to dst. It checks only kind and attempt, because it does not know the
// plan. It fails with ErrMalformed and returns dst unchanged.
func DecodeChunks(dst []Record, msg []byte) ([]Record, error) {
	return wire.DecodeList(dst, msg, wire.TypeChunks, (*Record).fields)
}

func (r *Record) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &r.Kind)
	wire.Integer(&c, &r.Attempt)
	wire.Integer(&c, &r.Slot)
	wire.Integer(&c, &r.Entry)
	wire.Integer(&c, &r.Offset)
	wire.Integer(&c, &r.Length)
	wire.Integer(&c, &r.Check)
	c.Verify(r.check)
	return c
}

// check checks what does not depend on the plan.
func (r *Record) check() error {
	switch {
	case r.Kind < DataRecord || r.Kind > ClaimRecord:
		return wire.Malformed(wire.TypeChunks, "a record of unknown %s", r.Kind)
	case r.Attempt > MaxAttempt:
		return wire.Malformed(wire.TypeChunks, "attempt %d, limit %d", r.Attempt, MaxAttempt)
	}
	return nil
}

// AppendAcks appends an ACKS.
func AppendAcks(dst []byte, acks []Ack) []byte {
	return wire.EncodeList(dst, wire.TypeAcks, acks, (*Ack).fields)
}

// DecodeAcks appends the acknowledgements of an ACKS to dst. It fails with ErrMalformed and returns dst unchanged.
func DecodeAcks(dst []Ack, msg []byte) ([]Ack, error) {
	return wire.DecodeList(dst, msg, wire.TypeAcks, (*Ack).fields)
}

func (a *Ack) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &a.Slot)
	c.Bit(&a.Bad, "verdict")
	c.Zeros(3)
	return c
}
