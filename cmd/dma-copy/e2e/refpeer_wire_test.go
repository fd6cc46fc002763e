package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// The messages of the reference program, as a compiler lays out its structures on a little-endian machine. They are
// written by hand and must not use internal/negotiate, whose codec is tested against them.

const referenceServer = "dma copy server"

const (
	directionType uint32 = 1
	exportType    uint32 = 2
	statusType    uint32 = 3
)

// stackGarbage fills the padding of EXPORT, which the reference program does not initialise.
var stackGarbage = []byte{0xfe, 0x7f, 0x00, 0x5a}

// directionImage returns a DIRECTION. The reference program initialises it, so its padding is zero.
func directionImage(fileInHost bool, size int64) []byte {
	return slices.Concat([]byte{1, 0, 0, 0}, imageBool(fileInHost), []byte{0, 0, 0}, bigEndian(uint64(size)))
}

func exportImage(address uint64, descriptor []byte) []byte {
	length := bigEndian(uint64(len(descriptor)))
	return slices.Concat([]byte{2, 0, 0, 0}, stackGarbage, bigEndian(address), length, descriptor)
}

func statusImage(success bool) []byte {
	return slices.Concat([]byte{3, 0, 0, 0}, imageBool(success), []byte{0, 0, 0})
}

func imageBool(b bool) []byte {
	if b {
		return []byte{1}
	}
	return []byte{0}
}

func bigEndian(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// isAcceptable checks what the reference program checks. Like it, it compares the descriptor's length with that of the
// whole message.
func isAcceptable(message []byte) bool {
	if len(message) < 4 {
		return false
	}
	switch imageType(message) {
	case directionType:
		return len(message) == 16
	case exportType:
		return len(message) > 24 && binary.BigEndian.Uint64(message[16:24]) <= uint64(len(message))
	case statusType:
		return len(message) == 8
	}
	return false
}

func imageType(message []byte) uint32     { return binary.LittleEndian.Uint32(message) }
func imageSuccess(message []byte) bool    { return message[4] != 0 }
func imageFileInHost(message []byte) bool { return message[4] != 0 }
func imageSize(message []byte) int64      { return int64(binary.BigEndian.Uint64(message[8:16])) }

// imageExport parses an EXPORT. A declared length beyond the message is padded with zeros; the reference program reads
// whatever follows in memory.
func imageExport(message []byte) (address uint64, descriptor []byte) {
	declared := binary.BigEndian.Uint64(message[16:24])
	padded := append(bytes.Clone(message[24:]), make([]byte, 24)...)
	return binary.BigEndian.Uint64(message[8:16]), padded[:declared]
}

// TestImages compares the model's messages with the bytes that docs/internals/protocol has for a file of 4096 bytes.
func TestImages(t *testing.T) {
	descriptor := []byte{0xd0, 0xc4, 0xd0, 0xc4, 0xd0, 0xc4, 0xd0, 0xc4}
	cases := []struct {
		name  string
		image []byte
		want  string
	}{
		{"host's direction", directionImage(true, 4096), "01000000 01 000000 0000000000001000"},
		{"DPU's direction", directionImage(true, 0), "01000000 01 000000 0000000000000000"},
		{"export", exportImage(0x7f5a3c001000, descriptor),
			"02000000 fe7f005a 00007f5a3c001000 0000000000000008 d0c4d0c4d0c4d0c4"},
		{"success", statusImage(true), "03000000 01 000000"},
		{"failure", statusImage(false), "03000000 00 000000"},
	}
	for _, tc := range cases {
		if got := hex.EncodeToString(tc.image); got != strings.ReplaceAll(tc.want, " ", "") {
			t.Errorf("%s is %s, want %s", tc.name, got, tc.want)
		}
	}
}
