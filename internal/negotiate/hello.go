package negotiate

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strings"
)

const (
	helloSize    = 40 // without the software's name and what follows it
	wordSize     = 16
	locationSize = wordSize + 2 // of what follows the name, without its texts
)

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
	Word       Word     // both sides have the same
	Location   Location
}

// Word is a digest of what both users have agreed on to find each other; the zero one: nothing.
type Word [wordSize]byte

// WordOf returns the digest of a text. It is for telling texts apart: a short one can be found by trying.
func WordOf(text string) Word {
	sum := sha256.Sum256([]byte("dma-copy word\x00" + text))
	return Word(sum[:])
}

// Location says whose file a side has or creates, for the user of the other side. Every text may be empty.
type Location struct {
	Machine string // printable ASCII, at most MaxSoftwareName bytes
	User    string // likewise
	Path    string // of the file or directory; any bytes but NUL, at most MaxLocationPath; empty for a stream
}

// within returns the location with a path that is cut at its beginning, so that all texts fit in that many bytes.
// Without room for the other texts it is empty.
func (l Location) within(room int) Location {
	room -= len(l.Machine) + len(l.User)
	if room < len(cutMark) {
		return Location{}
	}
	l.Path = cutPath(l.Path, room)
	return l
}

// cutMark is where the beginning of a path was cut.
const cutMark = "..."

// cutPath cuts a path at its beginning, so that it fits in that many bytes, and in MaxLocationPath.
func cutPath(path string, room int) string {
	room = min(room, MaxLocationPath)
	switch {
	case len(path) <= room:
		return path
	case room < len(cutMark):
		return ""
	}
	return cutMark + path[len(path)-room+len(cutMark):]
}

func checkLocationPath(t Type, path string) error {
	switch {
	case len(path) > MaxLocationPath:
		return malformed(t, "a path of %d bytes, limit %d", len(path), MaxLocationPath)
	case strings.Contains(path, "\x00"):
		return malformed(t, "a path with a NUL")
	}
	return nil
}

func (l Location) check() error {
	return firstError(
		checkLocationPath(TypeHello, l.Path),
		checkPrintable(TypeHello, "machine", l.Machine, MaxSoftwareName),
		checkPrintable(TypeHello, "user", l.User, MaxSoftwareName),
	)
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
	if h.Word == (Word{}) && h.Location == (Location{}) {
		return append(appendPadding(dst, 2), h.Software...)
	}
	location := h.Location.Machine + "\x00" + h.Location.User + "\x00" + h.Location.Path
	dst = binary.BigEndian.AppendUint16(dst, uint16(wordSize+len(location)))
	dst = append(append(dst, h.Software...), h.Word[:]...)
	return append(dst, location...)
}

// DecodeHello decodes a HELLO and checks all its values. It fails with ErrMalformed.
func DecodeHello(msg []byte) (Hello, error) {
	if err := checkType(msg, TypeHello, helloSize); err != nil {
		return Hello{}, err
	}
	software, rest := binary.BigEndian.Uint16(msg[36:]), binary.BigEndian.Uint16(msg[38:])
	err := firstError(
		checkTail(msg, TypeHello, helloSize, uint64(software)+uint64(rest)),
		checkPadding(TypeHello, msg[11:12]),
	)
	if err != nil {
		return Hello{}, err
	}
	texts := msg[helloSize:]
	h := readHello(msg)
	h.Software = string(texts[:software])
	if rest > 0 {
		if h.Word, h.Location, err = readLocation(texts[software:]); err != nil {
			return Hello{}, err
		}
	}
	if err := h.check(); err != nil {
		return Hello{}, err
	}
	return h, nil
}

// readLocation reads what follows the name of the software.
func readLocation(from []byte) (word Word, l Location, err error) {
	if len(from) < locationSize {
		return word, l, malformed(TypeHello, "%d bytes about the file, less than %d", len(from), locationSize)
	}
	parts := strings.SplitN(string(from[wordSize:]), "\x00", 3)
	if len(parts) != 3 {
		return word, l, malformed(TypeHello, "%d texts about the file; 3 are required", len(parts))
	}
	l = Location{Machine: parts[0], User: parts[1], Path: parts[2]}
	word = Word(from)
	if word == (Word{}) && l == (Location{}) {
		return word, l, malformed(TypeHello, "nothing about the file, in %d bytes", len(from))
	}
	return word, l, nil
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
	return firstError(checkPrintable(TypeHello, "software", h.Software, MaxSoftwareName), h.Location.check())
}
