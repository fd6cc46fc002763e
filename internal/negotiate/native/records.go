package native

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

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

// String returns the kind's name in docs/internals/protocol/native.md.
func (k Kind) String() string { return wire.NameOf(recordNames, k, "kind") }

// Record announces one chunk of a file. It occupies its slot until it is acknowledged, regardless of its kind.
type Record struct {
	Kind    Kind
	Attempt uint8 // number of times that the chunk was sent before, at most MaxAttempt
	Slot    uint16
	Entry   uint32
	Offset  uint64 // in the file in bytes
	Length  uint64 // bytes, never 0; at most a chunk unless it is a hole
	Check   uint64 // checksum of the chunk by the plan's digest; of a claim, by XXH3-64; 0 for a hole
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

const (
	packSize   = 16 // without the files
	packedSize = 24 // without the digest
)

// PackedFile is one whole file in the slot of a pack.
type PackedFile struct {
	Entry    uint32
	Position uint32 // in the slot in bytes
	Length   uint32 // bytes, also of the file
	Check    uint64 // checksum by the plan's digest
	Digest   [wire.MaxDigestSize]byte
}

// Pack announces several files in one slot. It is their data and their end at once, and occupies the slot until it is
// acknowledged.
type Pack struct {
	Slot    uint16
	Attempt uint8 // number of times that the pack was sent before, at most MaxAttempt
	Files   []PackedFile
}

// MaxPacked returns the number of files of a PACK in a message of maxMessage bytes.
func MaxPacked(maxMessage int, d wire.Digest) int {
	return max(0, maxMessage-packSize) / (packedSize + d.Size())
}

// AppendPack appends a PACK with digests by d.
func AppendPack(dst []byte, p Pack, d wire.Digest) []byte {
	c := wire.Sending(dst, wire.TypePack)
	p.fields(&c, d)
	for i := range p.Files {
		p.Files[i].fields(&c, d)
	}
	return c.Bytes()
}

// DecodePack decodes a PACK with digests by d, and appends its files to dst for Pack.Files. It checks neither slot nor
// positions, because it does not know the plan. It fails with ErrMalformed.
func DecodePack(dst []PackedFile, msg []byte, d wire.Digest) (Pack, error) {
	c, p := wire.Receiving(msg, wire.TypePack), Pack{Files: dst}
	for p.fields(&c, d); c.More(); {
		var f PackedFile
		f.fields(&c, d)
		p.Files = append(p.Files, f)
	}
	return p, c.End()
}

// fields passes what comes before the files.
func (p *Pack) fields(c *wire.Codec, d wire.Digest) {
	wire.Integer(c, &p.Slot)
	wire.Integer(c, &p.Attempt)
	if size := wire.Length[uint8](c, d.Size()); size != d.Size() {
		c.Fail("digests of %d bytes instead of %d", size, d.Size())
	}
	c.List(len(p.Files))
	c.Zeros(4)
	if p.Attempt > MaxAttempt {
		c.Fail("attempt %d, limit %d", p.Attempt, MaxAttempt)
	}
}

func (f *PackedFile) fields(c *wire.Codec, d wire.Digest) {
	wire.Integer(c, &f.Entry)
	wire.Integer(c, &f.Position)
	wire.Integer(c, &f.Length)
	c.Zeros(4)
	wire.Integer(c, &f.Check)
	c.Array(f.Digest[:d.Size()])
}
