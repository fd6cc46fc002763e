package native

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

var vectorFiles = []string{
	"hello.json", "window.json", "heartbeat.json", "abort.json", "transfer.json", "entries.json", "answers.json",
	"metadata.json", "records.json", "pack.json", "ending.json", "results.json",
}

type nativeVector struct {
	Name      string          `json:"name"`
	Meaning   string          `json:"meaning"`
	Hex       wiretest.Octets `json:"hex"`
	Digest    string          `json:"digest"` // by the plan; crc32c if absent
	Malformed bool            `json:"malformed"`
	Message   *nativeMessage  `json:"message"`
	EncodesTo wiretest.Octets `json:"encodes_to"` // where it differs from Hex
}

func (v nativeVector) digest(t testing.TB) wire.Digest {
	if v.Digest == "" {
		return wire.DigestCRC32C
	}
	return wiretest.Named[wire.Digest](t, v.Digest, 4)
}

// nativeMessage has the fields of all messages; those that a message does not have are absent.
type nativeMessage struct {
	Type string `json:"type"`
	vectorHello
	Code       wire.AbortCode  `json:"code"`
	Text       wiretest.Octets `json:"text"`
	Address    wiretest.Number `json:"address"`
	Length     wiretest.Number `json:"length"`
	Descriptor wiretest.Octets `json:"descriptor"`
	Phase      uint32          `json:"phase"`
	Work       wiretest.Number `json:"work"`
	Entries    []vectorEntry   `json:"entries"`
	Answers    []vectorAnswer  `json:"answers"`
	Entry      uint32          `json:"entry"`
	Offset     uint32          `json:"offset"`
	Part       wiretest.Octets `json:"part"`
	Records    []vectorRecord  `json:"records"`
	Slot       uint16          `json:"slot"`
	Attempt    uint8           `json:"attempt"`
	Files      []vectorPacked  `json:"files"`
	Acks       []vectorAck     `json:"acks"`
	Size       wiretest.Number `json:"size"`
	Value      wiretest.Octets `json:"value"` // of the digest
	Results    []uint32        `json:"results"`
	Total      uint32          `json:"total"`
	Missing    uint32          `json:"missing"`
	Committed  uint32          `json:"committed"`
	Unchanged  uint32          `json:"unchanged"`
	Failed     uint32          `json:"failed"`
	Transport  string          `json:"transport"`
}

type vectorHello struct {
	Flags      []string        `json:"flags"`
	Version    uint8           `json:"version"`
	Digest     string          `json:"digest"`
	Durability string          `json:"durability"`
	Chunk      uint32          `json:"chunk"`
	Depth      uint32          `json:"depth"`
	Session    wiretest.Octets `json:"session"`
	Software   string          `json:"software"`
	Word       wiretest.Octets `json:"word"`
	Machine    string          `json:"machine"`
	User       string          `json:"user"`
	Path       string          `json:"path"`
}

type vectorEntry struct {
	Kind      string          `json:"kind"`
	Flags     []string        `json:"flags"`
	Depth     int             `json:"depth"`
	Mode      wiretest.Number `json:"mode"`
	MTimeSec  wiretest.Signed `json:"mtime_sec"`
	MTimeNsec uint32          `json:"mtime_nsec"`
	UID       uint32          `json:"uid"`
	GID       uint32          `json:"gid"`
	Size      wiretest.Number `json:"size"`
	Identity  wiretest.Octets `json:"identity"`
	Xattrs    uint32          `json:"xattrs"`
	Name      wiretest.Octets `json:"name"`
	Link      wiretest.Octets `json:"link"`
}

type vectorAnswer struct {
	Entry  uint32          `json:"entry"`
	Answer string          `json:"answer"`
	Change string          `json:"change"`
	Offset wiretest.Number `json:"offset"`

	Discarded wire.Discarded `json:"discarded"`
}

type vectorRecord struct {
	Kind    string          `json:"kind"`
	Attempt uint8           `json:"attempt"`
	Slot    uint16          `json:"slot"`
	Entry   uint32          `json:"entry"`
	Offset  wiretest.Number `json:"offset"`
	Length  wiretest.Number `json:"length"`
	Check   wiretest.Number `json:"check"`
}

type vectorPacked struct {
	Entry    uint32          `json:"entry"`
	Position uint32          `json:"position"`
	Length   uint32          `json:"length"`
	Check    wiretest.Number `json:"check"`
	Value    wiretest.Octets `json:"value"`
}

type vectorAck struct {
	Slot uint32 `json:"slot"`
	Bad  bool   `json:"bad"`
}

var (
	flagNames = []string{
		"file", "tree", "stream", "overwrite", "no-sparse", "readback", "owner", "xattr", "allow-changing", "links",
		"checksum", "dry-run", "refuse-same", "fail-fast", "no-dma", "fast", "receives", "tls", "messages", "rma",
		"tcp", "ignore-existing", "unfinished", "privileged",
	}
	entryFlagNames = []string{"size-unknown", "has-metadata", "chunked"}
)

func (v vectorHello) hello(t testing.TB) Hello {
	t.Helper()
	h := Hello{
		Flags: Flags(wiretest.FlagBits(t, flagNames, v.Flags)), Version: v.Version,
		Digest:     wiretest.Named[wire.Digest](t, v.Digest, 4),
		Durability: wiretest.Named[wire.Durability](t, v.Durability, 2), Chunk: v.Chunk, Depth: v.Depth,
		Software: v.Software,
	}
	copy(h.Session[:], v.Session)
	copy(h.Word[:], v.Word)
	h.Location = Location{Machine: v.Machine, User: v.User, Path: v.Path}
	return h
}

func (v vectorEntry) entry(t testing.TB) wire.Entry {
	t.Helper()
	return wire.Entry{
		Kind: wiretest.Named[wire.EntryKind](t, v.Kind, 4), Flags: wire.EntryFlags(wiretest.FlagBits(t, entryFlagNames,
			v.Flags)), Depth: v.Depth,
		Mode: uint32(v.Mode), MTime: wire.Timestamp{Sec: int64(v.MTimeSec), Nsec: v.MTimeNsec}, UID: v.UID, GID: v.GID,
		Size: uint64(v.Size), Identity: [16]byte(v.Identity), Name: wiretest.Present(v.Name),
		Link:   wiretest.Present(v.Link),
		Xattrs: v.Xattrs,
	}
}

// What decodeNative returns where it is not one value of the package.
type (
	cancelledMessage struct{}
	transferMessage  struct{}
	metadataMessage  struct {
		Entry uint32
		Metadata
	}
	endMessage struct {
		Entry  uint32
		Size   uint64
		Digest []byte
	}
	sumMessage struct {
		Entry  uint32
		Digest []byte
	}
	resultsMessage []uint32
	finishMessage  struct {
		Total, Missing uint32
		Transport      string
	}
	finishedMessage struct {
		Durability wire.Durability
		Counts     Counts
		Transport  string
	}
)

// value returns what the decoder should return for the message.
func (m nativeMessage) value(t testing.TB) any {
	t.Helper()
	switch m.Type {
	case "HELLO":
		return m.hello(t)
	case "WINDOW":
		return Window{uint64(m.Address), uint64(m.Length), m.Descriptor}
	case "HEARTBEAT":
		return Beat{m.Phase, uint64(m.Work)}
	case "ABORT":
		return PeerAborted{m.Code, string(m.Text)}
	case "CANCELLED":
		return cancelledMessage{}
	case "TRANSFER":
		return transferMessage{}
	case "ENTRIES", "ANSWERS", "CHUNKS", "PACK", "ACKS":
		return m.list(t)
	case "METADATA":
		return metadataMessage{m.Entry, Metadata{m.Total, m.Offset, m.Part}}
	case "END":
		return endMessage{m.Entry, uint64(m.Size), wiretest.Present(m.Value)}
	case "SUM":
		return sumMessage{m.Entry, wiretest.Present(m.Value)}
	case "FAILURE":
		return Failure{m.Entry, m.Code, string(m.Text)}
	case "RESULTS":
		return resultsMessage(m.Results)
	case "FINISH":
		return finishMessage{m.Total, m.Missing, m.Transport}
	case "FINISHED":
		counts := Counts{m.Committed, m.Unchanged, m.Failed}
		return finishedMessage{wiretest.Named[wire.Durability](t, m.Durability, 2), counts, m.Transport}
	}
	t.Fatalf("vector of unknown type %q", m.Type)
	return nil
}

func (m nativeMessage) list(t testing.TB) any {
	var (
		entries []wire.Entry
		answers []Answer
		records []Record
		pack    = Pack{Slot: m.Slot, Attempt: m.Attempt}
		acks    []Ack
	)
	for _, e := range m.Entries {
		entries = append(entries, e.entry(t))
	}
	for _, a := range m.Answers {
		answers = append(answers, Answer{
			a.Entry, wiretest.Named[AnswerKind](t, a.Answer, AnswerExists), wiretest.Named[Change](t, a.Change,
				ChangeXattr),
			uint64(a.Offset), a.Discarded,
		})
	}
	for _, r := range m.Records {
		kind := wiretest.Named[Kind](t, r.Kind, 3)
		records = append(records,
			Record{kind, r.Attempt, r.Slot, r.Entry, uint64(r.Offset), uint64(r.Length), uint64(r.Check)})
	}
	for _, f := range m.Files {
		packed := PackedFile{Entry: f.Entry, Position: f.Position, Length: f.Length, Check: uint64(f.Check)}
		copy(packed.Digest[:], f.Value)
		pack.Files = append(pack.Files, packed)
	}
	for _, a := range m.Acks {
		acks = append(acks, Ack(a))
	}
	return map[string]any{"ENTRIES": entries, "ANSWERS": answers, "CHUNKS": records, "PACK": pack, "ACKS": acks}[m.Type]
}

// decodeNative decodes any message of the native protocol, with digests by d.
func decodeNative(msg []byte, d wire.Digest) (any, error) {
	switch wire.TypeOf(msg) {
	case wire.TypeHello:
		return wiretest.Decoded(DecodeHello(msg))
	case wire.TypeWindow:
		return wiretest.Decoded(DecodeWindow(msg))
	case wire.TypeHeartbeat:
		return wiretest.Decoded(DecodeBeat(msg))
	case wire.TypeAbort:
		reason, err := DecodeAbort(msg)
		if err != nil {
			return nil, err
		}
		return *reason, nil
	case wire.TypeCancelled:
		return wiretest.Decoded(cancelledMessage{}, wire.DecodeEmpty(msg, wire.TypeCancelled))
	case wire.TypeTransfer:
		return wiretest.Decoded(transferMessage{}, wire.DecodeEmpty(msg, wire.TypeTransfer))
	case wire.TypeEntries:
		return wiretest.Decoded(wire.DecodeList(nil, msg, wire.TypeEntries, entryFields))
	case wire.TypeAnswers:
		return wiretest.Decoded(DecodeAnswers(nil, msg))
	case wire.TypeMetadata:
		entry, m, err := DecodeMetadata(msg)
		return wiretest.Decoded(metadataMessage{entry, m}, err)
	case wire.TypeChunks:
		return wiretest.Decoded(DecodeChunks(nil, msg))
	case wire.TypePack:
		return wiretest.Decoded(DecodePack(nil, msg, d))
	case wire.TypeAcks:
		return wiretest.Decoded(DecodeAcks(nil, msg))
	}
	return decodeOutcome(msg, d)
}

// decodeOutcome decodes the messages with which entries and transfers end.
func decodeOutcome(msg []byte, d wire.Digest) (any, error) {
	switch wire.TypeOf(msg) {
	case wire.TypeEnd:
		entry, size, digest, err := DecodeEnd(msg, d)
		return wiretest.Decoded(endMessage{entry, size, digest}, err)
	case wire.TypeSum:
		entry, digest, err := DecodeSum(msg, Plan{Digest: d}.SumDigest())
		return wiretest.Decoded(sumMessage{entry, digest}, err)
	case wire.TypeFailure:
		return wiretest.Decoded(DecodeFailure(msg))
	case wire.TypeResults:
		results, err := DecodeResults(nil, msg)
		return wiretest.Decoded(resultsMessage(results), err)
	case wire.TypeFinish:
		total, missing, transport, err := DecodeFinish(msg)
		return wiretest.Decoded(finishMessage{total, missing, transport}, err)
	case wire.TypeFinished:
		durability, counts, transport, err := DecodeFinished(msg)
		return wiretest.Decoded(finishedMessage{durability, counts, transport}, err)
	}
	return nil, wire.Malformed(wire.TypeOf(msg), "no message of this protocol")
}

func encodeEntries(entries []wire.Entry) []byte {
	return wire.EncodeList(nil, wire.TypeEntries, entries, entryFields)
}

func encodeWindow(w Window) []byte { return wire.Encode(nil, wire.TypeWindow, &w, (*Window).fields) }

// encodeNative encodes what decodeNative returns.
func encodeNative(value any, d wire.Digest) []byte {
	switch v := value.(type) {
	case Hello:
		return AppendHello(nil, v)
	case Window:
		return encodeWindow(v)
	case Beat:
		return AppendBeat(nil, v)
	case PeerAborted:
		return AppendAbort(nil, v.Code, v.Text)
	case cancelledMessage:
		return wire.AppendEmpty(nil, wire.TypeCancelled)
	case transferMessage:
		return wire.AppendEmpty(nil, wire.TypeTransfer)
	case []wire.Entry:
		return encodeEntries(v)
	case []Answer:
		return AppendAnswers(nil, v)
	case metadataMessage:
		return AppendMetadata(nil, v.Entry, v.Metadata)
	case []Record:
		return AppendChunks(nil, v)
	case Pack:
		return AppendPack(nil, v, d)
	case []Ack:
		return AppendAcks(nil, v)
	case endMessage:
		return AppendEnd(nil, v.Entry, v.Size, v.Digest)
	case sumMessage:
		return AppendSum(nil, v.Entry, v.Digest)
	case Failure:
		return AppendFailure(nil, v)
	case resultsMessage:
		return AppendResults(nil, v)
	case finishMessage:
		return AppendFinish(nil, v.Total, v.Missing, v.Transport)
	case finishedMessage:
		return AppendFinished(nil, v.Durability, v.Counts, v.Transport)
	}
	return nil
}

func nativeVectors(t testing.TB) []nativeVector {
	t.Helper()
	var all []nativeVector
	seen := map[string]bool{}
	for _, file := range vectorFiles {
		var vectors []nativeVector
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

// nativeCases returns the vectors with the functions for native messages.
func nativeCases(t testing.TB) (cases []wiretest.VectorCase) {
	t.Helper()
	for _, v := range nativeVectors(t) {
		digest := v.digest(t)
		cases = append(cases, wiretest.VectorCase{
			Name: v.Name, Hex: v.Hex, Malformed: v.Malformed, EncodesTo: v.EncodesTo,
			Message: func(t testing.TB) any { return v.Message.value(t) },
			Decode:  func(msg []byte) (any, error) { return decodeNative(msg, digest) },
			Encode:  func(message any) []byte { return encodeNative(message, digest) },
		})
	}
	return cases
}

func TestNativeVectors(t *testing.T) {
	wiretest.CheckVectors(t, nativeCases(t), func(message wire.Type) bool {
		return message >= wire.TypeHello && message < wire.TypeGreeting
	})
}

// Every missing or additional byte makes a message malformed.
func TestNativeVectorsOfAnotherLength(t *testing.T) {
	for _, v := range nativeCases(t) {
		v.CheckLengths(t)
	}
}

// Changing any bit makes another message or a malformed one, so every bit is checked. The exception is the code of an
// ABORT or FAILURE: most values mean the same.
func TestNativeVectorsWithABitChanged(t *testing.T) {
	for _, v := range nativeCases(t) {
		v.CheckBits(t, wiretest.IsFailureCode)
	}
}

func TestEveryNativeVectorFileIsReadAndCited(t *testing.T) {
	wiretest.CheckVectorFiles(t, append(vectorFiles, "native-conversations.json")...)
}
