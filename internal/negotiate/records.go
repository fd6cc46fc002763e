package negotiate

import (
	"encoding/binary"
	"fmt"
)

// MaxAttempt is the largest attempt of a record: its chunk was sent that often before.
const MaxAttempt = 3

const (
	listSize   = 8 // type and count
	recordSize = 32
	ackSize    = 8
)

// Kind is what a record says of a chunk of the file.
type Kind uint8

// The kinds.
const (
	DataRecord  Kind = iota + 1 // its bytes are in the slot
	HoleRecord                  // it is zero throughout
	ClaimRecord                 // the receiver has it already, and is to compare it with the check
)

// String is the kind's name in docs/PROTOCOL.md.
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

// Record announces a chunk of the file. It occupies its slot until it is acknowledged, whatever its kind.
type Record struct {
	Kind    Kind
	Attempt uint8 // how often the chunk was sent before, at most MaxAttempt
	Slot    uint32
	Offset  uint64 // in the file, bytes
	Length  uint64 // bytes, never 0; at most a chunk unless it is a hole
	Check   uint64 // of the chunk's bytes, by the plan's digest; 0 of a hole
}

// Ack is the receiver's word on the record in a slot, which is vacant from then on.
type Ack struct {
	Slot uint32
	Bad  bool // the chunk has to be sent again, and as data
}

// MaxRecords is how many records a message of maxMessage bytes holds.
func MaxRecords(maxMessage int) int { return max(0, maxMessage-listSize) / recordSize }

// MaxAcks is how many acknowledgements a message of maxMessage bytes holds.
func MaxAcks(maxMessage int) int { return max(0, maxMessage-listSize) / ackSize }

// AppendChunks appends a CHUNKS.
func AppendChunks(dst []byte, records []Record) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeChunks), uint32(len(records)))
	for _, r := range records {
		dst = append(dst, byte(r.Kind), r.Attempt, 0, 0)
		dst = binary.BigEndian.AppendUint32(dst, r.Slot)
		dst = binary.BigEndian.AppendUint64(dst, r.Offset)
		dst = binary.BigEndian.AppendUint64(dst, r.Length)
		dst = binary.BigEndian.AppendUint64(dst, r.Check)
	}
	return dst
}

// DecodeChunks appends the records of a CHUNKS to dst. It knows no plan: of the values only kind and attempt are
// checked. ErrMalformed, with dst as it was.
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
		Slot:    binary.BigEndian.Uint32(b[4:]),
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
	return r, checkPadding(TypeChunks, b[2:4])
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

// DecodeAcks appends the acknowledgements of an ACKS to dst. ErrMalformed, with dst as it was.
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

// checkList holds for a message that is nothing but a count and as many elements, of which there is at least one.
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
