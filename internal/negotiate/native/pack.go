package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

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
