package negotiate

import (
	"encoding/binary"
	"fmt"
)

const (
	listSize   = 8 // type and count
	recordSize = 32
	ackSize    = 8
)

// Kind is the kind of a record.
type Kind uint8

// The kinds.
const (
	DataRecord  Kind = iota + 1 // the chunk's bytes are in the slot
	HoleRecord                  // the chunk consists of zeros
	ClaimRecord                 // the receiver has the chunk, and compares it with the checksum
)

// String returns the kind's name in docs/PROTOCOL.md.
func (k Kind) String() string {
	switch k {
	case DataRecord:
		return "data"
	case HoleRecord:
		return "hole"
	case ClaimRecord:
		return "claim"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

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
func MaxRecords(maxMessage int) int { return max(0, maxMessage-listSize) / recordSize }

// MaxAcks returns the number of acknowledgements in a message of maxMessage bytes.
func MaxAcks(maxMessage int) int { return max(0, maxMessage-listSize) / ackSize }

// AppendChunks appends a CHUNKS.
func AppendChunks(dst []byte, records []Record) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeChunks), uint32(len(records)))
	for _, r := range records {
		dst = append(dst, byte(r.Kind), r.Attempt)
		dst = binary.BigEndian.AppendUint16(dst, r.Slot)
		dst = binary.BigEndian.AppendUint32(dst, r.Entry)
		dst = binary.BigEndian.AppendUint64(dst, r.Offset)
		dst = binary.BigEndian.AppendUint64(dst, r.Length)
		dst = binary.BigEndian.AppendUint64(dst, r.Check)
	}
	return dst
}

// DecodeChunks appends the records of a CHUNKS to dst. It checks only kind and attempt, because it does not know the
// plan. It fails with ErrMalformed and returns dst unchanged.
func DecodeChunks(dst []Record, msg []byte) ([]Record, error) {
	if err := checkList(msg, TypeChunks, recordSize); err != nil {
		return dst, err
	}
	records := dst
	for at := listSize; at < len(msg); at += recordSize {
		r, err := decodeRecord(msg[at : at+recordSize])
		if err != nil {
			return dst, err
		}
		records = append(records, r)
	}
	return records, nil
}

func decodeRecord(b []byte) (Record, error) {
	r := Record{
		Kind:    Kind(b[0]),
		Attempt: b[1],
		Slot:    binary.BigEndian.Uint16(b[2:]),
		Entry:   binary.BigEndian.Uint32(b[4:]),
		Offset:  binary.BigEndian.Uint64(b[8:]),
		Length:  binary.BigEndian.Uint64(b[16:]),
		Check:   binary.BigEndian.Uint64(b[24:]),
	}
	if r.Kind < DataRecord || r.Kind > ClaimRecord {
		return Record{}, malformed(TypeChunks, "a record of unknown %s", r.Kind)
	}
	if r.Attempt > MaxAttempt {
		return Record{}, malformed(TypeChunks, "attempt %d, limit %d", r.Attempt, MaxAttempt)
	}
	return r, nil
}

// AppendAcks appends an ACKS.
func AppendAcks(dst []byte, acks []Ack) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeAcks), uint32(len(acks)))
	for _, a := range acks {
		dst = binary.BigEndian.AppendUint32(dst, a.Slot)
		dst = append(dst, wireBool(a.Bad), 0, 0, 0)
	}
	return dst
}

// DecodeAcks appends the acknowledgements of an ACKS to dst. It fails with ErrMalformed and returns dst unchanged.
func DecodeAcks(dst []Ack, msg []byte) ([]Ack, error) {
	if err := checkList(msg, TypeAcks, ackSize); err != nil {
		return dst, err
	}
	acks := dst
	for at := listSize; at < len(msg); at += ackSize {
		b := msg[at : at+ackSize]
		if b[4] > 1 {
			return dst, malformed(TypeAcks, "verdict %d instead of 0 or 1", b[4])
		}
		if err := checkPadding(TypeAcks, b[5:]); err != nil {
			return dst, err
		}
		acks = append(acks, Ack{Slot: binary.BigEndian.Uint32(b), Bad: b[4] == 1})
	}
	return acks, nil
}

// checkList checks a message that consists of a count and as many elements, at least one.
func checkList(msg []byte, t Type, element int) error {
	if err := checkType(msg, t, listSize); err != nil {
		return err
	}
	count := binary.BigEndian.Uint32(msg[4:])
	if count == 0 {
		return malformed(t, "an empty list")
	}
	return checkTail(msg, t, listSize, uint64(count)*uint64(element))
}
