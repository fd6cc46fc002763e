package native

import (
	"crypto/sha256"
	"math/bits"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The limits of the native protocol. A peer that exceeds one of them sends a malformed message.
const (
	MaxAttempt = 3  // number of times that a chunk is retransmitted
	MaxPhase   = 15 // of a heartbeat, so that a side cannot count phases instead of work

	MaxOpen      = 1024      // entries from the oldest undecided one to the newest
	MaxMetadata  = 256 << 10 // bytes of an entry's extended attributes
	MaxTransport = 64        // bytes of the transport's name in FINISH and FINISHED
)

// MaxHello is the size of a HELLO in bytes, without the texts of its Location.
const MaxHello = helloSize + wire.MaxSoftwareName + locationSize

const (
	helloSize    = 40 // without the software's name and what follows it
	wordSize     = 16
	locationSize = wordSize + 2 // of what follows the name, without its texts
)

// Hello is the content of a HELLO: a side's limits and options, and what it has.
type Hello struct {
	Flags      Flags
	Version    uint8 // the agreed one; New sets it
	Digest     wire.Digest
	Durability wire.Durability
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
	if room < len(wire.CutMark) {
		return Location{}
	}
	l.Path = wire.CutPath(l.Path, room)
	return l
}

func (l Location) check() error {
	return wire.FirstError(
		wire.CheckLocationPath(wire.TypeHello, l.Path),
		wire.CheckPrintable(wire.TypeHello, "machine", l.Machine, wire.MaxSoftwareName),
		wire.CheckPrintable(wire.TypeHello, "user", l.User, wire.MaxSoftwareName),
	)
}

// AppendHello appends a HELLO without checking it. New finds what a peer would refuse.
func AppendHello(dst []byte, h Hello) []byte {
	return wire.Encode(dst, wire.TypeHello, &h, (*Hello).fields)
}

// DecodeHello decodes a HELLO and checks all its values. It fails with ErrMalformed.
func DecodeHello(msg []byte) (Hello, error) { return wire.Decode(msg, wire.TypeHello, (*Hello).fields) }

func (h *Hello) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &h.Flags)
	wire.Integer(&c, &h.Version)
	wire.Integer(&c, &h.Digest)
	wire.Integer(&c, &h.Durability)
	c.Zeros(1)
	wire.Integer(&c, &h.Chunk)
	wire.Integer(&c, &h.Depth)
	c.Array(h.Session[:])
	software := wire.Length[uint16](&c, len(h.Software))
	located, texts := 0, h.Location.Machine+"\x00"+h.Location.User+"\x00"+h.Location.Path
	if h.Word != (Word{}) || h.Location != (Location{}) {
		located = wordSize + len(texts)
	}
	located = wire.Length[uint16](&c, located)
	c.Text(&h.Software, software)
	if located > 0 {
		c.Array(h.Word[:])
		c.Text(&texts, located-wordSize)
		h.locate(&c, texts)
	}
	c.Verify(h.check)
	return c
}

// locate takes a received location from its texts.
func (h *Hello) locate(c *wire.Codec, texts string) {
	parts := strings.SplitN(texts, "\x00", 3)
	if len(parts) != 3 {
		c.Fail("%d texts about the file; 3 are required", len(parts))
		return
	}
	h.Location = Location{Machine: parts[0], User: parts[1], Path: parts[2]}
	if h.Word == (Word{}) && h.Location == (Location{}) {
		c.Fail("nothing about the file, in %d bytes", wordSize+len(texts))
	}
}

// check checks everything that does not depend on the peer's HELLO.
func (h Hello) check() error {
	switch {
	case h.Flags&^knownFlags != 0:
		return wire.Malformed(wire.TypeHello, "unknown flags %#x", uint32(h.Flags&^knownFlags))
	case bits.OnesCount32(uint32(h.Flags&(FlagFile|FlagTree|FlagStream))) > 1:
		return wire.Malformed(wire.TypeHello, "flags %#x: a side has a file, a tree or a stream", uint32(h.Flags))
	case h.Flags.Has(FlagOverwrite | FlagIgnoreExisting):
		return wire.Malformed(wire.TypeHello, "flags %#x: a side replaces or leaves what exists", uint32(h.Flags))
	case h.Flags.Has(FlagUnfinished) && !h.Flags.Has(FlagTree):
		return wire.Malformed(wire.TypeHello, "flags %#x: only a tree is unfinished", uint32(h.Flags))
	case h.Flags.Has(FlagPrivileged) && !h.Flags.Has(FlagXAttr):
		return wire.Malformed(wire.TypeHello, "flags %#x: privileged without xattr", uint32(h.Flags))
	case h.Version == 0:
		return wire.Malformed(wire.TypeHello, "version 0")
	case !h.Digest.Known():
		return wire.Malformed(wire.TypeHello, "unknown %s", h.Digest)
	case !h.Durability.Known():
		return wire.Malformed(wire.TypeHello, "unknown %s", h.Durability)
	case h.Chunk < wire.MinChunk || h.Chunk > wire.MaxChunk || bits.OnesCount32(h.Chunk) != 1:
		return wire.Malformed(wire.TypeHello, "chunks of %d bytes; a power of two from %d to %d is required",
			h.Chunk, wire.MinChunk, wire.MaxChunk)
	case h.Depth < 1 || h.Depth > wire.MaxDepth:
		return wire.Malformed(wire.TypeHello, "%d slots; 1 to %d are required", h.Depth, wire.MaxDepth)
	}
	return wire.FirstError(wire.CheckPrintable(wire.TypeHello, "software", h.Software, wire.MaxSoftwareName),
		h.Location.check())
}

// Flags are properties and options of a side, in its HELLO.
type Flags uint32

// The flags. FlagFile, FlagTree and FlagStream exclude each other.
const (
	FlagFile           Flags = 1 << 0  // it has a regular file
	FlagTree           Flags = 1 << 1  // it has a directory
	FlagStream         Flags = 1 << 2  // it has a stream: sends if the peer has nothing, otherwise receives
	FlagOverwrite      Flags = 1 << 3  // it receives, even if it has a file or a directory
	FlagNoSparse       Flags = 1 << 4  // holes are filled with zeros
	FlagReadback       Flags = 1 << 5  // the receiver reads back what it wrote
	FlagOwner          Flags = 1 << 6  // sender: uid and gid are valid; receiver: it will apply them
	FlagXAttr          Flags = 1 << 7  // sender: it has extended attributes to send; receiver: it will apply them
	FlagAllowChanging  Flags = 1 << 8  // sender: its files may change during the transfer
	FlagLinks          Flags = 1 << 9  // hard links within the transfer are preserved
	FlagChecksum       Flags = 1 << 10 // files are compared by content, not by size and mtime
	FlagDryRun         Flags = 1 << 11 // nothing is written
	FlagRefuseSame     Flags = 1 << 12 // both sides having the file is an error, even if it is the same
	FlagFailFast       Flags = 1 << 13 // the first entry that fails ends the transfer
	FlagNoDMA          Flags = 1 << 14 // it cannot or will not do its part of PathDMA
	FlagFast           Flags = 1 << 15 // it can do its part of PathFast
	FlagReceives       Flags = 1 << 16 // it receives, as both sides know: what it has is only compared or replaced
	FlagTLS            Flags = 1 << 17 // it can and will do its part of PathTLS
	FlagMessages       Flags = 1 << 18 // it can and will do its part of PathMessages
	FlagRMA            Flags = 1 << 19 // it can and will do its part of PathRMA
	FlagTCP            Flags = 1 << 20 // it can and will do its part of PathTCP
	FlagIgnoreExisting Flags = 1 << 21 // it receives, and leaves what exists; not with FlagOverwrite
	FlagUnfinished     Flags = 1 << 22 // its directory was left by an interrupted transfer; with FlagTree
	FlagPrivileged     Flags = 1 << 23 // with FlagXAttr: not only attributes of the namespace user

	knownFlags = FlagPrivileged<<1 - 1
)

// Has reports whether all of the wanted flags are set.
func (f Flags) Has(wanted Flags) bool { return f&wanted == wanted }
