package reference

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

type vector struct {
	Name      string          `json:"name"`
	Meaning   string          `json:"meaning"`
	Hex       wiretest.Octets `json:"hex"`
	Malformed bool            `json:"malformed"`
	Message   *vectorMessage  `json:"message"`
	EncodesTo wiretest.Octets `json:"encodes_to"` // where it differs from Hex
}

type vectorMessage struct {
	Type       string          `json:"type"`
	FileInHost bool            `json:"file_in_host"`
	Size       wiretest.Number `json:"size"`
	Offer      wiretest.Octets `json:"offer"`
	Address    wiretest.Number `json:"address"`
	Descriptor wiretest.Octets `json:"descriptor"`
	Success    bool            `json:"success"`
}

func (m vectorMessage) decoded(t *testing.T) Message {
	t.Helper()
	switch m.Type {
	case "DIRECTION":
		direction := Direction{FileInHost: m.FileInHost, Size: uint64(m.Size)}
		copy(direction.Offer[:], m.Offer)
		return direction
	case "EXPORT":
		return Export{Address: uint64(m.Address), Descriptor: m.Descriptor}
	case "STATUS":
		return Status{Success: m.Success}
	}
	t.Fatalf("vector of unknown type %q", m.Type)
	return nil
}

var messageVectorFiles = []string{"direction.json", "export.json", "status.json", "unknown.json"}

func messageVectors(t testing.TB) []vector {
	t.Helper()
	var all []vector
	seen := map[string]bool{}
	for _, file := range messageVectorFiles {
		var vectors []vector
		wiretest.ReadVectors(t, file, &vectors)
		all = append(all, vectors...)
	}
	for _, v := range all {
		if v.Name == "" || v.Meaning == "" || seen[v.Name] || v.Malformed == (v.Message != nil) {
			t.Fatalf("vector %q needs a name of its own, a meaning, and either a message or malformed", v.Name)
		}
		seen[v.Name] = true
	}
	return all
}

func TestVectors(t *testing.T) {
	for _, v := range messageVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			got, err := Decode(v.Hex)
			if v.Malformed {
				wiretest.WantMalformed(t, got, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantMessage(t, got, v.Message.decoded(t))
			want := v.Hex
			if v.EncodesTo != nil {
				want = v.EncodesTo
			}
			wiretest.WantBytes(t, got.Encode(), want)
		})
	}
}

// For every type only the lengths of the specification can be decoded.
func TestDecodeLengths(t *testing.T) {
	for length := range 64 {
		for wireType := range byte(6) {
			msg := make([]byte, length)
			if length > 0 {
				msg[0] = wireType
			}
			if length >= ExportHeaderSize {
				msg[23] = byte(length - ExportHeaderSize)
			}
			want := wireType == 1 && length == 16 || wireType == 2 && length > 24 || wireType == 3 && length == 8
			if _, err := Decode(msg); (err == nil) != want {
				t.Errorf("type %d, %d bytes: %v", wireType, length, err)
			}
		}
	}
}

func TestDecodeRefusesEveryOtherBool(t *testing.T) {
	for _, message := range []Message{Direction{}, Status{}} {
		for value := range 256 {
			msg := message.Encode()
			msg[4] = byte(value)
			if _, err := Decode(msg); (err == nil) != (value <= 1) {
				t.Errorf("%s with %d: %v", message.Type(), value, err)
			}
		}
	}
}

// boundaries are the values at which a number from the peer could overflow or change its sign.
func boundaries(limit uint64) []uint64 {
	values := []uint64{0, 1, limit, limit + 1, math.MaxUint64}
	if limit > 0 {
		values = append(values, limit-1)
	}
	for _, bit := range []uint{31, 32, 63} {
		values = append(values, 1<<bit-1, 1<<bit, 1<<bit+1)
	}
	return values
}

func TestDecodeNumbersAtTheirBoundaries(t *testing.T) {
	descriptor := []byte{1, 2, 3}
	for _, value := range boundaries(4096) {
		for _, message := range []Message{Direction{Size: value}, Export{Address: value, Descriptor: descriptor}} {
			got, err := Decode(message.Encode())
			if err != nil {
				t.Fatalf("%s %d: %v", message.Type(), value, err)
			}
			wantMessage(t, got, message)
		}
	}
}

// A wrong length is refused before memory of that length is allocated.
func TestDecodeDeclaredLengthAtItsBoundaries(t *testing.T) {
	for _, carried := range []uint64{1, 8, 24, 4056} {
		msg := Export{Descriptor: make([]byte, carried)}.Encode()
		for _, declared := range append(boundaries(carried), carried+ExportHeaderSize, -carried, -uint64(len(msg))) {
			binary.BigEndian.PutUint64(msg[16:], declared)
			got, err := Decode(msg)
			if declared == carried {
				if err != nil || len(got.(Export).Descriptor) != int(carried) {
					t.Errorf("%d declared and carried: %v", carried, err)
				}
				continue
			}
			wiretest.WantMalformed(t, got, err)
		}
	}
}

func TestDecodedDescriptorIsACopy(t *testing.T) {
	msg := Export{Address: 1, Descriptor: []byte("descriptor")}.Encode()
	got, err := Decode(msg)
	if err != nil {
		t.Fatal(err)
	}
	clear(msg)
	wiretest.WantBytes(t, got.(Export).Descriptor, []byte("descriptor"))
}

func TestEncodedDescriptorIsACopy(t *testing.T) {
	descriptor := []byte("descriptor")
	msg := Export{Descriptor: descriptor}.Encode()
	clear(descriptor)
	wiretest.WantBytes(t, msg[ExportHeaderSize:], []byte("descriptor"))
}

func TestEncodeWritesTheOffer(t *testing.T) {
	msg := Direction{FileInHost: true, Offer: [3]byte{1, 2, 3}}.Encode()
	wiretest.WantBytes(t, msg[5:8], []byte{1, 2, 3})
}

func wantMessage(t *testing.T, got, want Message) {
	t.Helper()
	gotExport, ok := got.(Export)
	if !ok {
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		return
	}
	wantExport, ok := want.(Export)
	if !ok || gotExport.Address != wantExport.Address || !bytes.Equal(gotExport.Descriptor, wantExport.Descriptor) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestEveryVectorFileIsReadAndCited(t *testing.T) {
	wiretest.CheckVectorFiles(t, append(messageVectorFiles, "conversations.json")...)
}
