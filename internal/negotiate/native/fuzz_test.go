package native

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// Decoding never panics, and encoding an accepted message returns the same bytes.
func FuzzNativeDecode(f *testing.F) { fuzzDecode(f) }

// The targets below each concentrate on messages of one kind.

func FuzzDecodeTransfer(f *testing.F) {
	fuzzDecode(f, wire.TypeTransfer, wire.TypeFinish, wire.TypeFinished, wire.TypeCancelled)
}
func FuzzDecodeEntries(f *testing.F)  { fuzzDecode(f, wire.TypeEntries) }
func FuzzDecodeAnswers(f *testing.F)  { fuzzDecode(f, wire.TypeAnswers) }
func FuzzDecodeMetadata(f *testing.F) { fuzzDecode(f, wire.TypeMetadata) }
func FuzzDecodeChunks(f *testing.F)   { fuzzDecode(f, wire.TypeChunks, wire.TypeAcks) }
func FuzzDecodePack(f *testing.F)     { fuzzDecode(f, wire.TypePack) }
func FuzzDecodeEnd(f *testing.F)      { fuzzDecode(f, wire.TypeEnd, wire.TypeSum) }
func FuzzDecodeResults(f *testing.F)  { fuzzDecode(f, wire.TypeResults, wire.TypeFailure) }

// fuzzDecode makes every input a message of one of the types, or leaves them as they are.
func fuzzDecode(f *testing.F, types ...wire.Type) {
	for _, v := range nativeVectors(f) {
		if len(types) == 0 || slices.Contains(types, wire.TypeOf(v.Hex)) {
			f.Add([]byte(v.Hex), uint8(v.digest(f)))
		}
	}
	f.Fuzz(func(t *testing.T, msg []byte, digest uint8) {
		if len(types) > 0 && len(msg) >= wire.TypeSize {
			t := types[int(msg[0])%len(types)]
			if given := wire.TypeOf(msg); slices.Contains(types, given) {
				t = given
			}
			msg = append(wiretest.AppendType(nil, t), msg[wire.TypeSize:]...)
		}
		checkDecoding(t, msg, wire.Digest(digest)%5)
	})
}

func checkDecoding(t *testing.T, msg []byte, d wire.Digest) {
	message, err := decodeNative(msg, d)
	if err != nil {
		wiretest.WantMalformed(t, message, err)
		return
	}
	encoded := encodeNative(message, d)
	// The codes and texts of these are made valid.
	free := wire.TypeOf(msg) == wire.TypeAbort || wire.TypeOf(msg) == wire.TypeFailure
	if !free {
		wiretest.WantBytes(t, encoded, msg)
	}
	again, err := decodeNative(encoded, d)
	if err != nil || !free && !reflect.DeepEqual(again, message) {
		t.Fatalf("%+v became %+v, %v", message, again, err)
	}
}

// For any messages and calls from the DIRECTIONs on, a session stays in a state of its protocol, sends only messages
// that the peer can decode, does not change by refused calls, and uses no more memory than its limits allow.
//
// The script is a sequence of messages, each after its length in one byte. Lengths from 240 on are calls: those without
// arguments, and one with the arguments of the message that follows.
func FuzzNativeSession(f *testing.F) {
	for _, r := range nativeRoles {
		f.Add(r.side == wire.DPU, r.sends, uint8(r.course), nativeScript(r))
	}
	f.Fuzz(func(t *testing.T, dpu, sends bool, course uint8, script []byte) {
		r := nativeRole{wire.Host, sends, gridCourse(course % 3)}
		if dpu {
			r.side = wire.DPU
		}
		play(t, r, script)
	})
}

const (
	nativeFuzzStart      = 240
	nativeFuzzCall       = 241
	nativeFuzzDisconnect = 242
)

var nativeFuzzLimits = wire.Limits{MaxMessage: 239, MaxFileSize: 1 << 40}

func play(t *testing.T, r nativeRole, script []byte) *speaker {
	own := r.hello()
	s := newSpeaker(r.side, reference.Local{HasFile: r.sends, Size: gridChunk, Native: &Offer{Own: own}},
		nativeFuzzLimits)
	for len(script) > 0 {
		if s.native == nil {
			script = playReference(t, s, script)
			continue
		}
		script = playNative(t, s.native, script)
		checkNative(t, s.native)
	}
	return s
}

func playReference(t *testing.T, s *speaker, script []byte) (rest []byte) {
	switch op := script[0]; op {
	case nativeFuzzStart:
		checkAnyReply(t, s.Session.Start())
		return script[1:]
	case nativeFuzzDisconnect:
		_ = s.Session.Disconnected()
		return script[1:]
	case nativeFuzzCall:
		script = script[1:]
	}
	msg, rest := wiretest.TakeCounted(script)
	s.receive(msg)
	checkAnyReply(t, s.reply)
	return rest
}

func playNative(t *testing.T, n *Session, script []byte) (rest []byte) {
	before := n.State()
	switch script[0] {
	case nativeFuzzStart:
		checkAnyReply(t, n.Start())
		return script[1:]
	case nativeFuzzDisconnect:
		if err := n.Disconnected(); (err == nil) != (n.State() == Done) {
			t.Fatalf("disconnected in %s: %s, %v", before, n.State(), err)
		}
		return script[1:]
	case nativeFuzzCall:
		msg, rest := wiretest.TakeCounted(script[1:])
		playCall(t, n, msg)
		return rest
	}
	msg, rest := wiretest.TakeCounted(script)
	step, err := n.Receive(bytes.Clone(msg))
	checkAnyReply(t, step.Reply)
	if err == nil && n.State() == Failed && before != Cancelling || err != nil && n.State() != Failed ||
		err != nil && (step.Event != None || before == Failed && step.Reply != nil) {
		t.Fatalf("% x in %s: %s, %+v, %v", msg, before, n.State(), step, err)
	}
	return rest
}

func playCall(t *testing.T, n *Session, msg []byte) {
	message, err := decodeNative(msg, n.plan.Digest)
	if err != nil {
		return
	}
	before := snapshot(n)
	said, err := call(n, message)
	if _, abort := message.(PeerAborted); abort {
		if n.State() != Failed && n.State() != Cancelling {
			t.Fatalf("gave up in %s and came to %s", before.state, n.State())
		}
		checkAnyReply(t, said)
		return
	}
	if err == nil {
		checkAnyReply(t, said)
		return
	}
	_, hello := message.(Hello)
	var failure *wire.Error
	if !hello && (said != nil || !errors.As(err, &failure) || failure.State == nil) {
		t.Fatalf("refused %+v with % x, %v", message, said, err)
	}
	if !reflect.DeepEqual(snapshot(n), before) {
		t.Fatalf("refused %+v, and yet it changed something", message)
	}
}

// nativeSnapshot has what a refused call must not change.
type nativeSnapshot struct {
	state       State
	slots       []slot
	outstanding int
	entries     entryTable
	order       string
}

func snapshot(n *Session) nativeSnapshot {
	entries := n.entries
	entries.ring = slices.Clone(entries.ring)
	return nativeSnapshot{n.machine.State, slices.Clone(n.slots.slots), n.slots.outstanding, entries,
		fmt.Sprint(n.order)}
}

func checkAnyReply(t *testing.T, msg []byte) {
	t.Helper()
	if msg == nil {
		return
	}
	_, native := decodeNative(msg, wire.DigestCRC32C)
	_, reference := reference.Decode(msg)
	if native != nil && reference != nil || len(msg) > nativeFuzzLimits.MaxMessage {
		t.Fatalf("sent % x: %v, %v", msg, native, reference)
	}
}

// checkNative checks that a session's memory is within its limits and its tables are consistent.
func checkNative(t *testing.T, n *Session) {
	t.Helper()
	longest := nativeFuzzLimits.MaxMessage
	if cap(n.reused.records) > MaxRecords(longest) || cap(n.reused.acks) > MaxAcks(longest) ||
		cap(n.reused.entries) > longest/entrySize || cap(n.reused.answers) > MaxAnswers(longest) ||
		len(n.reused.octets) > longest || len(n.slots.slots) > wire.MaxDepth || len(n.entries.ring) > MaxOpen {
		t.Fatalf("a session of more than its limits: %+v", n)
	}
	checkEntryTable(t, n)
	if name := n.State().String(); !slices.Contains(stateNames[Idle:], name) {
		t.Fatalf("in state %q", name)
	}
}

// checkEntryTable compares the counters of the tables with what they count.
func checkEntryTable(t *testing.T, n *Session) {
	t.Helper()
	undecided, unconfirmed, outstanding, packed := 0, 0, 0, 0
	pending := map[uint32]uint64{}
	for _, s := range n.slots.slots {
		if s.marked {
			t.Fatal("a slot is marked")
		}
		if s.inFlight {
			outstanding++
			pending[s.entry] += s.length
		}
	}
	for number := n.entries.oldest; number != n.entries.next; number++ {
		e := n.entries.at(number)
		if e.phase != decided {
			undecided++
			if e.pending != pending[number] || e.covered() > n.sizeLimit(e) || e.marked {
				t.Fatalf("entry %d: %+v, %d bytes pending", number, e, pending[number])
			}
		}
		if e.phase == ended && !e.failed {
			unconfirmed++
		}
		if e.packed {
			packed++
		}
	}
	if cancelled := n.State() == Failed && n.entries.unconfirmed == 0; undecided != n.entries.undecided ||
		unconfirmed != n.entries.unconfirmed && !cancelled || outstanding != n.slots.outstanding ||
		packed > 0 && outstanding == 0 || total(n.entries.counts)+undecided < int(n.entries.next) {
		t.Fatalf("%d undecided, %d unconfirmed, %d outstanding; counted %d, %d, %d; %d packed", n.entries.undecided,
			n.entries.unconfirmed, n.slots.outstanding, undecided, unconfirmed, outstanding, packed)
	}
}

func total(c Counts) int { return int(c.Committed) + int(c.Unchanged) + int(c.Failed) }

// nativeScript returns the script of a transfer without faults for one role.
func nativeScript(r nativeRole) []byte {
	own, peer := r.hello(), r.peer().hello()
	own.Version, peer.Version = Supported.Max, Supported.Max
	var script []byte
	say := func(message any) {
		script = append(append(script, nativeFuzzCall), wiretest.Counted(encodeNative(message, wire.DigestCRC32C))...)
	}
	hear := func(message any) {
		script = append(script, wiretest.Counted(encodeNative(message, wire.DigestCRC32C))...)
	}
	host, dpu, sender, receiver := say, hear, say, hear
	if r.side == wire.DPU {
		host, dpu = hear, say
	}
	if !r.sends {
		sender, receiver = hear, say
	}
	script = append(script, nativeFuzzStart)
	script = append(script, wiretest.Counted(reference.Direction{Offer: [3]byte{0xDC, 2, 2}}.Encode())...)
	script = append(script, nativeFuzzStart)
	hear(peer)
	host(Window{nativeAddress, 2 * gridChunk, nativeDescriptor})
	sender(transferMessage{})
	dpu(Beat{1, 1})
	if r.course == gridTree {
		nativeTreeScript(sender, receiver)
	} else {
		nativeFileScript(r, sender, receiver)
	}
	return append(script, nativeFuzzDisconnect)
}

func nativeFileScript(r nativeRole, sender, receiver func(any)) {
	sender(r.entries())
	receiver(r.answer(AnswerSum))
	sender(sumMessage{r.entry(), nativeSum})
	committed := resultsMessage{0}
	if r.course == gridPacked {
		receiver(r.answer(AnswerNeed))
		sender(r.metadata())
		sender(r.pack())
		receiver([]Ack{{}})
		committed = resultsMessage{0, 1}
	} else {
		nativeChunksScript(r, sender, receiver)
	}
	receiver(committed)
	sender(r.finish())
	receiver(finishedMessage{wire.DurabilityFull, Counts{Committed: uint32(len(committed))}, ""})
}

func nativeChunksScript(r nativeRole, sender, receiver func(any)) {
	receiver([]Answer{{Kind: AnswerNeed, Offset: gridChunk}})
	sender([]Record{{ClaimRecord, 0, 1, 0, 0, gridChunk, 5}})
	receiver([]Ack{{1, true}})
	sender([]Record{{DataRecord, 1, 0, 0, 0, gridChunk, 5}})
	sender(r.metadata())
	receiver([]Ack{{0, false}})
	sender(r.end())
}

func nativeTreeScript(sender, receiver func(any)) {
	sender([]wire.Entry{rootDirectory(), fileAt(1, "a", 5), fileAt(1, "b", 5)})
	sender([]wire.Entry{entryAt(1, wire.EntryDirectory, "c"), fileAt(2, "d", 5)})
	receiver(resultsMessage{3, 0})
	receiver(need(1, 2, 4))
	sender(Pack{Slot: 1, Files: []PackedFile{{Entry: 1, Length: 5}, {Entry: 4, Position: 5, Length: 5}}})
	receiver([]Ack{{1, true}})
	sender(Pack{Slot: 0, Attempt: 1, Files: []PackedFile{{Entry: 1, Length: 5}, {Entry: 4, Position: 5, Length: 5}}})
	sender(Failure{2, wire.AbortSource, "gone"})
	receiver(Failure{2, wire.AbortSource, ""})
	receiver([]Ack{{0, false}})
	receiver(resultsMessage{1, 4})
	sender(finishMessage{5, 1, ""})
	receiver(Failure{3, wire.AbortTarget, "times"})
	receiver(finishedMessage{wire.DurabilityFull, Counts{Committed: 4, Failed: 2}, ""})
}

// The seeds must reach the end of a transfer.
func TestNativeFuzzScriptsComplete(t *testing.T) {
	for _, r := range nativeRoles {
		if s := play(t, r, nativeScript(r)); s.state() != Done {
			t.Errorf("the script of %s ends in %s", r, s.state())
		}
	}
}

// The memory of a session depends on neither the window's size nor anything else that the peer says. That for one file
// is a part of that for a tree.
func TestReceiveHelloAllocatesLittle(t *testing.T) {
	for _, c := range []struct {
		name  string
		peer  Hello
		bytes uint64
	}{{"tree", treeHello(), 256 << 10}, {"file", senderHello(), 64 << 10}} {
		t.Run(c.name, func(t *testing.T) { checkAllocations(t, c.peer, c.bytes) })
	}
}

// checkAllocations plans transfers through the largest window.
func checkAllocations(t *testing.T, peer Hello, bytes uint64) {
	const rounds = 100
	own := receiverHello()
	own.Chunk, own.Depth, peer.Chunk, peer.Depth = wire.MaxChunk, wire.MaxDepth, wire.MaxChunk, wire.MaxDepth
	peer.Version = Supported.Max
	msg := AppendHello(nil, peer)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		n := newNative(t, wire.DPU, own)
		n.Start()
		mustReceive(t, n, msg)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > rounds*bytes {
		t.Errorf("%d plans allocated %d bytes", rounds, allocated)
	}
}

// FuzzEntryOrder compares which entries a receiver accepts with a model of a file system: a set of full paths. Each
// entry of the script has three bytes: its kind, depth and name.
func FuzzEntryOrder(f *testing.F) {
	f.Add([]byte{1, 1, 'a', 0, 2, 'a', 0, 2, 'b', 1, 1, 'b', 2, 2, 'a', 0, 1, 'c'})
	f.Add([]byte{0, 1, 'a', 0, 1, 'a', 0, 2, 'a', 0, 1, 'A'})
	f.Fuzz(func(t *testing.T, script []byte) {
		n := reachNative(t, nativeRole{wire.DPU, false, gridTree}, "unanswered+metadata")
		wiretest.Must(t)(n.Results(nil, []uint32{0}))
		files := modelTree{kinds: map[string]wire.EntryKind{"": wire.EntryDirectory}}
		for ; len(script) >= 3; script = script[3:] {
			e := entryAt(int(script[1]%8), wire.EntryKind(script[0]%3)+1, string(script[2:3]))
			if e.Link = nil; e.Kind == wire.EntrySymlink {
				e.Link = []byte("x")
			}
			path, allowed := files.add(e)
			_, err := n.Receive(encodeEntries([]wire.Entry{e}))
			if (err == nil) != allowed {
				t.Fatalf("%q at depth %d as %q: %v, the model says %v", e.Name, e.Depth, path, err, allowed)
			}
			if err != nil {
				return
			}
			wiretest.Must(t)(n.Fail(nil, Failure{Entry: n.order.Next - 1}))
			mustReceive(t, n, AppendFailure(nil, Failure{Entry: n.order.Next - 1}))
		}
	})
}

// modelTree is a model of the entries: it keeps all full paths.
type modelTree struct {
	kinds map[string]wire.EntryKind
	last  []string          // names of the last entry's path
	after map[string]string // last name in each directory
}

// add adds an entry if it is allowed.
func (m *modelTree) add(e wire.Entry) (path string, allowed bool) {
	if m.after == nil {
		m.after = map[string]string{}
	}
	name := string(e.Name)
	if e.Depth < 1 || e.Depth > len(m.last)+1 || name == "/" || name == "." || name == "\x00" {
		return name, false
	}
	parent := strings.Join(m.last[:e.Depth-1], "/")
	path = strings.TrimPrefix(parent+"/"+name, "/")
	_, exists := m.kinds[path]
	if exists || m.kinds[parent] != wire.EntryDirectory || m.after[parent] >= name {
		return path, false
	}
	m.kinds[path], m.after[parent] = e.Kind, name
	m.last = append(append([]string(nil), m.last[:e.Depth-1]...), name)
	return path, true
}
