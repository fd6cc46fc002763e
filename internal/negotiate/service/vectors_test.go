package service

import (
	"cmp"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

const serviceVectorFile = "service.json"

type serviceVector struct {
	Name      string          `json:"name"`
	Meaning   string          `json:"meaning"`
	Hex       wiretest.Octets `json:"hex"`
	Malformed bool            `json:"malformed"`
	Message   *serviceMessage `json:"message"`
	EncodesTo wiretest.Octets `json:"encodes_to"` // where it differs from Hex
}

// serviceMessage has the fields of all messages; those that a message does not have are absent.
type serviceMessage struct {
	Type          string            `json:"type"`
	Min           uint8             `json:"min"`
	Max           uint8             `json:"max"`
	Version       uint8             `json:"version"`
	Authenticates bool              `json:"authenticates"`
	Software      string            `json:"software"`
	Name          wiretest.Octets   `json:"name"`
	Code          wire.AbortCode    `json:"code"`
	Text          wiretest.Octets   `json:"text"`
	Final         bool              `json:"final"`
	Items         []vectorItem      `json:"items"`
	Direction     string            `json:"direction"`
	Kind          string            `json:"kind"`
	Links         string            `json:"links"`
	Flags         []string          `json:"flags"`
	Share         string            `json:"share"`
	Path          wiretest.Octets   `json:"path"`
	Size          wiretest.Number   `json:"size"`
	Entries       []vectorListed    `json:"entries"`
	Count         uint32            `json:"count"`
	Paths         []wiretest.Octets `json:"paths"`
	Results       []vectorResult    `json:"results"`
	Number        uint32            `json:"number"`
	PingKind      string            `json:"ping_kind"`
	Payload       wiretest.Octets   `json:"payload"`
	Ahead         uint32            `json:"ahead"`
	Unfinished    bool              `json:"unfinished"`
	FilesOnly     bool              `json:"files_only"` // of a REMOVE
	Aside         bool              `json:"aside"`      // of a REMOVE
	Parents       bool              `json:"parents"`
	User          wiretest.Octets   `json:"user"`  // of a GREETING
	Local         wiretest.Octets   `json:"local"` // of a COPY
	DataPath      string            `json:"data_path"`
	Lanes         uint8             `json:"lanes"`
	Chunk         uint32            `json:"chunk"`
	Depth         uint32            `json:"depth"`
}

type vectorItem struct {
	Kind  string          `json:"kind"`
	Text  wiretest.Octets `json:"text"`
	Bound wiretest.Signed `json:"bound"`
}

type vectorListed struct {
	Kind      string          `json:"kind"`
	Depth     int             `json:"depth"`
	Mode      wiretest.Number `json:"mode"`
	MTimeSec  wiretest.Signed `json:"mtime_sec"`
	MTimeNsec uint32          `json:"mtime_nsec"`
	File      uint32          `json:"file"`
	Size      wiretest.Number `json:"size"`
	Name      wiretest.Octets `json:"name"`
	Link      wiretest.Octets `json:"link"`
	Mounted   bool            `json:"mounted"`
}

type vectorResult struct {
	Code wire.AbortCode  `json:"code"`
	Text wiretest.Octets `json:"text"`
}

var (
	copyFlagNames = []string{
		"overwrite", "backup", "no-resume", "make-path", "directory", "allow-changing", "only", "owner", "xattr",
		"links", "dry-run", "ignore-existing",
		"keep", "privileged",
	}
	listFlagNames = []string{"recursive", "itself", "identify", "kept", "all"}
)

// What decodeService returns where it is not one value of the package.
type (
	closeMessage       struct{}
	madeMessage        struct{}
	workingMessage     uint32
	servicePingMessage Ping
	servicePongMessage Ping
)

// value returns what the decoder should return for the message.
func (m serviceMessage) value(t testing.TB) any {
	t.Helper()
	place := Place{m.Share, string(m.Path)}
	switch m.Type {
	case "GREETING":
		return Greeting{
			wire.Versions{Min: m.Min, Max: m.Max}, m.Version, m.Authenticates, m.Software, string(m.Name),
			string(m.User),
		}
	case "REFUSED":
		return Refusal{m.Code, string(m.Text), m.Final}
	case "COPY":
		return CopyRequest{
			Direction: wiretest.Named[CopyDirection](t, m.Direction, CopyPull), Kind: wiretest.Named[CopyKind](t,
				m.Kind, CopyStream),
			Links: wiretest.Named[CopyLinks](t, m.Links, CopyLinksSkip), Flags: CopyFlags(wiretest.FlagBits(t,
				copyFlagNames, m.Flags)),
			Place: place, Size: uint64(m.Size), Local: string(m.Local),
		}
	case "ACCEPTED":
		return Accepted{wiretest.Named[CopyKind](t, m.Kind, CopyStream), uint64(m.Size), string(m.Path), m.Unfinished}
	case "CLOSE":
		return closeMessage{}
	case "LIST":
		return ListRequest{ListFlags(wiretest.FlagBits(t, listFlagNames, m.Flags)), place}
	case "MKDIR":
		return MakeDirRequest{place, m.Parents}
	case "MEASURE":
		return MeasureRequest{
			Direction: wiretest.Named[CopyDirection](t, m.Direction, CopyPull), Path: wiretest.Named[wire.Path](t,
				m.DataPath, wire.PathTCP),
			Lanes: m.Lanes, Chunk: m.Chunk, Depth: m.Depth, Size: uint64(m.Size),
		}
	case "MADE":
		return madeMessage{}
	case "LIST END":
		return ListEnd{m.Count, m.Code, string(m.Text)}
	case "PING":
		return servicePingMessage{m.Number, m.pingKind(t), wiretest.Present(m.Payload)}
	case "PONG":
		return servicePongMessage{m.Number, m.pingKind(t), wiretest.Present(m.Payload)}
	case "WORKING":
		return workingMessage(m.Ahead)
	}
	return m.list(t, place)
}

// list returns the value of a message that consists of a list.
func (m serviceMessage) list(t testing.TB, place Place) any {
	t.Helper()
	var (
		items   []Item
		entries []Listed
		remove  = RemoveRequest{Place: place, Kept: slices.Contains(m.Flags, "kept"), Files: m.FilesOnly}
		results []Removal
	)
	remove.Aside = m.Aside
	for _, i := range m.Items {
		items = append(items, Item{wiretest.Named[ItemKind](t, i.Kind, ItemOlder), string(i.Text), int64(i.Bound)})
	}
	for _, e := range m.Entries {
		entries = append(entries, Listed{
			wiretest.Named[wire.EntryKind](t, e.Kind, wire.EntrySpecial), e.Depth, uint32(e.Mode),
			wire.Timestamp{Sec: int64(e.MTimeSec), Nsec: e.MTimeNsec}, e.File, uint64(e.Size), string(e.Name),
			string(e.Link),
			e.Mounted,
		})
	}
	for _, p := range m.Paths {
		remove.Paths = append(remove.Paths, string(p))
	}
	for _, r := range m.Results {
		results = append(results, Removal{r.Code, string(r.Text)})
	}
	value := map[string]any{"ITEMS": items, "LISTED": entries, "REMOVE": remove, "REMOVED": results}[m.Type]
	if value == nil {
		t.Fatalf("vector of unknown type %q", m.Type)
	}
	return value
}

// decodeService decodes any message of the service protocol.
func decodeService(msg []byte) (any, error) {
	switch wire.TypeOf(msg) {
	case wire.TypeGreeting:
		return wiretest.Decoded(wire.Decode(msg, wire.TypeGreeting, (*Greeting).fields))
	case wire.TypeRefused:
		refusal, err := DecodeRefused(msg)
		if err != nil {
			return nil, err
		}
		return *refusal, nil
	case wire.TypeItems:
		return wiretest.Decoded(wire.DecodeList(nil, msg, wire.TypeItems, (*Item).fields))
	case wire.TypeCopy:
		return wiretest.Decoded(wire.Decode(msg, wire.TypeCopy, (*CopyRequest).fields))
	case wire.TypeAccepted:
		return wiretest.Decoded(wire.Decode(msg, wire.TypeAccepted, (*Accepted).fields))
	case wire.TypeClose:
		return wiretest.Decoded(closeMessage{}, wire.DecodeEmpty(msg, wire.TypeClose))
	case wire.TypeList:
		return wiretest.Decoded(wire.Decode(msg, wire.TypeList, (*ListRequest).fields))
	case wire.TypeListed:
		return wiretest.Decoded(wire.DecodeList(nil, msg, wire.TypeListed, (*Listed).fields))
	case wire.TypeListEnd:
		return wiretest.Decoded(wire.Decode(msg, wire.TypeListEnd, (*ListEnd).fields))
	case wire.TypeRemove:
		return wiretest.Decoded(DecodeRemove(nil, msg))
	case wire.TypeRemoved:
		return wiretest.Decoded(wire.DecodeList(nil, msg, wire.TypeRemoved, (*Removal).fields))
	case wire.TypePing:
		ping, err := DecodePing(msg)
		return wiretest.Decoded(servicePingMessage(ping), err)
	case wire.TypePong:
		pong, err := decodePing(msg, wire.TypePong)
		return wiretest.Decoded(servicePongMessage(pong), err)
	case wire.TypeWorking:
		ahead, err := DecodeWorking(msg)
		return wiretest.Decoded(workingMessage(ahead), err)
	case wire.TypeMakeDir:
		return wiretest.Decoded(wire.Decode(msg, wire.TypeMakeDir, (*MakeDirRequest).fields))
	case wire.TypeMeasure:
		return wiretest.Decoded(wire.Decode(msg, wire.TypeMeasure, (*MeasureRequest).fields))
	case wire.TypeMade:
		return wiretest.Decoded(madeMessage{}, wire.DecodeEmpty(msg, wire.TypeMade))
	}
	return nil, wire.Malformed(wire.TypeOf(msg), "no message of the service protocol")
}

// encodeService encodes what decodeService returns.
func encodeService(value any) []byte {
	switch v := value.(type) {
	case Greeting:
		return AppendGreeting(nil, v)
	case Refusal:
		return encodeRefused(v)
	case []Item:
		return encodeItems(v)
	case CopyRequest:
		return AppendCopy(nil, v)
	case Accepted:
		return encodeAccepted(v)
	case closeMessage:
		return wire.AppendEmpty(nil, wire.TypeClose)
	case ListRequest:
		return AppendList(nil, v)
	case []Listed:
		return encodeListed(v)
	case ListEnd:
		return encodeListEnd(v)
	case RemoveRequest:
		return encodeRemove(v)
	case []Removal:
		return AppendRemoved(nil, v, 1<<20)
	case servicePingMessage:
		return AppendPing(nil, Ping(v))
	case servicePongMessage:
		return AppendPong(nil, Ping(v))
	case workingMessage:
		return AppendWorking(nil, uint32(v))
	case MakeDirRequest:
		return encodeMakeDir(v)
	case MeasureRequest:
		return encodeMeasure(v)
	case madeMessage:
		return wire.AppendEmpty(nil, wire.TypeMade)
	}
	return nil
}

func serviceVectors(t testing.TB) []serviceVector {
	t.Helper()
	var vectors []serviceVector
	wiretest.ReadVectors(t, serviceVectorFile, &vectors)
	seen := map[string]bool{}
	for _, v := range vectors {
		if v.Name == "" || v.Meaning == "" || seen[v.Name] || v.Malformed == (v.Message != nil) {
			t.Fatalf("vector %q needs a name of its own, a meaning, and either a message or malformed", v.Name)
		}
		seen[v.Name] = true
	}
	return vectors
}

// serviceCases returns the vectors with the functions for messages of the service.
func serviceCases(t testing.TB) (cases []wiretest.VectorCase) {
	t.Helper()
	for _, v := range serviceVectors(t) {
		cases = append(cases, wiretest.VectorCase{
			Name: v.Name, Hex: v.Hex, Malformed: v.Malformed, EncodesTo: v.EncodesTo,
			Message: func(t testing.TB) any { return v.Message.value(t) },
			Decode:  decodeService, Encode: encodeService,
		})
	}
	return cases
}

func TestServiceVectors(t *testing.T) {
	wiretest.CheckVectors(t, serviceCases(t), func(message wire.Type) bool { return message >= wire.TypeGreeting })
}

// Every missing or additional byte makes a message malformed.
func TestServiceVectorsOfAnotherLength(t *testing.T) {
	for _, v := range serviceCases(t) {
		v.CheckLengths(t)
	}
}

// Changing any bit makes another message or a malformed one, so every bit is checked.
func TestServiceVectorsWithABitChanged(t *testing.T) {
	for _, v := range serviceCases(t) {
		v.CheckBits(t, wiretest.IsFailureCode)
	}
}

// pingKind returns the kind of a PING or a PONG.
func (m serviceMessage) pingKind(t testing.TB) PingKind {
	return wiretest.Named[PingKind](t, cmp.Or(m.PingKind, PingBytes.String()), PingConsumer)
}

func TestServiceVectorFileIsReadAndCited(t *testing.T) {
	wiretest.CheckVectorFiles(t, serviceVectorFile)
}
