package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// The reference's messages, as its compiler lays out its structures on a little-endian machine. This is written by hand
// and must not use internal/negotiate: it is what the codec there is tested against.

const referenceServer = "dma copy server"

const (
	directionType uint32 = 1
	exportType    uint32 = 2
	statusType    uint32 = 3
)

// stackGarbage is what happens to lie in the padding of EXPORT, which the reference does not initialise.
var stackGarbage = []byte{0xfe, 0x7f, 0x00, 0x5a}

// directionImage has an initialiser in the reference, so its padding is zero.
func directionImage(fileInHost bool, size int64) []byte {
	return slices.Concat([]byte{1, 0, 0, 0}, imageBool(fileInHost), []byte{0, 0, 0}, bigEndian(uint64(size)))
}

func exportImage(address uint64, descriptor []byte) []byte {
	return slices.Concat([]byte{2, 0, 0, 0}, stackGarbage, bigEndian(address), bigEndian(uint64(len(descriptor))), descriptor)
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

// acceptable is all that the reference checks, with its slip: the descriptor is measured against the whole message.
func acceptable(message []byte) bool {
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

// imageExport reads an EXPORT; what the declared length asks for beyond the message is zero, where the reference reads
// whatever follows in memory.
func imageExport(message []byte) (address uint64, descriptor []byte) {
	declared := binary.BigEndian.Uint64(message[16:24])
	padded := append(bytes.Clone(message[24:]), make([]byte, 24)...)
	return binary.BigEndian.Uint64(message[8:16]), padded[:declared]
}

// TestImages holds the model to the bytes that docs/PROTOCOL.md gives for a copy of 4096 bytes, and those that it gives
// as the offsets of the fields.
func TestImages(t *testing.T) {
	descriptor := []byte{0xd0, 0xc4, 0xd0, 0xc4, 0xd0, 0xc4, 0xd0, 0xc4}
	cases := []struct {
		name  string
		image []byte
		want  string
	}{
		{"host's direction", directionImage(true, 4096), "01000000 01 000000 0000000000001000"},
		{"DPU's direction", directionImage(true, 0), "01000000 01 000000 0000000000000000"},
		{"export", exportImage(0x7f5a3c001000, descriptor), "02000000 fe7f005a 00007f5a3c001000 0000000000000008 d0c4d0c4d0c4d0c4"},
		{"success", statusImage(true), "03000000 01 000000"},
		{"failure", statusImage(false), "03000000 00 000000"},
	}
	for _, tc := range cases {
		if got := hex.EncodeToString(tc.image); got != strings.ReplaceAll(tc.want, " ", "") {
			t.Errorf("%s is %s, want %s", tc.name, got, tc.want)
		}
	}
}
