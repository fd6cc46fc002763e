package native

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Unless a test says otherwise, a file of 10000 bytes is transferred through two slots of 4 KiB.
const (
	nativeSize    = 10000
	nativeAddress = 0x7f0000001000
)

var (
	nativeLimits     = wire.Limits{MaxMessage: 4080, MaxFileSize: wire.MaxSize}
	nativeDescriptor = []byte("descriptor")
	nativeDigest     = []byte{0xc3, 0x2c, 0xc3, 0x2c}
	nativeSum        = []byte{0xc3, 0x2c, 0xc3, 0x2c, 0x33, 0x44, 0x55, 0x66}
)

func senderHello() Hello {
	h := receiverHello()
	h.Flags |= FlagFile
	return h
}

func treeHello() Hello {
	h := receiverHello()
	h.Flags |= FlagTree
	return h
}

func receiverHello() Hello {
	return Hello{
		Flags: FlagXAttr | FlagLinks, Digest: wire.DigestCRC32C, Durability: wire.DurabilityFull, Chunk: wire.MinChunk,
		Depth:   2,
		Session: [16]byte{15: 1}, Software: "dma-copy 1.0",
	}
}

// rootFile is the only entry of a transfer of one file.
func rootFile() wire.Entry {
	return wire.Entry{
		Kind: wire.EntryFile, Flags: wire.EntryChunked, Mode: 0o640, MTime: wire.Timestamp{Sec: -1, Nsec: 999999999},
		UID: 1000, GID: 100, Size: nativeSize, Identity: [16]byte{1, 2, 3},
	}
}

func rootDirectory() wire.Entry { return wire.Entry{Kind: wire.EntryDirectory, Mode: 0o755} }

func entryAt(depth int, kind wire.EntryKind, name string) wire.Entry {
	return wire.Entry{Kind: kind, Depth: depth, Mode: 0o644, Name: []byte(name)}
}

func fileAt(depth int, name string, size uint64) wire.Entry {
	e := entryAt(depth, wire.EntryFile, name)
	e.Size = size
	return e
}

// chunkedAt returns a file that comes in chunks.
func chunkedAt(depth int, name string, size uint64) wire.Entry {
	e := fileAt(depth, name, size)
	e.Flags = wire.EntryChunked
	return e
}

// pair is two native sessions, a sender and a receiver, with a reliable channel.
type pair struct {
	t                testing.TB
	sender, receiver *Session
}

func newPair(t testing.TB, sending wire.Side, from, to Hello) *pair {
	t.Helper()
	k := &pair{t: t, sender: newNative(t, sending, from), receiver: newNative(t, sending.Other(), to)}
	k.meet()
	return k
}

// meet exchanges the HELLOs.
func (k *pair) meet() {
	k.t.Helper()
	first, second := k.sender, k.receiver
	if !first.side.Initiates() {
		first, second = second, first
	}
	if second.Start() != nil {
		k.t.Fatalf("the %s opens", second.side)
	}
	answer := k.pass(first.Start(), second, Planned)
	k.pass(answer.Reply, first, Planned)
}

func newNative(t testing.TB, side wire.Side, own Hello) *Session {
	t.Helper()
	n, err := New(side, Supported.Max, own, nativeLimits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (k *pair) other(n *Session) *Session {
	if n == k.sender {
		return k.receiver
	}
	return k.sender
}

func (k *pair) on(side wire.Side) *Session {
	if k.sender.side == side {
		return k.sender
	}
	return k.receiver
}

// pass delivers a message and clears it, because a session must not retain it.
func (k *pair) pass(msg []byte, to *Session, event Event) Step {
	k.t.Helper()
	step, err := to.Receive(msg)
	clear(msg)
	if err != nil || step.Event != event {
		k.t.Fatalf("the %s came to %s instead of %s: %v", to.side, step.Event, event, err)
	}
	return step
}

func (k *pair) say(from *Session, event Event) func([]byte, error) Step {
	return func(msg []byte, err error) Step {
		k.t.Helper()
		if err != nil {
			k.t.Fatal(err)
		}
		return k.pass(msg, k.other(from), event)
	}
}

func (k *pair) windowOwner() *Session { return k.on(k.sender.plan.WindowOwner()) }

// windowOf returns a window for the plan.
func windowOf(p Plan) (address uint64, descriptor []byte) {
	worker := []byte("worker")
	switch p.Path {
	case wire.PathFast:
		return 0, AppendConsumers(nil, []uint32{7, 8})
	case wire.PathTLS, wire.PathTCP:
		return 0, AppendLanes(nil, 2, 1)
	case wire.PathMessages:
		return 0, AppendWorkers(nil, Workers{Addresses: [][]byte{worker, worker}, Key: make([]byte, TokenSize)})
	case wire.PathRMA:
		return nativeAddress, AppendWorkers(nil, Workers{Addresses: [][]byte{worker}, Key: []byte("key")})
	}
	return nativeAddress, nativeDescriptor
}

// open passes the window and begins a transfer.
func (k *pair) open() {
	k.t.Helper()
	owner := k.windowOwner()
	address, descriptor := windowOf(owner.plan)
	window := k.say(owner, WindowOpened)(owner.Window(address, descriptor)).Window
	want := Window{address, k.sender.plan.WindowLength(), descriptor}
	if window.Address != want.Address || window.Length != want.Length ||
		!bytes.Equal(window.Descriptor, want.Descriptor) {
		k.t.Fatalf("got %+v, want %+v", window, want)
	}
	k.begin()
}

func (k *pair) begin() {
	k.t.Helper()
	k.say(k.sender, TransferBegun)(k.sender.Transfer(nil))
	wantNativeStates(k.t, k, Transferring, Transferring)
}

// announce announces all entries in one message.
func (k *pair) announce(entries ...wire.Entry) {
	k.t.Helper()
	msg, used, err := k.sender.Entries(nil, entries)
	if err == nil && used != len(entries) {
		k.t.Fatalf("%d of %d entries were announced", used, len(entries))
	}
	k.say(k.sender, EntriesAnnounced)(msg, err)
}

func (k *pair) answer(answers ...Answer) {
	k.t.Helper()
	k.say(k.receiver, Answered)(k.receiver.Answers(nil, answers))
}

func need(entries ...uint32) []Answer {
	var answers []Answer
	for _, entry := range entries {
		answers = append(answers, Answer{Entry: entry, Kind: AnswerNeed})
	}
	return answers
}

// settle sends records and acknowledges them with one message.
func (k *pair) settle(records []Record, acks ...Ack) {
	k.t.Helper()
	k.say(k.sender, Announced)(k.sender.Chunks(nil, records))
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, acks))
}

func (k *pair) end(entry uint32, size uint64) {
	k.t.Helper()
	k.say(k.sender, PeerEnded)(k.sender.End(nil, entry, size, nativeDigest))
}

func (k *pair) commit(entries ...uint32) {
	k.t.Helper()
	k.say(k.receiver, Committed)(k.receiver.Results(nil, entries))
}

// fail passes a FAILURE and the peer's answer.
func (k *pair) fail(by *Session, f Failure) {
	k.t.Helper()
	step := k.say(by, EntryFailed)(by.Fail(nil, f))
	k.pass(step.Reply, by, None)
}

// finish ends the transfer.
func (k *pair) finish(want Counts) {
	k.t.Helper()
	total := k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, "")).Total
	wantNativeStates(k.t, k, Finishing, Finishing)
	step := k.say(k.receiver, PeerFinished)(k.receiver.Finished(nil, k.receiver.plan.Durability, ""))
	if total != k.sender.order.Next || step.Counts != want {
		k.t.Fatalf("the transfer ended with %+v of %d, want %+v", step.Counts, total, want)
	}
	wantNativeStates(k.t, k, Ready, Ready)
}

func wantNativeStates(t testing.TB, k *pair, sender, receiver State) {
	t.Helper()
	if k.sender.State() != sender || k.receiver.State() != receiver {
		t.Fatalf("states %s and %s instead of %s and %s", k.sender.State(), k.receiver.State(), sender, receiver)
	}
}

func wantNative(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// bothWays runs a test with either side as the sender.
func bothWays(t *testing.T, run func(*testing.T, wire.Side)) {
	for _, sending := range []wire.Side{wire.Host, wire.DPU} {
		t.Run(sending.String()+" sends", func(t *testing.T) { run(t, sending) })
	}
}

func TestTransferOfOneFile(t *testing.T) { bothWays(t, transferOneFile) }

func transferOneFile(t *testing.T, sending wire.Side) {
	k := newPair(t, sending, senderHello(), receiverHello())
	k.open()
	for range 2 {
		k.announce(rootFile())
		k.answer(need(0)...)
		k.settle([]Record{data(0, 0, 0, 4096), data(0, 1, 4096, 4096)}, Ack{Slot: 1}, Ack{Slot: 0, Bad: true})
		k.end(0, nativeSize)
		k.settle([]Record{data(0, 1, 0, 4096), data(0, 0, 8192, 1808)}, Ack{Slot: 0}, Ack{Slot: 1})
		k.commit(0)
		k.finish(Counts{Committed: 1})
		k.begin()
	}
}

func data(entry uint32, slot uint16, offset, length uint64) Record {
	return Record{Kind: DataRecord, Slot: slot, Entry: entry, Offset: offset, Length: length, Check: 1}
}

func TestTransferOfATree(t *testing.T) { bothWays(t, transferTree) }

func transferTree(t *testing.T, sending wire.Side) {
	k := newPair(t, sending, treeHello(), receiverHello())
	k.open()
	symlink, link := entryAt(1, wire.EntrySymlink, "c"), entryAt(1, wire.EntryHardLink, "d")
	symlink.Link, link.Link = []byte("../x"), []byte("a/y")
	k.announce(rootDirectory(), entryAt(1, wire.EntryDirectory, "a"), fileAt(2, "x", 10), fileAt(2, "y", 0),
		fileAt(1, "b", 100), symlink, link)
	k.commit(0, 1, 5, 6)
	k.answer(append(need(2, 3), Answer{Entry: 4, Kind: AnswerSum})...)
	files := []PackedFile{{Entry: 2, Length: 10}, {Entry: 3, Position: 16}}
	k.say(k.sender, Packed)(k.sender.Pack(nil, Pack{Slot: 1, Files: files}))
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{Slot: 1, Bad: true}}))
	k.say(k.sender, Packed)(k.sender.Pack(nil, Pack{Slot: 0, Attempt: 1, Files: files}))
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{Slot: 0}}))
	k.commit(3)
	k.say(k.sender, PeerSum)(k.sender.Sum(nil, 4, nativeSum))
	k.answer(Answer{Entry: 4, Kind: AnswerHave})
	k.fail(k.receiver, Failure{Entry: 2, Code: wire.AbortTarget, Text: "no space left"})
	k.say(k.receiver, EntryFailed)(k.receiver.Fail(nil, Failure{Entry: 1, Code: wire.AbortTarget}))
	k.finish(Counts{Committed: 5, Unchanged: 1, Failed: 2})
}
