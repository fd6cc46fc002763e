package negotiate

import (
	"encoding/binary"
	"math"
	"math/bits"
)

const helloSize = 88 // without the software's name

// Timestamp is a time of a file.
type Timestamp struct {
	Sec  int64  // since 1970, may be negative
	Nsec uint32 // below 10^9
}

// Hello is the content of a HELLO: a side's limits, its file and its options.
type Hello struct {
	Flags      Flags
	Version    uint8 // the agreed one; NewNative sets it
	Digest     Digest
	Durability Durability
	Chunk      uint32    // bytes of the largest supported slot: a power of two from MinChunk to MaxChunk
	Depth      uint32    // largest supported depth, from 1 to MaxDepth
	Size       uint64    // bytes of the file, at most MaxSize; 0 without FlagHasFile
	MTime      Timestamp // of the file, like the fields below
	Mode       uint32    // permission bits, at most MaxMode
	UID, GID   uint32
	Identity   [16]byte // equal as long as the file is unchanged; for resuming
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
	dst = binary.BigEndian.AppendUint64(dst, h.Size)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.MTime.Sec))
	for _, number := range [...]uint32{h.MTime.Nsec, h.Mode, h.UID, h.GID} {
		dst = binary.BigEndian.AppendUint32(dst, number)
	}
	dst = append(dst, h.Identity[:]...)
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
		checkTail(msg, TypeHello, helloSize, uint64(binary.BigEndian.Uint16(msg[84:]))),
		checkPadding(TypeHello, msg[11:12]),
		checkPadding(TypeHello, msg[86:88]),
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
		Size:       binary.BigEndian.Uint64(msg[20:]),
		MTime:      Timestamp{int64(binary.BigEndian.Uint64(msg[28:])), binary.BigEndian.Uint32(msg[36:])},
		Mode:       binary.BigEndian.Uint32(msg[40:]),
		UID:        binary.BigEndian.Uint32(msg[44:]),
		GID:        binary.BigEndian.Uint32(msg[48:]),
		Identity:   [16]byte(msg[52:]),
		Session:    [16]byte(msg[68:]),
		Software:   string(msg[helloSize:]),
	}
}

// check checks everything that does not depend on the peer's HELLO.
func (h Hello) check() error {
	switch {
	case h.Flags&^knownFlags != 0:
		return malformed(TypeHello, "unknown flags %#x", uint32(h.Flags&^knownFlags))
	case h.Flags.Has(FlagHasFile) && h.Flags&(FlagStream|FlagOverwrite) != 0:
		return malformed(TypeHello, "flags %#x: a side that has the file neither is a stream nor overwrites",
			uint32(h.Flags))
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
	return h.checkFile()
}

func (h Hello) checkFile() error {
	switch {
	case h.Size != 0 && !h.Flags.Has(FlagHasFile):
		return malformed(TypeHello, "a size of %d bytes without a file", h.Size)
	case h.Size > MaxSize:
		return malformed(TypeHello, "a file of %d bytes, limit %d", h.Size, uint64(MaxSize))
	case h.MTime.Nsec >= 1e9:
		return malformed(TypeHello, "%d nanoseconds in a second", h.MTime.Nsec)
	case h.Mode > MaxMode:
		return malformed(TypeHello, "mode %#o, limit %#o", h.Mode, MaxMode)
	case h.UID == math.MaxUint32 || h.GID == math.MaxUint32: // chown(2) would not change the owner
		return malformed(TypeHello, "uid %d and gid %d, limit %d", h.UID, h.GID, uint32(math.MaxUint32-1))
	case len(h.Software) > MaxSoftwareName:
		return malformed(TypeHello, "a name of %d bytes, limit %d", len(h.Software), MaxSoftwareName)
	}
	for _, octet := range []byte(h.Software) {
		if octet < ' ' || octet > '~' {
			return malformed(TypeHello, "byte %#x in the software's name", octet)
		}
	}
	return nil
}
