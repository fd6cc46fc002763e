package negotiate

import (
	"encoding/binary"
	"math/bits"
)

const helloSize = 40 // without the software's name

// Hello is the content of a HELLO: a side's limits and options, and what it has.
type Hello struct {
	Flags      Flags
	Version    uint8 // the agreed one; NewNative sets it
	Digest     Digest
	Durability Durability
	Chunk      uint32   // bytes of the largest supported slot: a power of two from MinChunk to MaxChunk
	Depth      uint32   // largest supported depth, from 1 to MaxDepth
	Session    [16]byte // random
	Software   string   // name and version of the program: printable ASCII, at most MaxSoftwareName
}

// AppendHello appends a HELLO without checking it. NewNative finds what a peer would refuse.
func AppendHello(dst []byte, h Hello) []byte {
	dst = appendType(dst, TypeHello)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Flags))
	dst = append(dst, h.Version, byte(h.Digest), byte(h.Durability), 0)
	dst = binary.BigEndian.AppendUint32(dst, h.Chunk)
	dst = binary.BigEndian.AppendUint32(dst, h.Depth)
	dst = append(dst, h.Session[:]...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(h.Software)))
	dst = appendPadding(dst, 2)
	return append(dst, h.Software...)
}

// DecodeHello decodes a HELLO and checks all its values. It fails with ErrMalformed.
func DecodeHello(msg []byte) (Hello, error) {
	if err := checkType(msg, TypeHello, helloSize); err != nil {
		return Hello{}, err
	}
	err := firstError(
		checkTail(msg, TypeHello, helloSize, uint64(binary.BigEndian.Uint16(msg[36:]))),
		checkPadding(TypeHello, msg[11:12]),
		checkPadding(TypeHello, msg[38:40]),
	)
	if err != nil {
		return Hello{}, err
	}
	h := readHello(msg)
	if err := h.check(); err != nil {
		return Hello{}, err
	}
	return h, nil
}

func readHello(msg []byte) Hello {
	return Hello{
		Flags:      Flags(binary.BigEndian.Uint32(msg[4:])),
		Version:    msg[8],
		Digest:     Digest(msg[9]),
		Durability: Durability(msg[10]),
		Chunk:      binary.BigEndian.Uint32(msg[12:]),
		Depth:      binary.BigEndian.Uint32(msg[16:]),
		Session:    [16]byte(msg[20:]),
		Software:   string(msg[helloSize:]),
	}
}

// check checks everything that does not depend on the peer's HELLO.
func (h Hello) check() error {
	switch {
	case h.Flags&^knownFlags != 0:
		return malformed(TypeHello, "unknown flags %#x", uint32(h.Flags&^knownFlags))
	case bits.OnesCount32(uint32(h.Flags&(FlagFile|FlagTree|FlagStream))) > 1:
		return malformed(TypeHello, "flags %#x: a side has a file, a tree or a stream", uint32(h.Flags))
	case h.Flags.Has(FlagOverwrite | FlagIgnoreExisting):
		return malformed(TypeHello, "flags %#x: a side replaces or leaves what exists", uint32(h.Flags))
	case h.Flags.Has(FlagUnfinished) && !h.Flags.Has(FlagTree):
		return malformed(TypeHello, "flags %#x: only a tree is unfinished", uint32(h.Flags))
	case h.Version == 0:
		return malformed(TypeHello, "version 0")
	case !h.Digest.Known():
		return malformed(TypeHello, "unknown %s", h.Digest)
	case !h.Durability.Known():
		return malformed(TypeHello, "unknown %s", h.Durability)
	case h.Chunk < MinChunk || h.Chunk > MaxChunk || bits.OnesCount32(h.Chunk) != 1:
		return malformed(TypeHello, "chunks of %d bytes; a power of two from %d to %d is required",
			h.Chunk, MinChunk, MaxChunk)
	case h.Depth < 1 || h.Depth > MaxDepth:
		return malformed(TypeHello, "%d slots; 1 to %d are required", h.Depth, MaxDepth)
	}
	return checkPrintable(TypeHello, "software", h.Software, MaxSoftwareName)
}
