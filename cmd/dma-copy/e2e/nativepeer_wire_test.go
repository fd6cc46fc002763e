package e2e

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// The messages of version 2 of the native protocol, laid out by hand from its page. They must not use
// internal/negotiate, whose checks are tested with them.

const (
	helloType     uint32 = 0x10
	windowType    uint32 = 0x11
	heartbeatType uint32 = 0x12
	abortType     uint32 = 0x13
	cancelledType uint32 = 0x14
	transferType  uint32 = 0x20
	entriesType   uint32 = 0x21
	answersType   uint32 = 0x22
	metadataType  uint32 = 0x23
	chunksType    uint32 = 0x24
	packType      uint32 = 0x25
	acksType      uint32 = 0x26
	endType       uint32 = 0x27
	sumType       uint32 = 0x28
	failureType   uint32 = 0x29
	resultsType   uint32 = 0x2a
	finishType    uint32 = 0x2b
	finishedType  uint32 = 0x2c
)

// Flags of a HELLO.
const (
	helloFile     uint32 = 1
	helloTree     uint32 = 2
	helloLinks    uint32 = 512
	helloChecksum uint32 = 1024
)

// The kinds of entries, and their flags.
const (
	kindFile byte = iota + 1
	kindDirectory
	kindSymlink
	kindHardLink

	hasMetadata byte = 2
	chunked     byte = 4
)

// The answers to an entry.
const (
	answerNeed byte = iota + 1
	answerHave
	answerSum
)

const nativeVersion = 2

func u16(n int) []byte    { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
func u32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// message joins the parts of a message after its type.
func message(messageType uint32, parts ...[]byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, messageType), slices.Concat(parts...)...)
}

// offerImage returns a DIRECTION with a mark and a range of versions in its padding.
func offerImage(mark, low, high byte) []byte {
	return slices.Concat([]byte{1, 0, 0, 0}, []byte{0, mark, low, high}, bigEndian(0))
}

// helloImage returns a HELLO with crc32c and no durability.
func helloImage(flags, chunk, depth uint32) []byte {
	const software = "hostile"
	return message(helloType, u32(flags), []byte{nativeVersion, 1, 0, 0}, u32(chunk), u32(depth), make([]byte, 16),
		u16(len(software)), u16(0), []byte(software))
}

// helloLimits returns chunk and depth of a HELLO.
func helloLimits(hello []byte) (chunk, depth uint32) {
	return binary.BigEndian.Uint32(hello[12:]), binary.BigEndian.Uint32(hello[16:])
}

func windowImage(address, length uint64, descriptor []byte) []byte {
	return message(windowType, u32(0), bigEndian(address), bigEndian(length), u32(uint32(len(descriptor))), u32(0),
		descriptor)
}

// wireEntry is an entry of ENTRIES. Its mode is that of a readable file or directory.
type wireEntry struct {
	kind, flags byte
	depth       int
	mode        uint32
	nanoseconds uint32
	size        uint64
	identity    byte
	name, link  string
}

func (e wireEntry) image() []byte {
	mode := e.mode
	if mode == 0 {
		mode = 0o755
	}
	identity := slices.Repeat([]byte{e.identity}, 16)
	return slices.Concat([]byte{e.kind, e.flags}, u16(e.depth), u32(mode), bigEndian(1_700_000_000), u32(e.nanoseconds),
		u32(0), u32(0), u32(0), bigEndian(e.size), identity, u16(len(e.name)), u16(len(e.link)), []byte(e.name),
		[]byte(e.link))
}

var wireRoot = wireEntry{kind: kindDirectory}

func wireFile(depth int, name string, size uint64) wireEntry {
	return wireEntry{kind: kindFile, depth: depth, mode: 0o644, name: name, size: size}
}

func wireDirectory(depth int, name string) wireEntry {
	return wireEntry{kind: kindDirectory, depth: depth, name: name}
}

// listImage returns a message that is a number and as many items.
func listImage(messageType uint32, items ...[]byte) []byte {
	return message(messageType, u32(uint32(len(items))), slices.Concat(items...))
}

func entriesImage(entries ...wireEntry) []byte {
	images := make([][]byte, len(entries))
	for i, e := range entries {
		images[i] = e.image()
	}
	return listImage(entriesType, images...)
}

func answerItem(entry uint32, answer byte, offset uint64) []byte {
	return slices.Concat(u32(entry), []byte{answer, 0, 0, 0}, bigEndian(offset))
}

// verdictItem is an item of ACKS or RESULTS.
func verdictItem(number uint32, verdict byte) []byte { return append(u32(number), verdict, 0, 0, 0) }

// dataRecord is a record of CHUNKS.
func dataRecord(slot int, entry uint32, offset uint64, content []byte) []byte {
	return slices.Concat([]byte{1, 0}, u16(slot), u32(entry), bigEndian(offset), bigEndian(uint64(len(content))),
		bigEndian(uint64(castagnoli(content))))
}

func packImage(slot int, files ...[]byte) []byte {
	return message(packType, u16(slot), []byte{0, 4}, u32(uint32(len(files))), u32(0), slices.Concat(files...))
}

// packedItem is a file of a PACK, with crc32c.
func packedItem(entry, position uint32, content []byte) []byte {
	sum := castagnoli(content)
	return slices.Concat(u32(entry), u32(position), u32(uint32(len(content))), u32(0), bigEndian(uint64(sum)), u32(sum))
}

func castagnoli(content []byte) uint32 {
	return crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
}

func endImage(entry uint32, size uint64, sum uint32) []byte {
	return message(endType, u32(entry), bigEndian(size), u32(sum))
}

func failureImage(entry uint32, code byte) []byte {
	return message(failureType, u32(entry), []byte{code, 0}, u16(0))
}

func finishImage(total uint32) []byte { return message(finishType, u32(total), u32(0), u32(0)) }

func finishedImage(durability byte, committed, unchanged, failed uint32) []byte {
	return message(finishedType, []byte{durability, 0, 0, 0}, u32(committed), u32(unchanged), u32(failed), u32(0))
}

var (
	transferImage  = message(transferType, u32(0))
	cancelledImage = message(cancelledType, u32(0))
)
