package negotiate

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"testing"
)

// Decoding never panics, and encoding an accepted message returns the same bytes.
func FuzzNativeDecode(f *testing.F) {
	for _, v := range nativeVectors(f) {
		f.Add([]byte(v.Hex))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		message, err := decodeNative(msg)
		if err != nil {
			wantMalformedNative(t, message, err)
			return
		}
		encoded := encodeNative(message)
		if _, abort := message.(PeerAborted); !abort {
			wantBytes(t, encoded, msg)
		}
		again, err := decodeNative(encoded)
		if err != nil || typeOf(msg) != TypeAbort && !reflect.DeepEqual(again, message) {
			t.Fatalf("%+v became %+v, %v", message, again, err)
		}
	})
}

// For any messages and calls from the DIRECTIONs on, a session stays in a state of its protocol, sends only messages
// that the peer can decode, does not change by refused calls, and uses no more memory than its limits allow.
//
// The script is a sequence of messages, each after its length in one byte. Lengths from 240 on are calls: those without
// arguments, and one with the arguments of the message that follows.
func FuzzNativeSession(f *testing.F) {
	for _, r := range nativeRoles {
		f.Add(r.side == DPU, r.sends, nativeScript(r))
	}
	f.Fuzz(func(t *testing.T, dpu, sends bool, script []byte) {
		r := nativeRole{Host, sends}
		if dpu {
			r.side = DPU
		}
		play(t, r, script)
	})
}

const (
	nativeFuzzStart = 240 + iota
	nativeFuzzCall
	nativeFuzzDisconnect
)

var nativeFuzzLimits = Limits{MaxMessage: 239, MaxFileSize: 1 << 40}

func play(t *testing.T, r nativeRole, script []byte) *speaker {
	own := r.hello()
	s := newSpeaker(r.side, Local{HasFile: r.sends, Size: own.Size, Native: &own}, nativeFuzzLimits)
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
	msg, rest := takeCounted(script)
	s.receive(msg)
	checkAnyReply(t, s.reply)
	return rest
}

func playNative(t *testing.T, n *NativeSession, script []byte) (rest []byte) {
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
		msg, rest := takeCounted(script[1:])
		playCall(t, n, msg)
		return rest
	}
	msg, rest := takeCounted(script)
	step, err := n.Receive(bytes.Clone(msg))
	checkAnyReply(t, step.Reply)
	if (err != nil) != (n.State() == Failed) ||
		err != nil && (step.Event != None || before == Failed && step.Reply != nil) {
		t.Fatalf("% x in %s: %s, %+v, %v", msg, before, n.State(), step, err)
	}
	return rest
}

func playCall(t *testing.T, n *NativeSession, msg []byte) {
	message, err := decodeNative(msg)
	if err != nil {
		return
	}
	before := *n
	before.slots.lengths, before.slots.inFlight = bytesOf(n.slots.lengths), bytesOf(n.slots.inFlight)
	said, err := call(n, message)
	if _, abort := message.(PeerAborted); abort {
		if n.State() != Failed {
			t.Fatalf("gave up in %s and came to %s", before.state, n.State())
		}
		checkAnyReply(t, said)
		return
	}
	var failure *Error
	if err == nil {
		checkAnyReply(t, said)
	} else if _, hello := message.(Hello); !hello && (said != nil || !errors.As(err, &failure) || failure.State == 0) {
		t.Fatalf("refused %+v with % x, %v", message, said, err)
	}
	if err != nil && (n.state != before.state || n.slots.outstanding != before.slots.outstanding ||
		n.slots.covered() != before.slots.covered() || !reflect.DeepEqual(n.slots.inFlight, before.slots.inFlight)) {
		t.Fatalf("refused %+v, and yet it changed something", message)
	}
}

func bytesOf[T any](s []T) []T { return append([]T(nil), s...) }

func checkAnyReply(t *testing.T, msg []byte) {
	t.Helper()
	if msg == nil {
		return
	}
	_, native := decodeNative(msg)
	_, reference := Decode(msg)
	if native != nil && reference != nil || len(msg) > nativeFuzzLimits.MaxMessage {
		t.Fatalf("sent % x: %v, %v", msg, native, reference)
	}
}

// checkNative checks that a session's memory is within its limits and its slot table is consistent.
func checkNative(t *testing.T, n *NativeSession) {
	t.Helper()
	if cap(n.records) > MaxRecords(nativeFuzzLimits.MaxMessage) || cap(n.acks) > MaxAcks(nativeFuzzLimits.MaxMessage) ||
		len(n.octets) > nativeFuzzLimits.MaxMessage || len(n.slots.inFlight) > MaxDepth {
		t.Fatalf("%d records, %d acknowledgements, %d octets, %d slots", cap(n.records), cap(n.acks), len(n.octets),
			len(n.slots.inFlight))
	}
	taken, pending := 0, uint64(0)
	for slot, is := range n.slots.inFlight {
		if is {
			taken++
			pending += n.slots.lengths[slot]
		}
	}
	if taken != n.slots.outstanding || pending != n.slots.pending || n.planned() && n.slots.covered() > n.sizeLimit() {
		t.Fatalf("%d outstanding of %d bytes, counted %d of %d; %d of %d claimed", n.slots.outstanding, n.slots.pending,
			taken, pending, n.slots.covered(), n.sizeLimit())
	}
	if n.State().String() == "" || n.State() == AwaitDirection || n.State() == AwaitExport {
		t.Fatalf("in state %s", n.State())
	}
}

// nativeScript returns the script of a transfer without faults for one role.
func nativeScript(r nativeRole) []byte {
	own, peer := r.hello(), r.peer().hello()
	own.Version, peer.Version = 1, 1
	var script []byte
	say := func(message any) { script = append(append(script, nativeFuzzCall), counted(encodeNative(message))...) }
	hear := func(message any) { script = append(script, counted(encodeNative(message))...) }
	host, dpu, sender, receiver := say, hear, say, hear
	if r.side == DPU {
		host, dpu = hear, say
	}
	if !r.sends {
		sender, receiver = hear, say
	}
	script = append(script, nativeFuzzStart)
	script = append(script, counted(Direction{Offer: [3]byte{offerMark, 1, 1}}.Encode())...)
	script = append(script, nativeFuzzStart)
	hear(peer)
	host(Window{nativeAddress, 2 * gridChunk, nativeDescriptor})
	receiver(readyMessage(gridChunk))
	dpu(Beat{1, 1})
	sender([]Record{{ClaimRecord, 0, 1, 0, gridChunk, 5}})
	receiver([]Ack{{1, true}})
	sender([]Record{{DataRecord, 1, 0, 0, gridChunk, 5}})
	sender(Metadata{3, 0, []byte("abc")})
	receiver([]Ack{{0, false}})
	sender(endMessage{DigestCRC32C, gridChunk, nativeDigest})
	receiver(preparedTotal{DigestCRC32C, gridChunk, nativeDigest})
	sender(commitMessage{})
	receiver(DurabilityFull)
	return append(script, nativeFuzzDisconnect)
}

// The seeds must reach the end of a transfer.
func TestNativeFuzzScriptsComplete(t *testing.T) {
	for _, r := range nativeRoles {
		if s := play(t, r, nativeScript(r)); s.state() != Done {
			t.Errorf("the script of %s ends in %s", r, s.state())
		}
	}
}

// The memory of a session depends on the number of slots and not on the window's size.
func TestReceiveHelloAllocatesLittle(t *testing.T) {
	const rounds, perRound = 100, 64 << 10
	own, peer := receiverHello(), senderHello()
	own.Chunk, own.Depth, peer.Chunk, peer.Depth = MaxChunk, MaxDepth, MaxChunk, MaxDepth
	peer.Version, peer.Size = 1, MaxSize
	msg := AppendHello(nil, peer)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		n := newNative(t, DPU, own)
		n.Start()
		mustReceive(t, n, msg)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > rounds*perRound {
		t.Errorf("%d plans of 2^46 bytes allocated %d bytes", rounds, allocated)
	}
}
