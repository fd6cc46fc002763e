package negotiate

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

var nativeVectorFiles = []string{
	"hello.json", "abort.json", "window.json", "records.json", "heartbeat.json", "metadata.json", "ending.json",
}

type nativeVector struct {
	Name      string         `json:"name"`
	Meaning   string         `json:"meaning"`
	Hex       octets         `json:"hex"`
	Malformed bool           `json:"malformed"`
	Message   *nativeMessage `json:"message"`
	EncodesTo octets         `json:"encodes_to"` // where it differs from Hex
}

// nativeMessage has the fields of all messages; those that a message does not have are absent.
type nativeMessage struct {
	Type string `json:"type"`
	vectorHello
	Code       AbortCode      `json:"code"`
	Text       octets         `json:"text"`
	Address    number         `json:"address"`
	Length     number         `json:"length"`
	Descriptor octets         `json:"descriptor"`
	Resume     number         `json:"resume"`
	Records    []vectorRecord `json:"records"`
	Acks       []vectorAck    `json:"acks"`
	Phase      uint32         `json:"phase"`
	Work       number         `json:"work"`
	Value      octets         `json:"value"` // of the digest
	Total      uint32         `json:"total"`
	Offset     uint32         `json:"offset"`
	Part       octets         `json:"part"`
}

type vectorHello struct {
	Flags      []string `json:"flags"`
	Version    uint8    `json:"version"`
	Digest     string   `json:"digest"`
	Durability string   `json:"durability"`
	Chunk      uint32   `json:"chunk"`
	Depth      uint32   `json:"depth"`
	Size       number   `json:"size"`
	MTimeSec   signed   `json:"mtime_sec"`
	MTimeNsec  uint32   `json:"mtime_nsec"`
	Mode       number   `json:"mode"`
	UID        uint32   `json:"uid"`
	GID        uint32   `json:"gid"`
	Identity   octets   `json:"identity"`
	Session    octets   `json:"session"`
	Software   string   `json:"software"`
}

type vectorRecord struct {
	Kind    string `json:"kind"`
	Attempt uint8  `json:"attempt"`
	Slot    uint32 `json:"slot"`
	Offset  number `json:"offset"`
	Length  number `json:"length"`
	Check   number `json:"check"`
}

type vectorAck struct {
	Slot uint32 `json:"slot"`
	Bad  bool   `json:"bad"`
}

// signed is an int64 in a JSON string.
type signed int64

func (n *signed) UnmarshalText(text []byte) error {
	value, err := strconv.ParseInt(string(text), 0, 64)
	*n = signed(value)
	return err
}

var flagNames = []string{
	"has-file", "stream", "overwrite", "no-sparse", "readback", "owner", "xattr", "allow-changing",
}

func (v vectorHello) hello(t testing.TB) Hello {
	t.Helper()
	h := Hello{
		Version: v.Version, Digest: named[Digest](t, v.Digest, 4), Durability: named[Durability](t, v.Durability, 2),
		Chunk: v.Chunk, Depth: v.Depth, Size: uint64(v.Size), MTime: Timestamp{int64(v.MTimeSec), v.MTimeNsec},
		Mode: uint32(v.Mode), UID: v.UID, GID: v.GID, Software: v.Software,
	}
	copy(h.Identity[:], v.Identity)
	copy(h.Session[:], v.Session)
	for _, name := range v.Flags {
		bit := slices.Index(flagNames, name)
		if bit < 0 {
			t.Fatalf("unknown flag %q", name)
		}
		h.Flags |= 1 << bit
	}
	return h
}

// named returns the value of a small type with this name.
func named[T interface {
	~uint8
	String() string
}](t testing.TB, name string, largest T) T {
	t.Helper()
	for value := T(0); value <= largest; value++ {
		if value.String() == name {
			return value
		}
	}
	t.Fatalf("nothing is called %q", name)
	return 0
}

type (
	readyMessage  uint64
	endMessage    Total
	preparedTotal Total
	commitMessage struct{}
)

// value returns what the decoder should return for the message.
func (m nativeMessage) value(t testing.TB) any {
	t.Helper()
	switch m.Type {
	case "HELLO":
		return m.hello(t)
	case "ABORT":
		return PeerAborted{m.Code, string(m.Text)}
	case "WINDOW":
		return Window{uint64(m.Address), uint64(m.Length), m.Descriptor}
	case "READY":
		return readyMessage(m.Resume)
	case "CHUNKS":
		return m.records(t)
	case "ACKS":
		return m.acks()
	case "HEARTBEAT":
		return Beat{m.Phase, uint64(m.Work)}
	case "METADATA":
		return Metadata{m.Total, m.Offset, m.Part}
	case "END":
		return endMessage(m.total(t))
	case "PREPARED":
		return preparedTotal(m.total(t))
	case "COMMIT":
		return commitMessage{}
	case "DONE":
		return named[Durability](t, m.Durability, 2)
	}
	t.Fatalf("vector of unknown type %q", m.Type)
	return nil
}

func (m nativeMessage) total(t testing.TB) Total {
	return Total{named[Digest](t, m.Digest, 4), uint64(m.Size), append([]byte{}, m.Value...)}
}

func (m nativeMessage) records(t testing.TB) []Record {
	var records []Record
	for _, r := range m.Records {
		records = append(records, Record{
			named[Kind](t, r.Kind, 3), r.Attempt, r.Slot, uint64(r.Offset), uint64(r.Length), uint64(r.Check),
		})
	}
	return records
}

func (m nativeMessage) acks() []Ack {
	var acks []Ack
	for _, a := range m.Acks {
		acks = append(acks, Ack(a))
	}
	return acks
}

// decodeNative decodes any message of the native protocol.
func decodeNative(msg []byte) (any, error) {
	switch typeOf(msg) {
	case TypeHello:
		return decoded(DecodeHello(msg))
	case TypeAbort:
		reason, err := DecodeAbort(msg)
		if err != nil {
			return nil, err
		}
		return *reason, nil
	case TypeWindow:
		return decoded(DecodeWindow(msg))
	case TypeReady:
		resume, err := DecodeReady(msg)
		return decoded(readyMessage(resume), err)
	case TypeChunks:
		return decoded(DecodeChunks(nil, msg))
	case TypeAcks:
		return decoded(DecodeAcks(nil, msg))
	case TypeHeartbeat:
		return decoded(DecodeBeat(msg))
	case TypeMetadata:
		return decoded(DecodeMetadata(msg))
	case TypeEnd:
		total, err := DecodeEnd(msg)
		return decoded(endMessage(total), err)
	case TypePrepared:
		total, err := DecodePrepared(msg)
		return decoded(preparedTotal(total), err)
	case TypeCommit:
		return decoded(commitMessage{}, DecodeCommit(msg))
	case TypeDone:
		return decoded(DecodeDone(msg))
	}
	return nil, malformed(typeOf(msg), "no message of the native protocol")
}

func decoded[T any](value T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return value, nil
}

// encodeNative encodes what decodeNative returns.
func encodeNative(value any) []byte {
	switch v := value.(type) {
	case Hello:
		return AppendHello(nil, v)
	case PeerAborted:
		return AppendAbort(nil, v.Code, v.Text)
	case Window:
		return AppendWindow(nil, v)
	case readyMessage:
		return AppendReady(nil, uint64(v))
	case []Record:
		return AppendChunks(nil, v)
	case []Ack:
		return AppendAcks(nil, v)
	case Beat:
		return AppendBeat(nil, v)
	case Metadata:
		return AppendMetadata(nil, v)
	case endMessage:
		return AppendEnd(nil, Total(v))
	case preparedTotal:
		return AppendPrepared(nil, Total(v))
	case commitMessage:
		return AppendCommit(nil)
	case Durability:
		return AppendDone(nil, v)
	}
	return nil
}

func nativeVectors(t testing.TB) []nativeVector {
	t.Helper()
	var all []nativeVector
	seen := map[string]bool{}
	for _, file := range nativeVectorFiles {
		var vectors []nativeVector
		readVectors(t, file, &vectors)
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

func TestNativeVectors(t *testing.T) {
	types := map[Type]bool{}
	for _, v := range nativeVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			got, err := decodeNative(v.Hex)
			if v.Malformed {
				wantMalformedNative(t, got, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			types[typeOf(v.Hex)] = true
			if want := v.Message.value(t); !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			want := v.Hex
			if v.EncodesTo != nil {
				want = v.EncodesTo
			}
			wantBytes(t, encodeNative(got), want)
		})
	}
	for message := TypeHello; message <= TypeMetadata; message++ {
		if !types[message] {
			t.Errorf("no vector of a well-formed %s", message)
		}
	}
}

func wantMalformedNative(t *testing.T, got any, err error) {
	t.Helper()
	if got != nil {
		t.Fatalf("got %+v", got)
	}
	wantMalformed(t, nil, err)
}

// Every missing or additional byte makes a message malformed.
func TestNativeVectorsOfAnotherLength(t *testing.T) {
	for _, v := range nativeVectors(t) {
		if v.Malformed {
			continue
		}
		for length := range len(v.Hex) {
			got, err := decodeNative(v.Hex[:length])
			wantMalformedNative(t, got, err)
		}
		got, err := decodeNative(append(bytes.Clone(v.Hex), 0))
		wantMalformedNative(t, got, err)
	}
}

// Changing any bit makes another message or a malformed one, so every bit is checked. The exception is the code of an
// ABORT: most values mean the same.
func TestNativeVectorsWithABitChanged(t *testing.T) {
	for _, v := range nativeVectors(t) {
		if v.Malformed || v.EncodesTo != nil {
			continue
		}
		original, err := decodeNative(v.Hex)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * len(v.Hex) {
			changed := bytes.Clone(v.Hex)
			changed[bit/8] ^= 1 << (bit % 8)
			stillFailure := typeOf(v.Hex) == TypeAbort && v.Hex[4] == 1 && bit/8 == 4
			if got, err := decodeNative(changed); err == nil && !stillFailure && reflect.DeepEqual(got, original) {
				t.Errorf("%s: bit %d makes no difference", v.Name, bit)
			}
		}
	}
}
