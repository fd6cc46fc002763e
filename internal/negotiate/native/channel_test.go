package native

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

const windowSize = 32 // bytes of a WINDOW without the descriptor

// No message is longer than the channel's limit; one that cannot be shortened is refused.
func TestNativeMessagesFitTheChannel(t *testing.T) {
	k := newPair(t, wire.Host, senderHello(), receiverHello())
	_, err := k.sender.Window(4096, make([]byte, 4080-windowSize+1))
	wantNative(t, err, wire.ErrTooLarge)
	if msg := wiretest.Must(t)(k.sender.Window(4096, make([]byte, 4080-windowSize))); len(msg) != 4080 {
		t.Errorf("window of %d bytes", len(msg))
	}
	for _, maxMessage := range []int{-1, 0, 7, 8, 15, 16, 39, 40, 4080} {
		for name, length := range map[string]int{
			"ANSWERS":  len(AppendAnswers(nil, make([]Answer, MaxAnswers(maxMessage)))),
			"CHUNKS":   len(AppendChunks(nil, make([]Record, MaxRecords(maxMessage)))),
			"ACKS":     len(AppendAcks(nil, make([]Ack, MaxAcks(maxMessage)))),
			"RESULTS":  len(AppendResults(nil, make([]uint32, MaxResults(maxMessage)))),
			"METADATA": MaxMetadataPart(maxMessage) + metadataSize,
		} {
			if length > maxMessage && length > metadataSize {
				t.Errorf("%s of %d bytes on a channel of %d", name, length, maxMessage)
			}
		}
		for _, d := range wire.Digests() {
			files := make([]PackedFile, MaxPacked(maxMessage, d))
			if length := len(AppendPack(nil, Pack{Files: files}, d)); length > max(maxMessage, packSize) {
				t.Errorf("PACK of %d bytes with %s on a channel of %d", length, d, maxMessage)
			}
		}
	}
	got := [...]int{MaxAnswers(4080), MaxRecords(4080), MaxAcks(4080), MaxResults(4080),
		MaxPacked(4080, wire.DigestCRC32C), MaxPacked(4080, wire.DigestBLAKE3), MaxMetadataPart(4080)}
	if want := [...]int{254, 127, 509, 509, 145, 72, 4060}; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestListsAndFragmentsFitTheChannel(t *testing.T) {
	k := newPair(t, wire.Host, senderHello(), receiverHello())
	k.open()
	part := Metadata{9999, 0, make([]byte, 4080-metadataSize+1)}
	for name, call := range map[string]func() ([]byte, error){
		"128 records": func() ([]byte, error) { return k.sender.Chunks(nil, make([]Record, 128)) },
		"146 files":   func() ([]byte, error) { return k.sender.Pack(nil, packOf(make([]PackedFile, 146)...)) },
		"a fragment":  func() ([]byte, error) { return k.sender.Metadata(nil, 0, part) },
		"255 answers": func() ([]byte, error) { return k.receiver.Answers(nil, make([]Answer, 255)) },
		"510 acks":    func() ([]byte, error) { return k.receiver.Acks(nil, make([]Ack, 510)) },
		"510 results": func() ([]byte, error) { return k.receiver.Results(nil, make([]uint32, 510)) },
	} {
		_, err := call()
		wiretest.WantCheck(t, name, err, wire.ErrTooLarge)
	}
	_, err := k.receiver.Receive(make([]byte, 4081))
	wantNative(t, err, wire.ErrMalformed)
}

func TestAbortFitsTheChannel(t *testing.T) {
	for _, maxMessage := range []int{MaxHello, 4080} {
		n, err := New(wire.Host, 2, receiverHello(), wire.Limits{MaxMessage: maxMessage})
		if err != nil {
			t.Fatal(err)
		}
		if notice := n.Abort(wire.AbortFailure, "x"+strings.Repeat("é", 1000)); len(notice) > maxMessage ||
			!utf8.Valid(notice[12:]) || bytes.ContainsRune(notice, '?') {
			t.Errorf("an ABORT of %d bytes on a channel of %d", len(notice), maxMessage)
		}
	}
	_, err := New(wire.Host, 2, receiverHello(), wire.Limits{MaxMessage: MaxHello - 1})
	wantNative(t, err, wire.ErrTooLarge)
}

// A peer's text is shown only as plain text on one line.
func TestPeerTextIsEscaped(t *testing.T) {
	everything := make([]byte, 256)
	for i := range everything {
		everything[i] = byte(i)
	}
	for _, text := range []string{string(everything), "\x1b[2J", "a\u0085b\u202ec", "é\u009b31m", "\r\n"} {
		n := newNative(t, wire.Host, senderHello())
		n.Start()
		head := []byte{0x13, 0, 0, 0, 5, 0, 0, 0, byte(len(text) >> 8), byte(len(text)), 0, 0}
		_, err := n.Receive(append(head, text...))
		var aborted *PeerAborted
		if !errors.As(err, &aborted) || aborted.Text != text || aborted.Code != wire.AbortTarget {
			t.Fatalf("got %v", err)
		}
		for _, octet := range []byte(err.Error()) {
			if octet < ' ' || octet > '~' {
				t.Errorf("byte %#x in %q", octet, err.Error())
			}
		}
	}
}

// The names of entries are in no error, and the ABORT after a protocol error says which error it was.
func TestProtocolErrorsAreSentAsTheyAre(t *testing.T) {
	k := newPair(t, wire.DPU, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	step, err := k.receiver.Receive(encodeEntries([]wire.Entry{fileAt(1, "a/\x1b", 1)}))
	wantNative(t, err, wire.ErrMalformed)
	_, err = k.sender.Receive(step.Reply)
	want := `negotiation in state transferring at ABORT: the peer aborted with code 11: ` +
		`"negotiation in state transferring at ENTRIES: malformed message: a name of 3 bytes that no file can have"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A session does not depend on a message after Receive.
func TestStepsShareNoMemoryWithMessages(t *testing.T) {
	root := rootFile()
	root.Flags |= wire.EntryHasMetadata
	k := newPair(t, wire.Host, senderHello(), receiverHello())
	k.open()
	needRoot(root, 0)(k)
	step := k.say(k.sender, PeerMetadata)(k.sender.Metadata(nil, 0, Metadata{3, 0, []byte("abc")}))
	if !bytes.Equal(step.Metadata.Part, []byte("abc")) {
		t.Errorf("%+v", step.Metadata)
	}
	step = k.say(k.sender, PeerEnded)(k.sender.End(nil, 0, nativeSize, nativeDigest))
	if step.Size != nativeSize || !bytes.Equal(step.Digest, nativeDigest) {
		t.Errorf("%d, % x", step.Size, step.Digest)
	}
}

// Messages of a running transfer allocate nothing, on either side and in either direction.
func TestNativeHotPathAllocatesNothing(t *testing.T) {
	const files = 50
	from, to := treeHello(), receiverHello()
	from.Depth, to.Depth, from.Chunk, to.Chunk = 64, 64, 1<<16, 1<<16
	k := newPair(t, wire.Host, from, to)
	k.open()
	k.announce(rootDirectory(), entryAt(1, wire.EntryDirectory, "a"))
	k.commit(0, 1)
	h := &hotPath{pair: k, buffer: make([]byte, 0, nativeLimits.MaxMessage), names: make([][2]byte, files)}
	h.entries, h.answers = make([]wire.Entry, files), make([]Answer, files)
	h.packed, h.results = make([]PackedFile, files), make([]uint32, files)
	for slot := range uint16(64) {
		h.records, h.acks = append(h.records, data(0, slot, 0, 1)), append(h.acks, Ack{Slot: uint32(slot)})
	}
	h.next = 2
	if allocations := testing.AllocsPerRun(100, h.round); allocations != 0 {
		t.Errorf("%v allocations per round", allocations)
	}
}

type hotPath struct {
	*pair
	buffer  []byte
	names   [][2]byte
	next    uint32 // number of the next entry
	rounds  byte
	entries []wire.Entry
	answers []Answer
	packed  []PackedFile
	results []uint32
	records []Record
	acks    []Ack
}

// round transfers a file of 64 records, and packs the others.
func (h *hotPath) round() {
	h.rounds++
	for i := range h.entries {
		h.names[i] = [2]byte{'@' + h.rounds, '0' + byte(i)}
		h.entries[i] = wire.Entry{Kind: wire.EntryFile, Depth: 2, Mode: 0o644, Size: 1, Name: h.names[i][:]}
		h.answers[i] = Answer{Entry: h.next + uint32(i), Kind: AnswerNeed}
		h.packed[i] = PackedFile{Entry: h.next + uint32(i), Position: uint32(i), Length: 1}
		h.results[i] = h.next + uint32(i)
	}
	h.entries[0].Flags, h.entries[0].Size = wire.EntryChunked, uint64(len(h.records))
	for i := range h.records {
		h.records[i].Entry = h.next
	}
	first := h.next
	h.next += uint32(len(h.entries))
	msg, _, err := h.sender.Entries(h.buffer, h.entries)
	h.deliver(h.receiver, msg, err)
	msg, err = h.receiver.Answers(h.buffer, h.answers)
	h.deliver(h.sender, msg, err)
	msg, err = h.sender.Pack(h.buffer, Pack{Files: h.packed[1:]})
	h.deliver(h.receiver, msg, err)
	msg, err = h.receiver.Acks(h.buffer, h.acks[:1])
	h.deliver(h.sender, msg, err)
	msg, err = h.sender.Chunks(h.buffer, h.records)
	h.deliver(h.receiver, msg, err)
	msg, err = h.receiver.Acks(h.buffer, h.acks)
	h.deliver(h.sender, msg, err)
	msg, err = h.sender.End(h.buffer, first, uint64(len(h.records)), nativeDigest)
	h.deliver(h.receiver, msg, err)
	msg, err = h.receiver.Results(h.buffer, h.results)
	h.deliver(h.sender, msg, err)
	msg, err = h.sender.Beat(h.buffer, Beat{1, uint64(h.next)})
	h.deliver(h.receiver, msg, err)
}

func (h *hotPath) deliver(to *Session, msg []byte, err error) {
	if err == nil {
		_, err = to.Receive(msg)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
