package negotiate

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// nativeCheck is one message in one situation. Both sides check it by the same rules: the call that sends it is refused
// for the same reason as its arrival.
type nativeCheck struct {
	name    string
	before  func(*pair)
	message any
	want    error
}

// checkSetup has the HELLOs of a list of checks, and what both sides do before each of them.
type checkSetup struct {
	from, to Hello
	before   func(*pair)
}

func (s checkSetup) pair(t *testing.T, c nativeCheck) *pair {
	k := newPair(t, DPU, s.from, s.to)
	k.open()
	for _, before := range []func(*pair){s.before, c.before} {
		if before != nil {
			before(k)
		}
	}
	return k
}

func (s checkSetup) run(t *testing.T, bySender bool, checks []nativeCheck) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			k := s.pair(t, c)
			author := k.receiver
			if bySender {
				author = k.sender
			}
			undecided, outstanding, counts := author.Undecided(), author.Outstanding(), author.Counts()
			_, err := call(author, c.message)
			wantCheck(t, "called", err, c.want)
			if err != nil &&
				(author.Undecided() != undecided || author.Outstanding() != outstanding || author.Counts() != counts) {
				t.Errorf("refused, and yet it changed something: %+v", author)
			}
			k = s.pair(t, c)
			peer := k.sender
			if bySender {
				peer = k.receiver
			}
			step, err := peer.Receive(encodeNative(c.message, k.sender.Plan().Digest))
			wantCheck(t, "received", err, c.want)
			if err != nil && (step.Event != None || peer.State() != Failed) {
				t.Errorf("failed with %s in %s", step.Event, peer.State())
			}
		})
	}
}

func wantCheck(t *testing.T, how string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("%s: %v, want %v", how, err, want)
	}
}

// fourSlots returns a HELLO with a window of four slots.
func fourSlots(h Hello) Hello {
	h.Depth = 4
	return h
}

func streamHello() Hello {
	h := fourSlots(receiverHello())
	h.Flags |= FlagStream
	return h
}

func rootStream() Entry {
	e := rootFile()
	e.Flags, e.Size = EntrySizeUnknown|EntryChunked, 0
	return e
}

// needRoot announces the only entry, and asks for it from an offset.
func needRoot(e Entry, offset uint64) func(*pair) {
	return func(k *pair) {
		k.announce(e)
		k.answer(Answer{Kind: AnswerNeed, Offset: offset})
	}
}

func chunkOf(change func(*Record)) []Record {
	r := data(0, 0, 0, 4096)
	change(&r)
	return []Record{r}
}

func TestRecordsAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{fourSlots(senderHello()), fourSlots(receiverHello()), needRoot(rootFile(), 5000)}
	setup.run(t, true, []nativeCheck{
		{"as it is", nil, chunkOf(func(*Record) {}), nil},
		{"last slot", nil, chunkOf(func(r *Record) { r.Slot = 3 }), nil},
		{"no such slot", nil, chunkOf(func(r *Record) { r.Slot = 4 }), ErrMalformed},
		{"last number of a slot", nil, chunkOf(func(r *Record) { r.Slot = math.MaxUint16 }), ErrMalformed},
		{"no such entry", nil, chunkOf(func(r *Record) { r.Entry = 1 }), ErrOutOfOrder},
		{"last number of an entry", nil, chunkOf(func(r *Record) { r.Entry = math.MaxUint32 }), ErrOutOfOrder},
		{"entry in the same place", nil, chunkOf(func(r *Record) { r.Entry = MaxOpen }), ErrOutOfOrder},
		{"last attempt", nil, chunkOf(func(r *Record) { r.Attempt = 3 }), nil},
		{"attempt too many", nil, chunkOf(func(r *Record) { r.Attempt = 4 }), ErrMalformed},
		{"no bytes", nil, chunkOf(func(r *Record) { r.Length = 0 }), ErrMalformed},
		{"more than a chunk", nil, chunkOf(func(r *Record) { r.Length = 4097 }), ErrMalformed},
		{"up to the end", nil, chunkOf(func(r *Record) { r.Offset = nativeSize - 4096 }), nil},
		{"beyond the end", nil, chunkOf(func(r *Record) { r.Offset = nativeSize - 4095 }), ErrMalformed},
		{"wraps", nil, chunkOf(func(r *Record) { r.Offset = math.MaxUint64 - 4094 }), ErrMalformed},
		{"wraps to the start", nil, chunkOf(func(r *Record) { r.Offset = math.MaxUint64 - 4095 }), ErrMalformed},
		{"largest length", nil, chunkOf(func(r *Record) { r.Length = math.MaxUint64 }), ErrMalformed},
		{"largest check", nil, chunkOf(func(r *Record) { r.Check = math.MaxUint32 }), nil},
		{"check too large", nil, chunkOf(func(r *Record) { r.Check = 1 << 32 }), ErrMalformed},
		{"no kind", nil, chunkOf(func(r *Record) { r.Kind = 0 }), ErrMalformed},
		{"unknown kind", nil, chunkOf(func(r *Record) { r.Kind = 4 }), ErrMalformed},
		{"hole of the whole file", nil, []Record{{Kind: HoleRecord, Length: nativeSize}}, nil},
		{"hole beyond the file", nil, []Record{{Kind: HoleRecord, Length: nativeSize + 1}}, ErrMalformed},
		{"hole of nothing", nil, []Record{{Kind: HoleRecord}}, ErrMalformed},
		{"hole with a check", nil, chunkOf(func(r *Record) { r.Kind = HoleRecord }), ErrMalformed},
		{"claim", nil, chunkOf(func(r *Record) { r.Kind, r.Offset = ClaimRecord, 904 }), nil},
		{"claim beyond it", nil, chunkOf(func(r *Record) { r.Kind, r.Offset = ClaimRecord, 905 }), ErrMalformed},
		{"no records", nil, []Record(nil), ErrMalformed},
		{"slot twice", nil, []Record{data(0, 0, 0, 1), data(0, 1, 1, 1), data(0, 0, 2, 1)}, ErrOutOfOrder},
		{"slot in flight", func(k *pair) {
			k.say(k.sender, Announced)(k.sender.Chunks(nil, chunkOf(func(r *Record) { r.Slot = 3 })))
		}, []Record{data(0, 2, 4096, 1), data(0, 3, 4097, 1)}, ErrOutOfOrder},
		{"file twice", nil, []Record{{Kind: HoleRecord, Length: nativeSize}, data(0, 1, 0, 1)}, ErrMalformed},
		{"after the end", func(k *pair) { k.end(0, nativeSize) }, chunkOf(func(*Record) {}), nil},
		{"after all of it", func(k *pair) {
			k.settle([]Record{{Kind: HoleRecord, Length: nativeSize}}, Ack{})
			k.end(0, nativeSize)
		}, chunkOf(func(*Record) {}), ErrMalformed},
	})
}

func TestRecordsOfAStreamAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{streamHello(), fourSlots(receiverHello()), needRoot(rootStream(), 0)}
	setup.run(t, true, []nativeCheck{
		{"far away", nil, chunkOf(func(r *Record) { r.Offset = MaxSize - 4096 }), nil},
		{"too far", nil, chunkOf(func(r *Record) { r.Offset = MaxSize - 4095 }), ErrMalformed},
		{"claim", nil, chunkOf(func(r *Record) { r.Kind = ClaimRecord }), ErrMalformed},
		{"all of it", func(k *pair) { k.end(0, 4096) }, chunkOf(func(*Record) {}), nil},
		{"beyond its end", func(k *pair) { k.end(0, 4095) }, chunkOf(func(*Record) {}), ErrMalformed},
	})
}

// A sender claims no byte twice, whatever the receiver has found.
func TestClaimsAtTheirBoundaries(t *testing.T) {
	claim := func(offset, length uint64) Record {
		r := data(0, 1, offset, length)
		r.Kind = ClaimRecord
		return r
	}
	needed := needRoot(rootFile(), 5000)
	setup := checkSetup{fourSlots(senderHello()), fourSlots(receiverHello()), func(k *pair) {
		needed(k)
		k.settle([]Record{claim(0, 4096)}, Ack{Slot: 1, Bad: true})
	}}
	setup.run(t, true, []nativeCheck{
		{"the rest", nil, []Record{claim(4096, 904)}, nil},
		{"the rest and a byte", nil, []Record{claim(4000, 905)}, ErrMalformed},
		{"the same", nil, []Record{claim(0, 4096)}, ErrMalformed},
		{"the same as data", nil, []Record{data(0, 1, 0, 4096)}, nil},
		{"a refused list", func(k *pair) {
			_, err := k.sender.Chunks(nil, []Record{claim(4096, 904), data(0, 1, 0, 4096)})
			wantNative(k.t, err, ErrOutOfOrder)
		}, []Record{claim(4096, 904)}, nil},
	})
}

func TestRecordsNeedTheWindow(t *testing.T) {
	k := newPair(t, DPU, senderHello(), receiverHello())
	k.begin()
	needRoot(rootFile(), 0)(k)
	_, err := k.sender.Chunks(nil, chunkOf(func(*Record) {}))
	wantNative(t, err, ErrOutOfOrder)
	_, err = k.sender.Pack(nil, Pack{Files: []PackedFile{{Length: nativeSize}}})
	wantNative(t, err, ErrOutOfOrder)
	_, err = k.receiver.Receive(AppendChunks(nil, chunkOf(func(*Record) {})))
	wantNative(t, err, ErrOutOfOrder)
	k = newPair(t, DPU, senderHello(), receiverHello())
	k.begin()
	needRoot(rootFile(), 0)(k)
	_, err = k.receiver.Receive(AppendPack(nil, Pack{Files: []PackedFile{{Length: nativeSize}}}, DigestCRC32C))
	wantNative(t, err, ErrOutOfOrder)
}

func TestAcknowledgementsAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{fourSlots(senderHello()), fourSlots(receiverHello()), func(k *pair) {
		needRoot(rootFile(), 0)(k)
		k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(0, 0, 0, 10), data(0, 3, 10, 10)}))
	}}
	setup.run(t, false, []nativeCheck{
		{"both", nil, []Ack{{Slot: 3}, {Slot: 0, Bad: true}}, nil},
		{"none", nil, []Ack(nil), ErrMalformed},
		{"twice", nil, []Ack{{Slot: 0}, {Slot: 0}}, ErrOutOfOrder},
		{"vacant", nil, []Ack{{Slot: 3}, {Slot: 2}}, ErrOutOfOrder},
		{"no such slot", nil, []Ack{{Slot: 0}, {Slot: 4}}, ErrMalformed},
		{"last number", nil, []Ack{{Slot: math.MaxUint32}}, ErrMalformed},
	})
}

func TestAnswersAtTheirBoundaries(t *testing.T) {
	one := func(kind AnswerKind, offset uint64) []Answer { return []Answer{{Kind: kind, Offset: offset}} }
	file := checkSetup{senderHello(), receiverHello(), func(k *pair) { k.announce(rootFile()) }}
	t.Run("file", func(t *testing.T) {
		file.run(t, false, []nativeCheck{
			{"need", nil, one(AnswerNeed, 0), nil},
			{"all of it to claim", nil, one(AnswerNeed, nativeSize), nil},
			{"more", nil, one(AnswerNeed, nativeSize+1), ErrMalformed},
			{"most", nil, one(AnswerNeed, math.MaxUint64), ErrMalformed},
			{"have", nil, one(AnswerHave, 0), nil},
			{"sum", nil, one(AnswerSum, 0), nil},
			{"none", nil, []Answer(nil), ErrMalformed},
			{"no kind", nil, one(0, 0), ErrMalformed},
			{"unknown kind", nil, one(4, 0), ErrMalformed},
			{"have with an offset", nil, one(AnswerHave, 1), ErrMalformed},
			{"no such entry", nil, []Answer{{Entry: 1, Kind: AnswerNeed}}, ErrOutOfOrder},
			{"twice in a message", nil, []Answer{{Kind: AnswerNeed}, {Kind: AnswerHave}}, ErrOutOfOrder},
			{"twice", func(k *pair) { k.answer(need(0)...) }, need(0), ErrOutOfOrder},
			{"decided", func(k *pair) { k.answer(one(AnswerHave, 0)...) }, need(0), ErrOutOfOrder},
			{"before the sum", func(k *pair) { k.answer(one(AnswerSum, 0)...) }, need(0), ErrOutOfOrder},
		})
	})
	tree := checkSetup{treeHello(), receiverHello(), func(k *pair) {
		link := entryAt(1, EntrySymlink, "l")
		link.Link, link.Flags = []byte("x"), EntryHasMetadata
		k.announce(rootDirectory(), link, fileAt(1, "n", 10))
	}}
	t.Run("tree", func(t *testing.T) {
		tree.run(t, false, []nativeCheck{
			{"directory needed", nil, need(0), ErrMalformed},
			{"directory summed", nil, one(AnswerSum, 0), ErrMalformed},
			{"directory had", nil, one(AnswerHave, 0), nil},
			{"part of a file for a pack", nil, []Answer{{Entry: 2, Kind: AnswerNeed, Offset: 1}}, ErrMalformed},
			{"file and directory", nil, append(need(2), one(AnswerHave, 0)...), nil},
			{"before the metadata", nil, []Answer{{Entry: 1, Kind: AnswerHave}}, ErrOutOfOrder},
			{"after the metadata", func(k *pair) {
				k.say(k.sender, PeerMetadata)(k.sender.Metadata(nil, 1, Metadata{1, 0, []byte("1")}))
			}, []Answer{{Entry: 1, Kind: AnswerHave}}, nil},
		})
	})
}

func TestAnswersThePlanForbids(t *testing.T) {
	same := receiverHello()
	same.Flags |= FlagFile
	none, dry, stream := senderHello(), senderHello(), receiverHello()
	none.Digest, dry.Flags, stream.Flags = DigestNone, dry.Flags|FlagDryRun, FlagStream
	plain, resume := receiverHello(), Answer{Kind: AnswerNeed, Offset: 1}
	plain.Digest = DigestNone
	for name, test := range map[string]struct {
		from, to Hello
		root     Entry
		answer   Answer
		want     error
	}{
		"need where nothing is written": {senderHello(), same, rootFile(), Answer{Kind: AnswerNeed}, ErrMalformed},
		"have where nothing is written": {senderHello(), same, rootFile(), Answer{Kind: AnswerHave}, nil},
		"resume without a digest":       {none, plain, rootFile(), resume, ErrMalformed},
		"resume in a dry run":           {dry, receiverHello(), rootFile(), resume, ErrMalformed},
		"resume to a stream":            {senderHello(), stream, rootFile(), resume, ErrMalformed},
		"resume from a stream":          {streamHello(), plain, rootStream(), resume, ErrMalformed},
		"have of a stream":              {streamHello(), plain, rootStream(), Answer{Kind: AnswerHave}, ErrMalformed},
		"sum of a stream":               {streamHello(), plain, rootStream(), Answer{Kind: AnswerSum}, ErrMalformed},
		"need of a stream":              {streamHello(), plain, rootStream(), Answer{Kind: AnswerNeed}, nil},
	} {
		if test.to.Flags.Has(FlagFile) { // the host is the sender then
			test.from, test.to = test.to, test.from
		}
		check := nativeCheck{name, nil, []Answer{test.answer}, test.want}
		sending := DPU
		if test.from.Flags.Has(FlagFile) && test.to.Flags.Has(FlagFile) {
			sending = Host
		}
		k := newPair(t, sending, test.from, test.to)
		k.begin()
		k.announce(test.root)
		_, err := call(k.receiver, check.message)
		wantCheck(t, name+", called", err, test.want)
		_, err = k.sender.Receive(AppendAnswers(nil, []Answer{test.answer}))
		wantCheck(t, name+", received", err, test.want)
	}
}

// In a dry run need decides the entry, so that no data can follow.
func TestDryRunSendsNothing(t *testing.T) {
	from := senderHello()
	from.Flags |= FlagDryRun
	k := newPair(t, Host, from, receiverHello())
	k.open()
	needRoot(rootFile(), 0)(k)
	_, err := k.sender.Chunks(nil, chunkOf(func(*Record) {}))
	wantNative(t, err, ErrOutOfOrder)
	_, err = k.sender.End(nil, 0, nativeSize, nativeDigest)
	wantNative(t, err, ErrOutOfOrder)
	k.finish(Counts{Committed: 1})
}

// A receiver does not accept a file above its own limit, whatever the caller says.
func TestReceiverKeepsItsOwnLimit(t *testing.T) {
	k := limitedPair(t, nativeSize)
	k.answer(need(0)...)
	k = limitedPair(t, nativeSize-1)
	_, err := k.receiver.Answers(nil, need(0))
	wantNative(t, err, ErrTooLarge)
	k.fail(k.receiver, Failure{Entry: 0, Code: AbortLimit})
	k.finish(Counts{Failed: 1})
}

// limitedPair returns a pair that has announced a file of nativeSize bytes to a receiver with that limit.
func limitedPair(t *testing.T, limit uint64) *pair {
	n, err := NewNative(Host, 2, receiverHello(), Limits{MaxMessage: 4080, MaxFileSize: limit})
	if err != nil {
		t.Fatal(err)
	}
	k := &pair{t: t, sender: newNative(t, DPU, senderHello()), receiver: n}
	k.sender.Start()
	k.pass(k.pass(n.Start(), k.sender, Planned).Reply, n, Planned)
	k.begin()
	k.announce(rootFile())
	return k
}

func packOf(files ...PackedFile) Pack { return Pack{Files: files} }

func TestPacksAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{fourSlots(treeHello()), fourSlots(receiverHello()), func(k *pair) {
		xattr := fileAt(1, "x", 5)
		xattr.Flags = EntryHasMetadata
		k.announce(rootDirectory(), fileAt(1, "a", 10), fileAt(1, "b", 0), fileAt(1, "c", 4096),
			chunkedAt(1, "d", 4097), chunkedAt(1, "e", 100), fileAt(1, "f", 10), xattr)
		k.answer(need(1, 2, 3, 4, 5, 7)...)
	}}
	a := PackedFile{Entry: 1, Length: 10, Check: math.MaxUint32}
	setup.run(t, true, []nativeCheck{
		{"one", nil, packOf(a), nil},
		{"last slot", nil, Pack{Slot: 3, Attempt: 3, Files: []PackedFile{a}}, nil},
		{"no such slot", nil, Pack{Slot: 4, Files: []PackedFile{a}}, ErrMalformed},
		{"slot in flight", func(k *pair) {
			k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(4, 0, 0, 1)}))
		}, packOf(a), ErrOutOfOrder},
		{"attempt too many", nil, Pack{Attempt: 4, Files: []PackedFile{a}}, ErrMalformed},
		{"no files", nil, packOf(), ErrMalformed},
		{"in any order of the entries", nil, packOf(PackedFile{Entry: 2}, a), nil},
		{"next to each other", nil, packOf(a, PackedFile{Entry: 2, Position: 10}), nil},
		{"overlap", nil, packOf(a, PackedFile{Entry: 2, Position: 9}), ErrMalformed},
		{"a whole slot", nil, packOf(PackedFile{Entry: 3, Length: 4096}), nil},
		{"empty at the end", nil, packOf(
			PackedFile{Entry: 3, Length: 4096}, PackedFile{Entry: 2, Position: 4096}), nil},
		{"beyond the end", nil, packOf(PackedFile{Entry: 2, Position: 4097}), ErrMalformed},
		{"past the end", nil, packOf(PackedFile{Entry: 1, Position: 4087, Length: 10}), ErrMalformed},
		{"wraps", nil, packOf(PackedFile{Entry: 1, Position: math.MaxUint32, Length: 10}), ErrMalformed},
		{"more than a slot", nil, packOf(PackedFile{Entry: 4, Length: 4097}), ErrMalformed},
		{"less than the file", nil, packOf(PackedFile{Entry: 1, Length: 9}), ErrMalformed},
		{"more than the file", nil, packOf(PackedFile{Entry: 2, Length: 1}), ErrMalformed},
		{"entry twice", nil, packOf(a, PackedFile{Entry: 1, Position: 10, Length: 10}), ErrOutOfOrder},
		{"in chunks", nil, packOf(PackedFile{Entry: 5, Length: 100}), ErrMalformed},
		{"not answered", nil, packOf(PackedFile{Entry: 6, Length: 10}), ErrOutOfOrder},
		{"directory", nil, packOf(PackedFile{Entry: 0}), ErrOutOfOrder},
		{"no such entry", nil, packOf(a, PackedFile{Entry: 8, Position: 10}), ErrOutOfOrder},
		{"without its metadata", nil, packOf(PackedFile{Entry: 7, Length: 5}), ErrOutOfOrder},
		{"a record of it", nil, []Record{data(1, 0, 0, 1)}, ErrMalformed},
		{"its end", nil, endMessage{1, 10, nativeDigest}, ErrMalformed},
		{"in flight", func(k *pair) { k.say(k.sender, Packed)(k.sender.Pack(nil, packOf(a))) },
			Pack{Slot: 1, Files: []PackedFile{a}}, ErrOutOfOrder},
		{"check too large", nil, packOf(PackedFile{Entry: 1, Length: 10, Check: 1 << 32}), ErrMalformed},
	})
}

func TestEndsAtTheirBoundaries(t *testing.T) {
	end := func(size uint64) endMessage { return endMessage{0, size, nativeDigest} }
	file := checkSetup{senderHello(), receiverHello(), needRoot(rootFile(), 0)}
	file.run(t, true, []nativeCheck{
		{"before any record", nil, end(nativeSize), nil},
		{"less", nil, end(nativeSize - 1), ErrMalformed},
		{"more", nil, end(nativeSize + 1), ErrMalformed},
		{"twice", func(k *pair) { k.end(0, nativeSize) }, end(nativeSize), ErrOutOfOrder},
		{"no such entry", nil, endMessage{1, nativeSize, nativeDigest}, ErrOutOfOrder},
		{"digest short", nil, endMessage{0, nativeSize, nativeDigest[:3]}, ErrMalformed},
		{"no digest", nil, endMessage{0, nativeSize, nil}, ErrMalformed},
		{"sum in place of it", nil, sumMessage{0, nativeDigest}, ErrOutOfOrder},
	})
	stream := checkSetup{streamHello(), receiverHello(), func(k *pair) {
		needRoot(rootStream(), 0)(k)
		k.settle([]Record{data(0, 0, 0, 4096)}, Ack{})
		k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(0, 0, 4096, 4)}))
	}}
	stream.run(t, true, []nativeCheck{
		{"stream as announced", nil, end(4100), nil},
		{"stream with more to come", nil, end(5000), nil},
		{"stream, less than announced", nil, end(4099), ErrMalformed},
		{"stream, largest", nil, end(MaxSize), nil},
		{"stream, too large", nil, end(MaxSize + 1), ErrMalformed},
	})
	asked := checkSetup{senderHello(), receiverHello(), func(k *pair) {
		k.announce(rootFile())
		k.answer(Answer{Kind: AnswerSum})
	}}
	asked.run(t, true, []nativeCheck{
		{"asked for the sum", nil, sumMessage{0, nativeDigest}, nil},
		{"end in place of it", nil, end(nativeSize), ErrOutOfOrder},
		{"sum of another entry", nil, sumMessage{1, nativeDigest}, ErrOutOfOrder},
		{"sum short", nil, sumMessage{0, nativeDigest[:3]}, ErrMalformed},
		{"sum twice", func(k *pair) { k.say(k.sender, PeerSum)(k.sender.Sum(nil, 0, nativeDigest)) },
			sumMessage{0, nativeDigest}, ErrOutOfOrder},
	})
}

// A retransmitted chunk may follow the end, and a pack that arrived damaged is needed again.
func TestRetransmissionAfterTheEnd(t *testing.T) {
	k := newPair(t, DPU, senderHello(), receiverHello())
	k.open()
	needRoot(rootFile(), 0)(k)
	k.end(0, nativeSize)
	hole := Record{Kind: HoleRecord, Length: nativeSize}
	k.settle([]Record{hole}, Ack{Bad: true})
	_, err := k.receiver.Results(nil, []uint32{0})
	wantNative(t, err, ErrOutOfOrder)
	k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, ""))
	k.settle([]Record{hole}, Ack{})
	k.commit(0)
	k.say(k.receiver, PeerFinished)(k.receiver.Finished(nil, DurabilityFull, ""))
}

func TestPackAgainAfterFinish(t *testing.T) {
	k := newPair(t, Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory(), fileAt(1, "a", 10), fileAt(1, "b", 10))
	k.commit(0)
	k.answer(need(1, 2)...)
	p := packOf(PackedFile{Entry: 1, Length: 10}, PackedFile{Entry: 2, Position: 10, Length: 10})
	k.say(k.sender, Packed)(k.sender.Pack(nil, p))
	k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, ""))
	if k.sender.Unconfirmed() != 2 || k.receiver.Unconfirmed() != 2 {
		t.Errorf("%d and %d files await their result", k.sender.Unconfirmed(), k.receiver.Unconfirmed())
	}
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{Bad: true}}))
	if k.sender.Unconfirmed() != 0 || k.receiver.Unconfirmed() != 0 {
		t.Errorf("%d and %d damaged files await their result", k.sender.Unconfirmed(), k.receiver.Unconfirmed())
	}
	k.fail(k.sender, Failure{Entry: 2, Code: AbortSourceChanged})
	p = Pack{Slot: 1, Attempt: 1, Files: p.Files[:1]}
	k.say(k.sender, Packed)(k.sender.Pack(nil, p))
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{Slot: 1}}))
	k.commit(1)
	step := k.say(k.receiver, PeerFinished)(k.receiver.Finished(nil, DurabilityFull, ""))
	if want := (Counts{Committed: 2, Failed: 1}); step.Counts != want {
		t.Errorf("got %+v, want %+v", step.Counts, want)
	}
}

func TestResultsAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{treeHello(), receiverHello(), func(k *pair) {
		link := entryAt(1, EntrySymlink, "l")
		link.Link, link.Flags = []byte("x"), EntryHasMetadata
		k.announce(rootDirectory(), chunkedAt(1, "a", 10), chunkedAt(1, "b", 0), fileAt(1, "c", 0), link)
		k.answer(need(1, 2)...)
		k.end(1, 10)
		k.settle([]Record{data(1, 0, 0, 9)}, Ack{})
		k.end(2, 0)
	}}
	setup.run(t, false, []nativeCheck{
		{"directory and empty file", nil, resultsMessage{2, 0}, nil},
		{"none", nil, resultsMessage(nil), ErrMalformed},
		{"twice in a message", nil, resultsMessage{0, 0}, ErrOutOfOrder},
		{"twice", func(k *pair) { k.commit(0) }, resultsMessage{0}, ErrOutOfOrder},
		{"incomplete", nil, resultsMessage{0, 1}, ErrOutOfOrder},
		{"one byte in flight", func(k *pair) {
			k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(1, 0, 9, 1)}))
		}, resultsMessage{1}, ErrOutOfOrder},
		{"complete", func(k *pair) { k.settle([]Record{data(1, 0, 9, 1)}, Ack{}) }, resultsMessage{1}, nil},
		{"not answered", nil, resultsMessage{3}, ErrOutOfOrder},
		{"without its metadata", nil, resultsMessage{4}, ErrOutOfOrder},
		{"no such entry", nil, resultsMessage{5}, ErrOutOfOrder},
		{"last number", nil, resultsMessage{math.MaxUint32}, ErrOutOfOrder},
	})
	both := receiverHello()
	both.Flags |= FlagTree
	k := newPair(t, Host, treeHello(), both)
	k.begin()
	k.announce(rootDirectory())
	_, err := k.receiver.Results(nil, []uint32{0})
	wantNative(t, err, ErrMalformed)
	k.answer(Answer{Kind: AnswerHave})
	k.finish(Counts{Unchanged: 1})
}

func TestMetadataComesInOrder(t *testing.T) {
	root := rootFile()
	root.Flags |= EntryHasMetadata
	part := func(total, offset uint32, text string) metadataMessage {
		return metadataMessage{0, Metadata{total, offset, []byte(text)}}
	}
	setup := checkSetup{senderHello(), receiverHello(), func(k *pair) {
		needRoot(root, 0)(k)
		got := k.say(k.sender, PeerMetadata)(k.sender.Metadata(nil, 0, part(10, 0, "12345").Metadata))
		if m := got.Metadata; got.Entry != 0 || m.Total != 10 || m.Offset != 0 || string(m.Part) != "12345" {
			t.Fatalf("got %+v", got)
		}
	}}
	setup.run(t, true, []nativeCheck{
		{"the rest", nil, part(10, 5, "67890"), nil},
		{"gap", nil, part(10, 6, "7890"), ErrMalformed},
		{"overlap", nil, part(10, 4, "567890"), ErrMalformed},
		{"again", nil, part(10, 0, "12345"), ErrMalformed},
		{"other total", nil, part(11, 5, "67890"), ErrMalformed},
		{"another entry", nil, metadataMessage{1, Metadata{10, 5, []byte("6")}}, ErrOutOfOrder},
		{"end in the middle", nil, endMessage{0, nativeSize, nativeDigest}, ErrOutOfOrder},
		{"more than there is", func(k *pair) {
			k.say(k.sender, PeerMetadata)(k.sender.Metadata(nil, 0, part(10, 5, "67890").Metadata))
		}, part(10, 10, "1"), ErrMalformed},
		{"after the end", func(k *pair) {
			k.say(k.sender, PeerMetadata)(k.sender.Metadata(nil, 0, part(10, 5, "67890").Metadata))
			k.end(0, nativeSize)
		}, part(10, 0, "1"), ErrOutOfOrder},
	})
}

func TestMetadataHasToBeAnnounced(t *testing.T) {
	one := metadataMessage{0, Metadata{1, 0, []byte("1")}}
	without := checkSetup{senderHello(), receiverHello(), needRoot(rootFile(), 0)}
	without.run(t, true, []nativeCheck{{"not announced", nil, one, ErrOutOfOrder}})
	root := rootFile()
	root.Flags |= EntryHasMetadata
	early := checkSetup{senderHello(), receiverHello(), func(k *pair) { k.announce(root) }}
	early.run(t, true, []nativeCheck{{"before the answer", nil, one, ErrOutOfOrder}})
	plain := senderHello()
	plain.Flags &^= FlagXAttr
	disagreed := checkSetup{plain, receiverHello(), nil}
	disagreed.run(t, true, []nativeCheck{{"not agreed on", nil, []Entry{root}, ErrMalformed}})
}

func TestFinishAtItsBoundaries(t *testing.T) {
	link := entryAt(1, EntrySymlink, "l")
	link.Link, link.Flags = []byte("x"), EntryHasMetadata
	setup := checkSetup{treeHello(), receiverHello(), nil}
	setup.run(t, true, []nativeCheck{
		{"nothing announced", nil, finishMessage{0, 0, ""}, ErrMalformed},
		{"directory without a result", func(k *pair) { k.announce(rootDirectory()) }, finishMessage{1, 7, ""}, nil},
		{"file without an answer", func(k *pair) { k.announce(rootDirectory(), chunkedAt(1, "a", 0)) },
			finishMessage{2, 0, ""}, ErrOutOfOrder},
		{"file without an end", func(k *pair) {
			k.announce(rootDirectory(), fileAt(1, "a", 0))
			k.answer(need(1)...)
		}, finishMessage{2, 0, ""}, ErrOutOfOrder},
		{"file with an end", func(k *pair) {
			k.announce(rootDirectory(), chunkedAt(1, "a", 0))
			k.answer(need(1)...)
			k.end(1, 0)
		}, finishMessage{2, 0, ""}, nil},
		{"metadata missing", func(k *pair) { k.announce(rootDirectory(), link) }, finishMessage{2, 0, ""},
			ErrOutOfOrder},
		{"entries after it", func(k *pair) {
			k.announce(rootDirectory())
			k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, ""))
		}, []Entry{fileAt(1, "a", 0)}, ErrOutOfOrder},
	})
	file := checkSetup{senderHello(), receiverHello(), func(k *pair) {
		needRoot(rootFile(), 0)(k)
		k.end(0, nativeSize)
	}}
	file.run(t, true, []nativeCheck{
		{"file", nil, finishMessage{1, 0, ""}, nil},
		{"missing entry of a file", nil, finishMessage{1, 1, ""}, ErrMalformed},
	})
	for _, total := range []uint32{0, 2, math.MaxUint32} {
		k := setup.pair(t, nativeCheck{})
		k.announce(rootDirectory())
		_, err := k.receiver.Receive(AppendFinish(nil, total, 0, ""))
		wantNative(t, err, ErrMalformed)
	}
}

// FINISHED is refused unless it agrees with what the sender has counted, and with the planned durability.
func TestFinishedAtItsBoundaries(t *testing.T) {
	done := Counts{Committed: 1}
	for name, test := range map[string]struct {
		durability Durability
		counts     Counts
		want       error
	}{
		"as planned":        {DurabilityFull, done, nil},
		"less durable":      {DurabilityFile, done, ErrMalformed},
		"not durable":       {DurabilityNone, done, ErrMalformed},
		"one more":          {DurabilityFull, Counts{Committed: 2}, ErrMalformed},
		"another outcome":   {DurabilityFull, Counts{Unchanged: 1}, ErrMalformed},
		"an entry failed":   {DurabilityFull, Counts{Failed: 1}, ErrMalformed},
		"a failure besides": {DurabilityFull, Counts{Committed: 1, Failed: 1}, ErrMalformed},
	} {
		n := reachNative(t, nativeRole{DPU, true, gridFile}, "finishing+decided")
		_, err := n.Receive(AppendFinished(nil, test.durability, test.counts, ""))
		wantCheck(t, name, err, test.want)
	}
	n := reachNative(t, nativeRole{DPU, false, gridFile}, "finishing+decided")
	for _, d := range []Durability{3, DurabilityNone, DurabilityFile} {
		_, err := n.Finished(nil, d, "")
		wantNative(t, err, ErrMalformed)
	}
	must(t)(n.Finished(nil, DurabilityFull, ""))
}

// Only the side that opens the window names its transport, on the paths of UCX; the other learns it, as bytes that a
// terminal can show.
func TestTransportIsNamedByTheSideThatOpensTheWindow(t *testing.T) {
	const long = "rc_mlx5/mlx5_0:1,rc_mlx5/mlx5_1:1,rc_mlx5/mlx5_2:1,rc_mlx5/mlx5_3:1"
	for name, shown := range map[string]string{
		"": "", "tcp/eth0": "tcp/eth0", "tcp/\x1b[2J\u00e9": "tcp/?[2J??",
		long[:MaxTransport]: long[:MaxTransport], long: long[:MaxTransport-3] + "...",
	} {
		for path := range pathFlags {
			k := pathPair(t, Client, path)
			want := map[Path][2]string{PathMessages: {shown, ""}, PathRMA: {"", shown}}[path]
			if got := k.nameTransport(name); got != want {
				t.Errorf("path %s, %q: sender and receiver have named %q", path, name, got)
			}
		}
	}
}

// sendEmpty sends an empty file.
func (k *pair) sendEmpty() {
	k.open()
	root := rootFile()
	root.Size = 0
	needRoot(root, 0)(k)
	k.end(0, 0)
}

// nameTransport copies an empty file, and returns which transports the sender and the receiver have named.
func (k *pair) nameTransport(name string) [2]string {
	k.sendEmpty()
	sent := k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, name))
	k.say(k.receiver, Committed)(k.receiver.Results(nil, []uint32{0}))
	received := k.say(k.receiver, PeerFinished)(k.receiver.Finished(nil, DurabilityFull, name))
	return [2]string{sent.Transport, received.Transport}
}

// A name from the wrong side, or on a path that has no transport of UCX, breaks the protocol.
func TestTransportOfTheWrongSide(t *testing.T) {
	for _, path := range []Path{PathTLS, PathRMA, PathFast} {
		k := pathPair(t, Client, path)
		k.sendEmpty()
		_, err := k.receiver.Receive(AppendFinish(nil, 1, 0, "tcp/eth0"))
		wantNative(t, err, ErrMalformed)
	}
	for _, path := range []Path{PathTLS, PathMessages, PathFast} {
		k := pathPair(t, Client, path)
		k.sendEmpty()
		k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, ""))
		k.say(k.receiver, Committed)(k.receiver.Results(nil, []uint32{0}))
		_, err := k.sender.Receive(AppendFinished(nil, DurabilityFull, Counts{Committed: 1}, "tcp/eth0"))
		wantNative(t, err, ErrMalformed)
	}
}

// A phase starts again with each transfer, and never goes back within one.
func TestNeitherPhasesNorWorkGoBack(t *testing.T) {
	k := newPair(t, Host, senderHello(), receiverHello())
	k.open()
	for _, b := range []Beat{{1, 5}, {1, 5}, {1, 6}, {2, 0}, {7, 0}, {7, math.MaxUint64 - 1}} {
		for _, n := range []*NativeSession{k.sender, k.receiver} {
			if got := k.say(n, PeerBeat)(n.Beat(nil, b)).Beat; got != b {
				t.Errorf("got %+v, want %+v", got, b)
			}
		}
	}
	for name, b := range map[string]Beat{
		"less work": {7, 7}, "an earlier phase": {6, math.MaxUint64}, "no such phase": {MaxPhase + 1, 0},
	} {
		_, err := k.sender.Beat(nil, b)
		wantCheck(t, name+", called", err, ErrMalformed)
		peer := *k.receiver
		_, err = peer.Receive(AppendBeat(nil, b))
		wantCheck(t, name+", received", err, ErrMalformed)
	}
	k.announce(rootFile())
	k.answer(Answer{Kind: AnswerHave})
	k.finish(Counts{Unchanged: 1})
	k.say(k.receiver, PeerBeat)(k.receiver.Beat(nil, Beat{0, 1}))
	_, err := k.sender.Beat(nil, Beat{0, 1})
	wantNative(t, err, ErrMalformed)
	k.begin()
	k.say(k.sender, PeerBeat)(k.sender.Beat(nil, Beat{0, 1}))
}

// NewNative finds wrong values in this side's own HELLO.
func TestNewNativeRefusesWhatAPeerWould(t *testing.T) {
	for name, spoil := range map[string]func(*Hello){
		"chunk": func(h *Hello) { h.Chunk = 0 },
		"kinds": func(h *Hello) { h.Flags |= FlagStream },
		"flags": func(h *Hello) { h.Flags |= 1 << 31 },
		"name":  func(h *Hello) { h.Software = strings.Repeat("x", 65) },
	} {
		own := senderHello()
		spoil(&own)
		if n, err := NewNative(Host, 2, own, nativeLimits); n != nil || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		s := NewSession(Host, Local{HasFile: true, Native: &own}, nativeLimits)
		s.Start()
		step, err := s.Receive(Direction{Offer: [3]byte{offerMark, 2, 2}}.Encode())
		if !errors.Is(err, ErrMalformed) || s.State() != Failed {
			t.Errorf("%s: %+v, %v", name, step, err)
		}
		wantBytes(t, step.Reply, Status{}.Encode())
	}
	_, err := NewNative(Host, 0, senderHello(), nativeLimits)
	wantNative(t, err, ErrMalformed)
}

func TestHellosThatAreRefused(t *testing.T) {
	good := AppendHello(nil, nativeRole{Host, true, gridFile}.hello())
	good[8] = Supported.Max
	another := append([]byte(nil), good...)
	another[8] = Supported.Max + 1
	for name, msg := range map[string][]byte{"another version": another, "short": good[:39], "long": append(good, 0)} {
		n := reachNative(t, nativeRole{DPU, false, gridFile}, "await-hello")
		step, err := n.Receive(msg)
		wantCheck(t, name, err, ErrMalformed)
		if notice, err := DecodeAbort(step.Reply); err != nil || notice.Code != AbortProtocol {
			t.Errorf("%s: answered % x", name, step.Reply)
		}
	}
}

func TestWindowsAtTheirBoundaries(t *testing.T) {
	k := newPair(t, Host, senderHello(), receiverHello())
	length := k.sender.Plan().WindowLength()
	for name, test := range map[string]struct {
		address    uint64
		descriptor []byte
		want       error
	}{
		"no descriptor": {nativeAddress, nil, ErrMalformed},
		"wraps":         {math.MaxUint64 - length + 2, nativeDescriptor, ErrMalformed},
		"ends with it":  {math.MaxUint64 - length + 1, nativeDescriptor, nil},
	} {
		n := newPair(t, Host, senderHello(), receiverHello()).sender
		_, err := n.Window(test.address, test.descriptor)
		wantCheck(t, name, err, test.want)
	}
	for _, wrong := range []uint64{1, length - 1, length + 1, 2 * length} {
		n := newPair(t, Host, senderHello(), receiverHello()).receiver
		_, err := n.Receive(AppendWindow(nil, Window{nativeAddress, wrong, nativeDescriptor}))
		wantNative(t, err, ErrMalformed)
	}
}

var (
	allPaths  = []Path{PathDMA, PathFast, PathTLS, PathMessages, PathRMA}
	pathFlags = map[Path]Flags{
		PathFast: FlagFast, PathTLS: FlagTLS, PathMessages: FlagMessages, PathRMA: FlagRMA,
	}
)

// pathPair returns a session on a path other than PathDMA with two slots.
func pathPair(t *testing.T, sending Side, path Path) *pair {
	from, to := senderHello(), receiverHello()
	from.Flags, to.Flags = from.Flags|pathFlags[path]|FlagNoDMA, to.Flags|pathFlags[path]
	return newPair(t, sending, from, to)
}

// Where the sender sends, the receiver has the window, whatever its side. Where the receiver reads, the sender has it.
func TestOwnerOfTheWindow(t *testing.T) {
	for path := range pathFlags {
		for _, sending := range []Side{Host, DPU, Client, Server} {
			checkWindowOwner(t, pathPair(t, sending, path))
		}
	}
}

func checkWindowOwner(t *testing.T, k *pair) {
	plan := k.sender.Plan()
	want, other := k.receiver, k.sender
	if plan.Path == PathRMA {
		want, other = k.sender, k.receiver
	}
	if got := k.windowOwner(); got != want {
		t.Errorf("the %s has the window of the path %s, sent by the %s", got.side, plan.Path, k.sender.side)
		return
	}
	address, descriptor := windowOf(plan)
	_, err := other.Window(address, descriptor)
	wantCheck(t, "of the other side", err, ErrOutOfOrder)
	k.open()
	late := AppendWindow(nil, Window{address, plan.WindowLength(), descriptor})
	_, err = want.Receive(late)
	wantNative(t, err, ErrOutOfOrder)
}

// A receiver takes no WINDOW while content is on its way to its consumers.
func TestWindowOfConsumers(t *testing.T) {
	for _, sending := range []Side{Host, DPU} {
		k := pathPair(t, sending, PathFast)
		address, descriptor := windowOf(k.sender.Plan())
		k.open()
		k.announce(rootFile())
		k.answer(need(0)...)
		k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{{Kind: DataRecord, Length: 1}}))
		late := AppendWindow(nil, Window{address, k.sender.Plan().WindowLength(), descriptor})
		_, err := k.receiver.Receive(late)
		wantNative(t, err, ErrOutOfOrder)
	}
}

func TestConsumersAtTheirBoundaries(t *testing.T) {
	for name, test := range map[string]struct {
		address uint64
		ids     []byte
		want    error
	}{
		"one":               {0, AppendConsumers(nil, []uint32{1}), nil},
		"one for each slot": {0, AppendConsumers(nil, []uint32{0, 1<<32 - 1}), nil},
		"none":              {0, nil, ErrMalformed},
		"more than slots":   {0, AppendConsumers(nil, []uint32{1, 2, 3}), ErrMalformed},
		"one twice":         {0, AppendConsumers(nil, []uint32{1, 1}), ErrMalformed},
		"half an id":        {0, make([]byte, 6), ErrMalformed},
		"an address":        {1, AppendConsumers(nil, []uint32{1}), ErrMalformed},
	} {
		checkWindow(t, name, pathPair(t, Host, PathFast), test.address, test.ids, test.want)
	}
}

// checkWindow checks that both sides judge a window alike.
func checkWindow(t *testing.T, name string, k *pair, address uint64, descriptor []byte, want error) {
	t.Helper()
	owner := k.windowOwner()
	_, err := owner.Window(address, descriptor)
	wantCheck(t, name, err, want)
	_, err = k.other(owner).Receive(AppendWindow(nil, Window{address, k.sender.Plan().WindowLength(), descriptor}))
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: received with %v", name, err)
	}
}

func TestLanesAtTheirBoundaries(t *testing.T) {
	lanes := func(version, lanes byte, more ...byte) []byte {
		return append([]byte{version, lanes, 0, 0, 0, 0, 0, 0, 0, 9}, more...)
	}
	for name, test := range map[string]struct {
		address uint64
		lanes   []byte
		want    error
	}{
		"one":               {0, lanes(1, 1), nil},
		"one for each slot": {0, lanes(1, 2), nil},
		"more than slots":   {0, lanes(1, 3), ErrMalformed},
		"none":              {0, lanes(1, 0), ErrMalformed},
		"another version":   {0, lanes(2, 1), ErrMalformed},
		"too long":          {0, lanes(1, 1, 0), ErrMalformed},
		"too short":         {0, []byte{1, 1}, ErrMalformed},
		"an address":        {1, lanes(1, 1), ErrMalformed},
	} {
		checkWindow(t, name, pathPair(t, Client, PathTLS), test.address, test.lanes, test.want)
	}
	if n, window, err := Lanes(AppendLanes(nil, MaxLanes, 1<<63), MaxDepth); n != MaxLanes || window != 1<<63 {
		t.Errorf("got %d lanes of window %d (%v)", n, window, err)
	}
	if _, _, err := Lanes(AppendLanes(nil, MaxLanes+1, 0), MaxDepth); !errors.Is(err, ErrMalformed) {
		t.Errorf("more lanes than MaxLanes: %v", err)
	}
}

// workersOf returns a descriptor with addresses of these lengths and a key.
func workersOf(key int, addresses ...int) []byte {
	w := Workers{Key: make([]byte, key)}
	for _, length := range addresses {
		w.Addresses = append(w.Addresses, make([]byte, length))
	}
	return AppendWorkers(nil, w)
}

func TestWorkersAtTheirBoundaries(t *testing.T) {
	version := workersOf(8, 1)
	version[0]++
	for name, test := range map[string]struct {
		path    Path
		address uint64
		workers []byte
		want    error
	}{
		"messages, one":               {PathMessages, 0, workersOf(8, 1), nil},
		"messages, one for each slot": {PathMessages, 0, workersOf(8, 1, MaxWorkerAddress), nil},
		"messages, more than slots":   {PathMessages, 0, workersOf(8, 1, 1, 1), ErrMalformed},
		"messages, none":              {PathMessages, 0, workersOf(8), ErrMalformed},
		"messages, an empty address":  {PathMessages, 0, workersOf(8, 1, 0), ErrMalformed},
		"messages, too long":          {PathMessages, 0, workersOf(8, MaxWorkerAddress+1), ErrMalformed},
		"messages, no token":          {PathMessages, 0, workersOf(0, 1), ErrMalformed},
		"messages, a long token":      {PathMessages, 0, workersOf(9, 1), ErrMalformed},
		"messages, an address":        {PathMessages, 1, workersOf(8, 1), ErrMalformed},
		"messages, another version":   {PathMessages, 0, version, ErrMalformed},
		"messages, cut":               {PathMessages, 0, workersOf(8, 1, 1)[:9], ErrMalformed},
		"messages, half a length":     {PathMessages, 0, workersOf(8, 1, 1)[:8], ErrMalformed},
		"messages, more":              {PathMessages, 0, append(workersOf(8, 1), 0), ErrMalformed},
		"rma":                         {PathRMA, nativeAddress, workersOf(MaxRemoteKey, 1), nil},
		"rma, two workers":            {PathRMA, nativeAddress, workersOf(1, 1, 1), ErrMalformed},
		"rma, no key":                 {PathRMA, nativeAddress, workersOf(0, 1), ErrMalformed},
		"rma, a long key":             {PathRMA, nativeAddress, workersOf(MaxRemoteKey+1, 1), ErrMalformed},
		"rma, half a key":             {PathRMA, nativeAddress, workersOf(2, 1)[:8], ErrMalformed},
		"rma, nothing":                {PathRMA, nativeAddress, []byte{1}, ErrMalformed},
	} {
		from, to := senderHello(), receiverHello()
		from.Flags, to.Flags = from.Flags|pathFlags[test.path]|FlagNoDMA, to.Flags|pathFlags[test.path]
		k := &pair{t: t, sender: newNative(t, Client, from), receiver: newNative(t, Server, to)}
		k.sender.limits.MaxMessage, k.receiver.limits.MaxMessage = 1<<14, 1<<14
		k.meet()
		checkWindow(t, name, k, test.address, test.workers, test.want)
	}
}

// What was appended is decoded as it was.
func TestDecodeWorkers(t *testing.T) {
	want := Workers{Addresses: [][]byte{[]byte("one"), []byte("three")}, Key: []byte("12345678")}
	got, err := DecodeWorkers(AppendWorkers(nil, want), PathMessages, 2)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

// The checksum of a record has the size that the planned digest gives it.
func TestChecksumsByDigest(t *testing.T) {
	for digest, largest := range map[Digest]uint64{
		DigestNone: 0, DigestCRC32C: math.MaxUint32, DigestXXH3: math.MaxUint64, DigestBLAKE3: math.MaxUint64,
	} {
		from, to := senderHello(), receiverHello()
		from.Digest, to.Digest = digest, digest
		setup := checkSetup{from, to, needRoot(rootFile(), 0)}
		checks := []nativeCheck{
			{digest.String(), nil, chunkOf(func(r *Record) { r.Check = largest }), nil},
			{digest.String() + ", end", nil, endMessage{0, nativeSize, make([]byte, digest.Size())}, nil},
		}
		if largest < math.MaxUint64 {
			checks = append(checks, nativeCheck{digest.String() + ", too large", nil,
				chunkOf(func(r *Record) { r.Check = largest + 1 }), ErrMalformed})
		}
		setup.run(t, true, checks)
	}
}

// Without a planned digest, a file is compared by CRC-32C.
func TestSumWithoutADigest(t *testing.T) {
	from, to := senderHello(), receiverHello()
	from.Digest, to.Digest = DigestNone, DigestNone
	setup := checkSetup{from, to, func(k *pair) {
		k.announce(rootFile())
		k.answer(Answer{Kind: AnswerSum})
	}}
	setup.run(t, true, []nativeCheck{
		{"crc32c", nil, sumMessage{0, nativeDigest}, nil},
		{"none", nil, sumMessage{0, nil}, ErrMalformed},
	})
}

// The last number is not given to an entry, so that numbers do not begin again.
func TestNumbersOfEntriesEnd(t *testing.T) {
	k := newPair(t, Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	k.commit(0)
	for _, n := range []*NativeSession{k.sender, k.receiver} {
		n.order.next, n.entries.oldest, n.entries.next = math.MaxUint32-1, math.MaxUint32-1, math.MaxUint32-1
	}
	k.announce(fileAt(1, "a", 1))
	k.answer(Answer{Entry: math.MaxUint32 - 1, Kind: AnswerHave})
	_, _, err := k.sender.Entries(nil, []Entry{fileAt(1, "b", 1)})
	wantNative(t, err, ErrMalformed)
	_, err = k.receiver.Receive(AppendEntries(nil, []Entry{fileAt(1, "b", 1)}))
	wantNative(t, err, ErrMalformed)
}
