package negotiate

import (
	"encoding/binary"
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
	Digest   [MaxDigestSize]byte
}

// Pack announces several files in one slot. It is their data and their end at once, and occupies the slot until it is
// acknowledged.
type Pack struct {
	Slot    uint16
	Attempt uint8 // number of times that the pack was sent before, at most MaxAttempt
	Files   []PackedFile
}

// MaxPacked returns the number of files of a PACK in a message of maxMessage bytes.
func MaxPacked(maxMessage int, d Digest) int {
	return max(0, maxMessage-packSize) / (packedSize + d.Size())
}

// AppendPack appends a PACK with digests by d.
func AppendPack(dst []byte, p Pack, d Digest) []byte {
	dst = binary.BigEndian.AppendUint16(appendType(dst, TypePack), p.Slot)
	dst = append(dst, p.Attempt, byte(d.Size()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Files)))
	dst = appendPadding(dst, 4)
	for i := range p.Files {
		f := &p.Files[i]
		for _, number := range [...]uint32{f.Entry, f.Position, f.Length, 0} {
			dst = binary.BigEndian.AppendUint32(dst, number)
		}
		dst = binary.BigEndian.AppendUint64(dst, f.Check)
		dst = append(dst, f.Digest[:d.Size()]...)
	}
	return dst
}

// DecodePack decodes a PACK with digests by d, and appends its files to dst for Pack.Files. It checks neither slot nor
// positions, because it does not know the plan. It fails with ErrMalformed.
func DecodePack(dst []PackedFile, msg []byte, d Digest) (Pack, error) {
	if err := checkType(msg, TypePack, packSize); err != nil {
		return Pack{}, err
	}
	size, count := packedSize+d.Size(), binary.BigEndian.Uint32(msg[8:])
	p := Pack{Slot: binary.BigEndian.Uint16(msg[4:]), Attempt: msg[6], Files: dst}
	switch {
	case int(msg[7]) != d.Size():
		return Pack{}, malformed(TypePack, "digests of %d bytes instead of %d", msg[7], d.Size())
	case count == 0:
		return Pack{}, malformed(TypePack, "an empty list")
	case p.Attempt > MaxAttempt:
		return Pack{}, malformed(TypePack, "attempt %d, limit %d", p.Attempt, MaxAttempt)
	}
	err := firstError(
		checkTail(msg, TypePack, packSize, uint64(count)*uint64(size)),
		checkPadding(TypePack, msg[12:16]),
	)
	if err != nil {
		return Pack{}, err
	}
	for at := packSize; at < len(msg); at += size {
		b := msg[at : at+size]
		if err := checkPadding(TypePack, b[12:16]); err != nil {
			return Pack{}, err
		}
		f := PackedFile{
			Entry:    binary.BigEndian.Uint32(b),
			Position: binary.BigEndian.Uint32(b[4:]),
			Length:   binary.BigEndian.Uint32(b[8:]),
			Check:    binary.BigEndian.Uint64(b[16:]),
		}
		copy(f.Digest[:], b[packedSize:])
		p.Files = append(p.Files, f)
	}
	return p, nil
}
