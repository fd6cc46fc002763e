package negotiate

import (
	"cmp"
	"slices"
	"testing"
)

const serviceVectorFile = "service.json"

type serviceVector struct {
	Name      string          `json:"name"`
	Meaning   string          `json:"meaning"`
	Hex       octets          `json:"hex"`
	Malformed bool            `json:"malformed"`
	Message   *serviceMessage `json:"message"`
	EncodesTo octets          `json:"encodes_to"` // where it differs from Hex
}

// serviceMessage has the fields of all messages; those that a message does not have are absent.
type serviceMessage struct {
	Type          string         `json:"type"`
	Min           uint8          `json:"min"`
	Max           uint8          `json:"max"`
	Version       uint8          `json:"version"`
	Authenticates bool           `json:"authenticates"`
	Software      string         `json:"software"`
	Name          octets         `json:"name"`
	Code          AbortCode      `json:"code"`
	Text          octets         `json:"text"`
	Final         bool           `json:"final"`
	Items         []vectorItem   `json:"items"`
	Direction     string         `json:"direction"`
	Kind          string         `json:"kind"`
	Links         string         `json:"links"`
	Flags         []string       `json:"flags"`
	Share         string         `json:"share"`
	Path          octets         `json:"path"`
	Size          number         `json:"size"`
	Entries       []vectorListed `json:"entries"`
	Count         uint32         `json:"count"`
	Paths         []octets       `json:"paths"`
	Results       []vectorResult `json:"results"`
	Number        uint32         `json:"number"`
	PingKind      string         `json:"ping_kind"`
	Payload       octets         `json:"payload"`
	Ahead         uint32         `json:"ahead"`
	Unfinished    bool           `json:"unfinished"`
	FilesOnly     bool           `json:"files_only"` // of a REMOVE
	Aside         bool           `json:"aside"`      // of a REMOVE
	Parents       bool           `json:"parents"`
	User          octets         `json:"user"`  // of a GREETING
	Local         octets         `json:"local"` // of a COPY
	DataPath      string         `json:"data_path"`
	Lanes         uint8          `json:"lanes"`
	Chunk         uint32         `json:"chunk"`
	Depth         uint32         `json:"depth"`
}

type vectorItem struct {
	Kind string `json:"kind"`
	Text octets `json:"text"`
}

type vectorListed struct {
	Kind      string `json:"kind"`
	Depth     int    `json:"depth"`
	Mode      number `json:"mode"`
	MTimeSec  signed `json:"mtime_sec"`
	MTimeNsec uint32 `json:"mtime_nsec"`
	File      uint32 `json:"file"`
	Size      number `json:"size"`
	Name      octets `json:"name"`
	Link      octets `json:"link"`
	Mounted   bool   `json:"mounted"`
}

type vectorResult struct {
	Code AbortCode `json:"code"`
	Text octets    `json:"text"`
}

var (
	copyFlagNames = []string{
		"overwrite", "backup", "no-resume", "make-path", "directory", "allow-changing", "only", "owner", "xattr",
		"links", "dry-run", "ignore-existing",
		"keep",
	}
	listFlagNames = []string{"recursive", "itself", "identify", "kept", "all"}
)

// What decodeService returns where it is not one value of the package.
type (
	closeMessage       struct{}
	madeMessage        struct{}
	workingMessage     uint32
	servicePingMessage ServicePing
	servicePongMessage ServicePing
)

// value returns what the decoder should return for the message.
func (m serviceMessage) value(t testing.TB) any {
	t.Helper()
	place := Place{m.Share, string(m.Path)}
	switch m.Type {
	case "GREETING":
		return ServiceGreeting{
			Versions{m.Min, m.Max}, m.Version, m.Authenticates, m.Software, string(m.Name), string(m.User),
		}
	case "REFUSED":
		return Refusal{m.Code, string(m.Text), m.Final}
	case "COPY":
		return CopyRequest{
			Direction: named[CopyDirection](t, m.Direction, CopyPull), Kind: named[CopyKind](t, m.Kind, CopyStream),
			Links: named[CopyLinks](t, m.Links, CopyLinksSkip), Flags: CopyFlags(flagBits(t, copyFlagNames, m.Flags)),
			Place: place, Size: uint64(m.Size), Local: string(m.Local),
		}
	case "ACCEPTED":
		return Accepted{named[CopyKind](t, m.Kind, CopyStream), uint64(m.Size), string(m.Path), m.Unfinished}
	case "CLOSE":
		return closeMessage{}
	case "LIST":
		return ListRequest{ListFlags(flagBits(t, listFlagNames, m.Flags)), place}
	case "MKDIR":
		return MakeDirRequest{place, m.Parents}
	case "MEASURE":
		return MeasureRequest{
			Direction: named[CopyDirection](t, m.Direction, CopyPull), Path: named[Path](t, m.DataPath, PathTCP),
			Lanes: m.Lanes, Chunk: m.Chunk, Depth: m.Depth, Size: uint64(m.Size),
		}
	case "MADE":
		return madeMessage{}
	case "LIST END":
		return ListEnd{m.Count, m.Code, string(m.Text)}
	case "PING":
		return servicePingMessage{m.Number, m.pingKind(t), present(m.Payload)}
	case "PONG":
		return servicePongMessage{m.Number, m.pingKind(t), present(m.Payload)}
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
		items = append(items, Item{named[ItemKind](t, i.Kind, ItemPath), string(i.Text)})
	}
	for _, e := range m.Entries {
		entries = append(entries, Listed{
			named[EntryKind](t, e.Kind, EntrySpecial), e.Depth, uint32(e.Mode),
			Timestamp{int64(e.MTimeSec), e.MTimeNsec}, e.File, uint64(e.Size), string(e.Name), string(e.Link),
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
	switch TypeOf(msg) {
	case TypeServiceGreeting:
		return decoded(DecodeServiceGreeting(msg))
	case TypeRefused:
		refusal, err := DecodeRefused(msg)
		if err != nil {
			return nil, err
		}
		return *refusal, nil
	case TypeItems:
		return decoded(DecodeItems(nil, msg))
	case TypeCopy:
		return decoded(DecodeCopy(msg))
	case TypeAccepted:
		return decoded(DecodeAccepted(msg))
	case TypeClose:
		return decoded(closeMessage{}, DecodeClose(msg))
	case TypeList:
		return decoded(DecodeList(msg))
	case TypeListed:
		return decoded(DecodeListed(nil, msg))
	case TypeListEnd:
		return decoded(DecodeListEnd(msg))
	case TypeRemove:
		return decoded(DecodeRemove(nil, msg))
	case TypeRemoved:
		return decoded(DecodeRemoved(nil, msg))
	case TypeServicePing:
		ping, err := DecodeServicePing(msg)
		return decoded(servicePingMessage(ping), err)
	case TypeServicePong:
		pong, err := DecodeServicePong(msg)
		return decoded(servicePongMessage(pong), err)
	case TypeWorking:
		ahead, err := DecodeWorking(msg)
		return decoded(workingMessage(ahead), err)
	case TypeMakeDir:
		return decoded(DecodeMakeDir(msg))
	case TypeMeasure:
		return decoded(DecodeMeasure(msg))
	case TypeMade:
		return decoded(madeMessage{}, DecodeMade(msg))
	}
	return nil, malformed(TypeOf(msg), "no message of the service protocol")
}

// encodeService encodes what decodeService returns.
func encodeService(value any) []byte {
	switch v := value.(type) {
	case ServiceGreeting:
		return AppendServiceGreeting(nil, v)
	case Refusal:
		return encodeRefused(v)
	case []Item:
		return AppendItems(nil, v)
	case CopyRequest:
		return AppendCopy(nil, v)
	case Accepted:
		return AppendAccepted(nil, v)
	case closeMessage:
		return AppendClose(nil)
	case ListRequest:
		return AppendList(nil, v)
	case []Listed:
		return encodeListed(v)
	case ListEnd:
		return encodeListEnd(v)
	case RemoveRequest:
		return AppendRemove(nil, v)
	case []Removal:
		return AppendRemoved(nil, v, 1<<20)
	case servicePingMessage:
		return AppendServicePing(nil, ServicePing(v))
	case servicePongMessage:
		return AppendServicePong(nil, ServicePing(v))
	case workingMessage:
		return AppendWorking(nil, uint32(v))
	case MakeDirRequest:
		return AppendMakeDir(nil, v)
	case MeasureRequest:
		return AppendMeasure(nil, v)
	case madeMessage:
		return AppendMade(nil)
	}
	return nil
}

func serviceVectors(t testing.TB) []serviceVector {
	t.Helper()
	var vectors []serviceVector
	readVectors(t, serviceVectorFile, &vectors)
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
func serviceCases(t testing.TB) (cases []vectorCase) {
	t.Helper()
	for _, v := range serviceVectors(t) {
		cases = append(cases, vectorCase{
			name: v.Name, hex: v.Hex, malformed: v.Malformed, encodesTo: v.EncodesTo,
			message: func(t testing.TB) any { return v.Message.value(t) },
			decode:  decodeService, encode: encodeService,
		})
	}
	return cases
}

func TestServiceVectors(t *testing.T) {
	checkVectors(t, serviceCases(t), func(message Type) bool { return message >= TypeServiceGreeting })
}

// Every missing or additional byte makes a message malformed.
func TestServiceVectorsOfAnotherLength(t *testing.T) {
	for _, v := range serviceCases(t) {
		v.checkLengths(t)
	}
}

// Changing any bit makes another message or a malformed one, so every bit is checked.
func TestServiceVectorsWithABitChanged(t *testing.T) {
	for _, v := range serviceCases(t) {
		v.checkBits(t, isFailureCode)
	}
}

// pingKind returns the kind of a PING or a PONG.
func (m serviceMessage) pingKind(t testing.TB) PingKind {
	return named[PingKind](t, cmp.Or(m.PingKind, PingBytes.String()), PingConsumer)
}

func TestServiceVectorFileIsReadAndCited(t *testing.T) { checkVectorFiles(t, serviceVectorFile) }
