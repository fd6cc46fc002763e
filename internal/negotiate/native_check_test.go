package negotiate

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// openPair returns a pair with a window of four slots and the given resumed prefix.
func openPair(t *testing.T, from Hello, resume uint64) *pair {
	t.Helper()
	to := receiverHello()
	from.Depth, to.Depth = 4, 4
	k := newPair(t, DPU, from, to)
	k.open(resume)
	return k
}

// Sender and receiver check a record by the same rules. A record that the sender refuses is not sent.
func TestRecordsAtTheirBoundaries(t *testing.T) {
	stream := receiverHello()
	stream.Flags = FlagStream
	good := data(0, 0, 4096)
	for name, test := range map[string]struct {
		from   Hello
		record func(*Record)
		want   error
	}{
		"as it is":              {senderHello(), func(*Record) {}, nil},
		"last slot":             {senderHello(), func(r *Record) { r.Slot = 3 }, nil},
		"no such slot":          {senderHello(), func(r *Record) { r.Slot = 4 }, ErrMalformed},
		"last number of a slot": {senderHello(), func(r *Record) { r.Slot = math.MaxUint32 }, ErrMalformed},
		"last attempt":          {senderHello(), func(r *Record) { r.Attempt = 3 }, nil},
		"attempt too many":      {senderHello(), func(r *Record) { r.Attempt = 4 }, ErrMalformed},
		"no bytes":              {senderHello(), func(r *Record) { r.Length = 0 }, ErrMalformed},
		"more than a chunk":     {senderHello(), func(r *Record) { r.Length = 4097 }, ErrMalformed},
		"up to the end":         {senderHello(), func(r *Record) { r.Offset = nativeSize - 4096 }, nil},
		"beyond the end":        {senderHello(), func(r *Record) { r.Offset = nativeSize - 4095 }, ErrMalformed},
		"wraps":                 {senderHello(), func(r *Record) { r.Offset = math.MaxUint64 - 4094 }, ErrMalformed},
		"wraps to the start":    {senderHello(), func(r *Record) { r.Offset = math.MaxUint64 - 4095 }, ErrMalformed},
		"largest length":        {senderHello(), func(r *Record) { r.Length = math.MaxUint64 }, ErrMalformed},
		"largest check":         {senderHello(), func(r *Record) { r.Check = math.MaxUint32 }, nil},
		"check too large":       {senderHello(), func(r *Record) { r.Check = 1 << 32 }, ErrMalformed},
		"no kind":               {senderHello(), func(r *Record) { r.Kind = 0 }, ErrMalformed},
		"unknown kind":          {senderHello(), func(r *Record) { r.Kind = 4 }, ErrMalformed},
		"hole of the whole file": {senderHello(), func(r *Record) {
			*r = Record{Kind: HoleRecord, Length: nativeSize}
		}, nil},
		"hole beyond the file": {senderHello(), func(r *Record) {
			*r = Record{Kind: HoleRecord, Length: nativeSize + 1}
		}, ErrMalformed},
		"hole of nothing":     {senderHello(), func(r *Record) { *r = Record{Kind: HoleRecord} }, ErrMalformed},
		"hole with a check":   {senderHello(), func(r *Record) { r.Kind = HoleRecord }, ErrMalformed},
		"claim":               {senderHello(), func(r *Record) { r.Kind, r.Offset = ClaimRecord, 904 }, nil},
		"claim beyond resume": {senderHello(), func(r *Record) { r.Kind, r.Offset = ClaimRecord, 905 }, ErrMalformed},
		"stream, far away":    {stream, func(r *Record) { r.Offset = MaxSize - 4096 }, nil},
		"stream, too far":     {stream, func(r *Record) { r.Offset = MaxSize - 4095 }, ErrMalformed},
		"stream, claim":       {stream, func(r *Record) { r.Kind = ClaimRecord }, ErrMalformed},
	} {
		resume := uint64(5000)
		if test.from.Flags.Has(FlagStream) {
			resume = 0
		}
		k := openPair(t, test.from, resume)
		record := good
		test.record(&record)
		msg, err := k.sender.Chunks([]byte("before"), []Record{record})
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || err != nil && string(msg) != "before" {
			t.Errorf("%s: sent % x, %v; want %v", name, msg, err, test.want)
		}
		if err != nil && k.sender.Outstanding() != 0 {
			t.Errorf("%s: refused, yet a slot is outstanding", name)
		}
		step, err := k.receiver.Receive(AppendChunks(nil, []Record{record}))
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: received %+v, %v; want %v", name, step, err, test.want)
		}
	}
}

// The sending side accepts a list completely or not at all.
func TestRefusedListsChangeNothing(t *testing.T) {
	k := openPair(t, senderHello(), 0)
	for _, records := range [][]Record{
		nil,
		{data(0, 0, 1), data(1, 1, 1), data(0, 2, 1)},
		{data(2, 0, 4096), data(3, 4096, 4096), data(0, 0, 4096)},
		{data(3, 0, 1), data(4, 0, 1)},
		make([]Record, 128),
	} {
		if msg, err := k.sender.Chunks(nil, records); err == nil || msg != nil || k.sender.Outstanding() != 0 {
			t.Errorf("%+v: % x, %v, %d outstanding", records, msg, err, k.sender.Outstanding())
		}
	}
	k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{
		data(0, 0, 4096), data(3, 4096, 4096), data(1, 8192, 1808),
	}))
	for _, acks := range [][]Ack{
		nil, {{0, false}, {0, false}}, {{3, true}, {2, false}}, {{0, false}, {4, false}}, make([]Ack, 510),
	} {
		if msg, err := k.receiver.Acks(nil, acks); err == nil || msg != nil || k.receiver.Outstanding() != 3 {
			t.Errorf("%+v: % x, %v, %d outstanding", acks, msg, err, k.receiver.Outstanding())
		}
	}
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, good(3, 0, 1)))
	k.finish(nativeSize)
}

// All records together never cover more than the file, and at the end they cover all of it.
func TestRecordsCoverTheFileOnce(t *testing.T) {
	k := openPair(t, senderHello(), 0)
	hole := Record{Kind: HoleRecord, Length: nativeSize}
	k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{hole}))
	for _, n := range []*NativeSession{k.sender} {
		if _, err := n.Chunks(nil, []Record{data(1, 0, 1)}); !errors.Is(err, ErrMalformed) {
			t.Errorf("one byte more: %v", err)
		}
	}
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{0, true}}))
	for _, size := range []uint64{0, nativeSize - 1, nativeSize, nativeSize + 1} {
		if _, err := k.sender.End(size, nativeDigest); !errors.Is(err, ErrMalformed) {
			t.Errorf("ended %d bytes of a hole that did not go well: %v", size, err)
		}
	}
	k.settle([]Record{hole}, good(0))
	k.finish(nativeSize)
}

func TestEndIsCheckedOnBothSides(t *testing.T) {
	for name, total := range map[string]Total{
		"size":      {DigestCRC32C, 1, nativeDigest},
		"algorithm": {DigestNone, nativeSize, nil},
		"length":    {DigestCRC32C, nativeSize, nativeDigest[:3]},
	} {
		k := openPair(t, senderHello(), 0)
		k.settle([]Record{{Kind: HoleRecord, Length: nativeSize}}, good(0))
		if _, err := k.receiver.Receive(AppendEnd(nil, total)); !errors.Is(err, ErrMalformed) {
			t.Errorf("END with another %s: %v", name, err)
		}
		if _, err := k.sender.End(total.Size, total.Digest); name != "algorithm" && !errors.Is(err, ErrMalformed) {
			t.Errorf("End with another %s: %v", name, err)
		}
		must(t)(k.sender.End(nativeSize, nativeDigest))
		if _, err := k.sender.Receive(AppendPrepared(nil, total)); !errors.Is(err, ErrMalformed) {
			t.Errorf("PREPARED with another %s: %v", name, err)
		}
	}
}

func TestResumeAtItsBoundaries(t *testing.T) {
	plain, none, stream := senderHello(), senderHello(), receiverHello()
	none.Digest = DigestNone
	stream.Flags = FlagStream
	for _, test := range []struct {
		name   string
		from   Hello
		digest Digest
		flags  Flags
		resume uint64
		want   error
	}{
		{"all", plain, DigestCRC32C, 0, nativeSize, nil},
		{"more", plain, DigestCRC32C, 0, nativeSize + 1, ErrMalformed},
		{"most", plain, DigestCRC32C, 0, math.MaxUint64, ErrMalformed},
		{"nothing without a digest", none, DigestNone, 0, 0, nil},
		{"something without a digest", none, DigestNone, 0, 1, ErrMalformed},
		{"from a stream", stream, DigestCRC32C, 0, 1, ErrMalformed},
		{"to a stream", plain, DigestCRC32C, FlagStream, 1, ErrMalformed},
	} {
		to := receiverHello()
		to.Digest, to.Flags = test.digest, test.flags
		k := newPair(t, DPU, test.from, to)
		if _, err := k.receiver.Ready(test.resume); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: called, %v", test.name, err)
		}
		_, err := k.sender.Receive(AppendReady(nil, test.resume))
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: received, %v", test.name, err)
		}
	}
}

func TestNeitherPhasesNorWorkGoBack(t *testing.T) {
	k := newPair(t, Host, senderHello(), receiverHello())
	for _, b := range []Beat{{1, 5}, {1, 5}, {1, 6}, {2, 0}, {7, 0}, {7, math.MaxUint64 - 1}} {
		if got := k.say(k.sender, PeerBeat)(k.sender.Beat(nil, b)).Beat; got != b {
			t.Errorf("got %+v, want %+v", got, b)
		}
	}
	for name, b := range map[string]Beat{
		"less work": {7, 7}, "an earlier phase": {6, math.MaxUint64}, "a phase that there cannot be": {MaxPhase + 1, 0},
	} {
		if _, err := k.sender.Beat(nil, b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s, called: %v", name, err)
		}
		peer := *k.receiver
		if _, err := peer.Receive(AppendBeat(nil, b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s, received: %v", name, err)
		}
	}
}

func TestMetadataComesInOrder(t *testing.T) {
	for name, last := range map[string]Metadata{
		"gap":         {10, 6, []byte("7890")},
		"overlap":     {10, 4, []byte("567890")},
		"again":       {10, 0, []byte("12345")},
		"other total": {11, 5, []byte("67890")},
	} {
		k := openPair(t, senderHello(), 0)
		part := k.say(k.sender, PeerMetadata)(k.sender.Metadata(Metadata{10, 0, []byte("12345")})).Metadata
		if part.Total != 10 || part.Offset != 0 || string(part.Part) != "12345" {
			t.Fatalf("got %+v", part)
		}
		if _, err := k.sender.End(nativeSize, nativeDigest); !errors.Is(err, ErrOutOfOrder) {
			t.Errorf("ended in the middle of the attributes: %v", err)
		}
		if _, err := k.sender.Metadata(last); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: called, %v", name, err)
		}
		if _, err := k.receiver.Receive(AppendMetadata(nil, last)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: received, %v", name, err)
		}
		must(t)(k.sender.Metadata(Metadata{10, 5, []byte("67890")}))
		if _, err := k.sender.Metadata(Metadata{10, 10, []byte("1")}); !errors.Is(err, ErrMalformed) {
			t.Errorf("more than there is: %v", err)
		}
	}
}

func TestMetadataHasToBeAgreedOn(t *testing.T) {
	from := senderHello()
	from.Flags &^= FlagXAttr
	k := openPair(t, from, 0)
	part := Metadata{1, 0, []byte("1")}
	if _, err := k.sender.Metadata(part); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("called: %v", err)
	}
	if _, err := k.receiver.Receive(AppendMetadata(nil, part)); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("received: %v", err)
	}
}

// No message is longer than the channel's limit; one that cannot be shortened is refused.
func TestNativeMessagesFitTheChannel(t *testing.T) {
	k := newPair(t, Host, senderHello(), receiverHello())
	if _, err := k.sender.Window(4096, make([]byte, 4080-windowSize+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("window: %v", err)
	}
	if msg := must(t)(k.sender.Window(4096, make([]byte, 4080-windowSize))); len(msg) != 4080 {
		t.Errorf("window of %d bytes", len(msg))
	}
	for _, maxMessage := range []int{-1, 0, 7, 8, 39, 40, 4080} {
		if n := MaxRecords(maxMessage); n > 0 && len(AppendChunks(nil, make([]Record, n))) > maxMessage {
			t.Errorf("%d records in %d bytes", n, maxMessage)
		}
		if n := MaxAcks(maxMessage); n > 0 && len(AppendAcks(nil, make([]Ack, n))) > maxMessage {
			t.Errorf("%d acknowledgements in %d bytes", n, maxMessage)
		}
		if n := MaxMetadataPart(maxMessage); n > 0 && n+metadataSize > maxMessage {
			t.Errorf("%d bytes of attributes in %d bytes", n, maxMessage)
		}
	}
	if MaxRecords(4080) != 127 || MaxAcks(4080) != 509 {
		t.Errorf("%d records, %d acknowledgements", MaxRecords(4080), MaxAcks(4080))
	}
	for _, maxMessage := range []int{MaxHello, 4080} {
		n, err := NewNative(Host, 1, receiverHello(), Limits{MaxMessage: maxMessage})
		if err != nil {
			t.Fatal(err)
		}
		if notice := n.Abort(AbortFailure, "x"+strings.Repeat("é", 1000)); len(notice) > maxMessage ||
			!utf8.Valid(notice[12:]) || bytes.ContainsRune(notice, '?') {
			t.Errorf("an ABORT of %d bytes on a channel of %d", len(notice), maxMessage)
		}
	}
	if _, err := NewNative(Host, 1, receiverHello(), Limits{MaxMessage: MaxHello - 1}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a channel that is too narrow: %v", err)
	}
}

func TestListsAndFragmentsFitTheChannel(t *testing.T) {
	k := openPair(t, senderHello(), 0)
	if _, err := k.sender.Chunks(nil, make([]Record, 128)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("128 records: %v", err)
	}
	if _, err := k.receiver.Acks(nil, make([]Ack, 510)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("510 acknowledgements: %v", err)
	}
	if _, err := k.sender.Metadata(Metadata{MaxMetadata, 0, make([]byte, 4065)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a fragment of 4065 bytes: %v", err)
	}
	must(t)(k.sender.Metadata(Metadata{MaxMetadata, 0, make([]byte, 4064)}))
}

func TestDoneKnowsItsDurability(t *testing.T) {
	n := reachNative(t, nativeRole{DPU, false}, "committing")
	for _, d := range []Durability{3, DurabilityNone, DurabilityFile} {
		if _, err := n.Done(d); !errors.Is(err, ErrMalformed) || n.State() != Committing {
			t.Errorf("%s, called in %s: %v", d, n.State(), err)
		}
	}
	must(t)(n.Done(DurabilityFull))
}

// A sender refuses the DONE of a receiver that did less than planned.
func TestDoneIsWhatWasPlanned(t *testing.T) {
	for _, d := range []Durability{DurabilityNone, DurabilityFile} {
		n := reachNative(t, nativeRole{Host, true}, "await-done")
		if _, err := n.Receive(AppendDone(nil, d)); !errors.Is(err, ErrMalformed) || n.State() != Failed {
			t.Errorf("%s, received in %s: %v", d, n.State(), err)
		}
	}
}

// NewNative finds wrong values in this side's own HELLO.
func TestNewNativeRefusesWhatAPeerWould(t *testing.T) {
	for name, spoil := range map[string]func(*Hello){
		"chunk": func(h *Hello) { h.Chunk = 0 },
		"size":  func(h *Hello) { h.Size = MaxSize + 1 },
		"name":  func(h *Hello) { h.Software = strings.Repeat("x", 65) },
		"mode":  func(h *Hello) { h.Mode = 0o100644 },
		"uid":   func(h *Hello) { h.UID = math.MaxUint32 },
	} {
		own := senderHello()
		spoil(&own)
		if n, err := NewNative(Host, 1, own, nativeLimits); n != nil || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		s := NewSession(Host, Local{HasFile: true, Native: &own}, nativeLimits)
		s.Start()
		step, err := s.Receive(Direction{Offer: [3]byte{offerMark, 1, 1}}.Encode())
		if !errors.Is(err, ErrMalformed) || s.State() != Failed {
			t.Errorf("%s: %+v, %v", name, step, err)
		}
		wantBytes(t, step.Reply, Status{}.Encode())
	}
	if _, err := NewNative(Host, 0, senderHello(), nativeLimits); !errors.Is(err, ErrMalformed) {
		t.Errorf("version 0: %v", err)
	}
}

// chown(2) with the largest number does not change the owner, so it is not a valid uid or gid.
func TestOwnersThatAreNone(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*Hello)
		want  error
	}{
		"largest uid": {func(h *Hello) { h.UID = math.MaxUint32 - 1 }, nil},
		"no uid":      {func(h *Hello) { h.UID = math.MaxUint32 }, ErrMalformed},
		"largest gid": {func(h *Hello) { h.GID = math.MaxUint32 - 1 }, nil},
		"no gid":      {func(h *Hello) { h.GID = math.MaxUint32 }, ErrMalformed},
	} {
		n, from := reachNative(t, nativeRole{DPU, false}, "await-hello"), senderHello()
		from.Version = 1
		test.spoil(&from)
		if _, err := n.Receive(AppendHello(nil, from)); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A peer's text is shown only as plain text on one line.
func TestPeerTextIsEscaped(t *testing.T) {
	everything := make([]byte, 256)
	for i := range everything {
		everything[i] = byte(i)
	}
	for _, text := range []string{string(everything), "\x1b[2J", "a\u0085b\u202ec", "é\u009b31m", "\r\n"} {
		n := newNative(t, Host, senderHello())
		n.Start()
		head := []byte{0x11, 0, 0, 0, 5, 0, 0, 0, byte(len(text) >> 8), byte(len(text)), 0, 0}
		_, err := n.Receive(append(head, text...))
		var aborted *PeerAborted
		if !errors.As(err, &aborted) || aborted.Text != text || aborted.Code != AbortTarget {
			t.Fatalf("got %v", err)
		}
		for _, octet := range []byte(err.Error()) {
			if octet < ' ' || octet > '~' {
				t.Errorf("byte %#x in %q", octet, err.Error())
			}
		}
	}
}

// The ABORT after a protocol error says which error it was.
func TestProtocolErrorsAreSentAsTheyAre(t *testing.T) {
	k := openPair(t, senderHello(), 0)
	step, err := k.receiver.Receive(AppendChunks(nil, []Record{data(9, 0, 1)}))
	if err == nil {
		t.Fatal("a slot too far was accepted")
	}
	_, err = k.sender.Receive(step.Reply)
	want := `negotiation in state sending at ABORT: the peer aborted with code 11: ` +
		`"negotiation in state receiving at CHUNKS: malformed message: slot 9 of 4"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestOutcomeIsUnknownOnlyAfterCommit(t *testing.T) {
	for name, end := range map[string]func(*NativeSession) error{
		"lost":     func(n *NativeSession) error { return n.Disconnected() },
		"given up": func(n *NativeSession) error { n.Abort(AbortInterrupted, ""); return n.Disconnected() },
	} {
		k := openPair(t, senderHello(), 0)
		k.settle([]Record{{Kind: HoleRecord, Length: nativeSize}}, good(0))
		k.say(k.sender, PeerEnded)(k.sender.End(nativeSize, nativeDigest))
		k.say(k.receiver, PeerPrepared)(k.receiver.Prepared(nativeDigest))
		must(t)(k.sender.Commit())
		if err := end(k.sender); !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A session does not depend on a message after Receive.
func TestStepsShareNoMemoryWithMessages(t *testing.T) {
	k := openPair(t, senderHello(), 0)
	msg := must(t)(k.sender.Metadata(Metadata{3, 0, []byte("abc")}))
	step, err := k.receiver.Receive(msg)
	clear(msg)
	if err != nil || !bytes.Equal(step.Metadata.Part, []byte("abc")) {
		t.Errorf("%+v, %v", step.Metadata, err)
	}
}
