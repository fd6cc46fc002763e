package negotiate

import (
	"bytes"
	"errors"
	"testing"
)

// Unless a test says otherwise, a file of 10000 bytes is transferred through two slots of 4 KiB.
const (
	nativeSize    = 10000
	nativeAddress = 0x7f0000001000
)

var (
	nativeLimits     = Limits{MaxMessage: 4080, MaxFileSize: MaxSize}
	nativeDescriptor = []byte("descriptor")
	nativeDigest     = []byte{0xc3, 0x2c, 0xc3, 0x2c}
)

func senderHello() Hello {
	h := receiverHello()
	h.Flags |= FlagHasFile
	h.Size = nativeSize
	h.MTime = Timestamp{Sec: -1, Nsec: 999999999}
	h.Mode, h.UID, h.GID = 0o640, 1000, 100
	h.Identity = [16]byte{1, 2, 3}
	return h
}

func receiverHello() Hello {
	return Hello{
		Flags: FlagXAttr, Digest: DigestCRC32C, Durability: DurabilityFull, Chunk: MinChunk, Depth: 2,
		Session: [16]byte{15: 1}, Software: "dma-copy 1.0",
	}
}

// pair is two native sessions, a sender and a receiver, with a reliable channel.
type pair struct {
	t                testing.TB
	sender, receiver *NativeSession
}

func newPair(t testing.TB, sending Side, from, to Hello) *pair {
	t.Helper()
	k := &pair{t: t, sender: newNative(t, sending, from), receiver: newNative(t, sending.Other(), to)}
	host, dpu := k.sender, k.receiver
	if sending == DPU {
		host, dpu = dpu, host
	}
	if dpu.Start() != nil {
		t.Fatal("the DPU opens")
	}
	answer := k.pass(host.Start(), dpu, Planned)
	k.pass(answer.Reply, host, Planned)
	return k
}

func newNative(t testing.TB, side Side, own Hello) *NativeSession {
	t.Helper()
	n, err := NewNative(side, 1, own, nativeLimits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (k *pair) other(n *NativeSession) *NativeSession {
	if n == k.sender {
		return k.receiver
	}
	return k.sender
}

func (k *pair) on(side Side) *NativeSession {
	if k.sender.side == side {
		return k.sender
	}
	return k.receiver
}

// pass delivers a message and clears it, because a session must not retain it.
func (k *pair) pass(msg []byte, to *NativeSession, event Event) NativeStep {
	k.t.Helper()
	step, err := to.Receive(msg)
	clear(msg)
	if err != nil || step.Event != event {
		k.t.Fatalf("the %s came to %s instead of %s: %v", to.side, step.Event, event, err)
	}
	return step
}

func (k *pair) say(from *NativeSession, event Event) func([]byte, error) NativeStep {
	return func(msg []byte, err error) NativeStep {
		k.t.Helper()
		if err != nil {
			k.t.Fatal(err)
		}
		return k.pass(msg, k.other(from), event)
	}
}

// open brings both sides to the states Sending and Receiving.
func (k *pair) open(resume uint64) {
	k.t.Helper()
	host := k.on(Host)
	window := k.say(host, WindowOpened)(host.Window(nativeAddress, nativeDescriptor)).Window
	want := Window{nativeAddress, k.sender.Plan().WindowLength(), nativeDescriptor}
	if window.Address != want.Address || window.Length != want.Length ||
		!bytes.Equal(window.Descriptor, want.Descriptor) {
		k.t.Fatalf("got %+v, want %+v", window, want)
	}
	if got := k.say(k.receiver, PeerReady)(k.receiver.Ready(resume)).Resume; got != resume {
		k.t.Fatalf("resumes from %d, want %d", got, resume)
	}
	wantNativeStates(k.t, k, Sending, Receiving)
}

// settle sends records and acknowledges them with one message.
func (k *pair) settle(records []Record, acks []Ack) {
	k.t.Helper()
	step := k.say(k.sender, Announced)(k.sender.Chunks(nil, records))
	if len(step.Records) != len(records) || step.Records[0] != records[0] {
		k.t.Fatalf("got %+v, want %+v", step.Records, records)
	}
	step = k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, acks))
	if len(step.Acks) != len(acks) || step.Acks[0] != acks[0] {
		k.t.Fatalf("got %+v, want %+v", step.Acks, acks)
	}
}

// finish brings both sides from the last acknowledgement to the end.
func (k *pair) finish(size uint64) {
	k.t.Helper()
	end := k.say(k.sender, PeerEnded)(k.sender.End(size, nativeDigest))
	prepared := k.say(k.receiver, PeerPrepared)(k.receiver.Prepared(end.Digest))
	if end.Size != size || prepared.Size != size || !bytes.Equal(prepared.Digest, nativeDigest) {
		k.t.Fatalf("ended with %+v, prepared %+v", end, prepared)
	}
	wantNativeStates(k.t, k, Deciding, AwaitCommit)
	k.say(k.sender, PeerCommit)(k.sender.Commit())
	if got := k.say(k.receiver, PeerDone)(k.receiver.Done(DurabilityFull)).Durability; got != DurabilityFull {
		k.t.Fatalf("durability %s", got)
	}
	wantNativeStates(k.t, k, Done, AwaitDisconnect)
	if err := errors.Join(k.sender.Disconnected(), k.receiver.Disconnected()); err != nil {
		k.t.Fatal(err)
	}
	wantNativeStates(k.t, k, Done, Done)
}

func wantNativeStates(t testing.TB, k *pair, sender, receiver State) {
	t.Helper()
	if k.sender.State() != sender || k.receiver.State() != receiver {
		t.Fatalf("sender in %s, receiver in %s; want %s and %s", k.sender.State(), k.receiver.State(), sender, receiver)
	}
}

func data(slot uint32, offset, length uint64) Record {
	return Record{Kind: DataRecord, Slot: slot, Offset: offset, Length: length, Check: 7}
}

func good(slots ...uint32) []Ack {
	var acks []Ack
	for _, slot := range slots {
		acks = append(acks, Ack{Slot: slot})
	}
	return acks
}

func bothSides(t *testing.T, test func(t *testing.T, sending Side)) {
	for _, sending := range []Side{Host, DPU} {
		t.Run(sending.String()+"-sends", func(t *testing.T) { test(t, sending) })
	}
}

func TestNativeCopy(t *testing.T) {
	bothSides(t, func(t *testing.T, sending Side) {
		k := newPair(t, sending, senderHello(), receiverHello())
		if k.sender.Plan() != k.receiver.Plan() || k.sender.Plan().Sender != sending {
			t.Fatalf("plans %+v and %+v", k.sender.Plan(), k.receiver.Plan())
		}
		k.open(0)
		hole := Record{Kind: HoleRecord, Slot: 1, Offset: 4096, Length: 4096}
		k.settle([]Record{data(0, 0, 4096), hole}, []Ack{{0, true}, {1, false}})
		again := data(1, 0, 4096)
		again.Attempt = 1
		k.settle([]Record{again, data(0, 8192, nativeSize-8192)}, good(0, 1))
		k.finish(nativeSize)
	})
}

func TestNativeResume(t *testing.T) {
	bothSides(t, func(t *testing.T, sending Side) {
		k := newPair(t, sending, senderHello(), receiverHello())
		k.open(8192)
		claims := []Record{{ClaimRecord, 0, 0, 0, 4096, 5}, {ClaimRecord, 0, 1, 4096, 4096, 6}}
		k.settle(claims, []Ack{{1, true}, {0, false}})
		k.settle([]Record{data(0, 4096, 4096), data(1, 8192, nativeSize-8192)}, good(0, 1))
		k.finish(nativeSize)
	})
}

func TestNativeStream(t *testing.T) {
	bothSides(t, func(t *testing.T, sending Side) {
		stream := receiverHello()
		stream.Flags = FlagStream
		k := newPair(t, sending, stream, receiverHello())
		if p := k.receiver.Plan(); p.SizeKnown || p.Resumable() {
			t.Fatalf("%+v of a stream", p)
		}
		k.open(0)
		k.settle([]Record{data(1, 0, 4096), data(0, 4096, 4)}, good(1, 0))
		k.finish(4100)
	})
}

func TestNativeEmptyFile(t *testing.T) {
	bothSides(t, func(t *testing.T, sending Side) {
		from := senderHello()
		from.Size = 0
		k := newPair(t, sending, from, receiverHello())
		k.open(0)
		k.finish(0)
	})
}

// Messages of a running transfer allocate nothing, on either side and in either direction.
func TestNativeHotPathAllocatesNothing(t *testing.T) {
	from, to := senderHello(), receiverHello()
	from.Flags, from.Size, from.Depth, to.Depth = FlagStream, 0, 64, 64
	from.MTime, from.Mode = Timestamp{}, 0
	k := newPair(t, Host, from, to)
	k.open(0)
	if cap(k.receiver.records) < 64 || cap(k.sender.acks) < 64 {
		t.Error("the first messages allocate")
	}
	records, acks := make([]Record, 64), make([]Ack, 64)
	for slot := range records {
		records[slot], acks[slot] = data(uint32(slot), 0, 1), Ack{Slot: uint32(slot)}
	}
	buffer := make([]byte, 0, nativeLimits.MaxMessage)
	work := uint64(0)
	allocations := testing.AllocsPerRun(100, func() {
		k.say(k.sender, Announced)(k.sender.Chunks(buffer, records))
		k.say(k.receiver, Acknowledged)(k.receiver.Acks(buffer, acks))
		work++
		k.say(k.sender, PeerBeat)(k.sender.Beat(buffer, Beat{1, work}))
	})
	if allocations != 0 {
		t.Errorf("%v allocations per round", allocations)
	}
}
