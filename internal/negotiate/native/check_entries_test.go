package native

import (
	"math"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

func TestAnswersAtTheirBoundaries(t *testing.T) {
	one := func(kind AnswerKind, offset uint64) []Answer { return []Answer{{Kind: kind, Offset: offset}} }
	discarded := func(entry uint32) []Answer {
		return []Answer{{Entry: entry, Kind: AnswerNeed, Discarded: wire.DiscardedOtherSource}}
	}
	file := checkSetup{senderHello(), receiverHello(), func(k *pair) { k.announce(rootFile()) }}
	t.Run("file", func(t *testing.T) {
		file.run(t, false, []nativeCheck{
			{"need", nil, one(AnswerNeed, 0), nil},
			{"all of it to claim", nil, one(AnswerNeed, nativeSize), nil},
			{"more", nil, one(AnswerNeed, nativeSize+1), wire.ErrMalformed},
			{"most", nil, one(AnswerNeed, math.MaxUint64), wire.ErrMalformed},
			{"discarded", nil, discarded(0), nil},
			{"have", nil, one(AnswerHave, 0), nil},
			{"sum", nil, one(AnswerSum, 0), nil},
			{"none", nil, []Answer(nil), wire.ErrMalformed},
			{"no kind", nil, one(0, 0), wire.ErrMalformed},
			{"unknown kind", nil, one(4, 0), wire.ErrMalformed},
			{"have with an offset", nil, one(AnswerHave, 1), wire.ErrMalformed},
			{"no such entry", nil, []Answer{{Entry: 1, Kind: AnswerNeed}}, wire.ErrOutOfOrder},
			{"twice in a message", nil, []Answer{{Kind: AnswerNeed}, {Kind: AnswerHave}}, wire.ErrOutOfOrder},
			{"twice", func(k *pair) { k.answer(need(0)...) }, need(0), wire.ErrOutOfOrder},
			{"decided", func(k *pair) { k.answer(one(AnswerHave, 0)...) }, need(0), wire.ErrOutOfOrder},
			{"before the sum", func(k *pair) { k.answer(one(AnswerSum, 0)...) }, need(0), wire.ErrOutOfOrder},
		})
	})
	tree := checkSetup{treeHello(), receiverHello(), func(k *pair) {
		link := entryAt(1, wire.EntrySymlink, "l")
		link.Link, link.Flags = []byte("x"), wire.EntryHasMetadata
		k.announce(rootDirectory(), link, fileAt(1, "n", 10))
	}}
	t.Run("tree", func(t *testing.T) {
		tree.run(t, false, []nativeCheck{
			{"directory needed", nil, need(0), wire.ErrMalformed},
			{"directory summed", nil, one(AnswerSum, 0), wire.ErrMalformed},
			{"directory had", nil, one(AnswerHave, 0), nil},
			{"part of a file for a pack", nil, []Answer{{Entry: 2, Kind: AnswerNeed, Offset: 1}}, wire.ErrMalformed},
			{"nothing can be left for a pack", nil, discarded(2), wire.ErrMalformed},
			{"file and directory", nil, append(need(2), one(AnswerHave, 0)...), nil},
			{"before the metadata", nil, []Answer{{Entry: 1, Kind: AnswerHave}}, wire.ErrOutOfOrder},
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
	none.Digest, dry.Flags, stream.Flags = wire.DigestNone, dry.Flags|FlagDryRun, FlagStream
	plain, resume := receiverHello(), Answer{Kind: AnswerNeed, Offset: 1}
	ignoring := receiverHello()
	ignoring.Flags |= FlagIgnoreExisting
	plain.Digest = wire.DigestNone
	for name, test := range map[string]struct {
		from, to Hello
		root     wire.Entry
		answer   Answer
		want     error
	}{
		"need where nothing is written": {senderHello(), same, rootFile(), Answer{Kind: AnswerNeed}, wire.ErrMalformed},
		"have where nothing is written": {senderHello(), same, rootFile(), Answer{Kind: AnswerHave}, nil},
		"resume without a digest":       {none, plain, rootFile(), resume, wire.ErrMalformed},
		"resume in a dry run": {
			dry, receiverHello(), rootFile(), Answer{Kind: AnswerNeed, Change: ChangeNew, Offset: 1}, wire.ErrMalformed,
		},
		"resume to a stream":   {senderHello(), stream, rootFile(), resume, wire.ErrMalformed},
		"resume from a stream": {streamHello(), plain, rootStream(), resume, wire.ErrMalformed},
		"have of a stream": {streamHello(), plain, rootStream(), Answer{Kind: AnswerHave},
			wire.ErrMalformed},
		"sum of a stream":            {streamHello(), plain, rootStream(), Answer{Kind: AnswerSum}, wire.ErrMalformed},
		"exists of a stream":         {streamHello(), ignoring, rootStream(), Answer{Kind: AnswerExists}, nil},
		"exists where it is ignored": {senderHello(), ignoring, rootFile(), Answer{Kind: AnswerExists}, nil},
		"exists where it is replaced": {senderHello(), plain, rootFile(), Answer{Kind: AnswerExists},
			wire.ErrMalformed},
		"dry run without a change": {dry, receiverHello(), rootFile(), Answer{Kind: AnswerNeed}, wire.ErrMalformed},
		"change without a dry run": {
			senderHello(), plain, rootFile(), Answer{Kind: AnswerNeed, Change: ChangeNew}, wire.ErrMalformed,
		},
		"need of a stream": {streamHello(), plain, rootStream(), Answer{Kind: AnswerNeed}, nil},
	} {
		if test.to.Flags.Has(FlagFile) { // the host is the sender then
			test.from, test.to = test.to, test.from
		}
		check := nativeCheck{name, nil, []Answer{test.answer}, test.want}
		sending := wire.DPU
		if test.from.Flags.Has(FlagFile) && test.to.Flags.Has(FlagFile) {
			sending = wire.Host
		}
		k := newPair(t, sending, test.from, test.to)
		k.begin()
		k.announce(test.root)
		_, err := call(k.receiver, check.message)
		wiretest.WantCheck(t, name+", called", err, test.want)
		_, err = k.sender.Receive(AppendAnswers(nil, []Answer{test.answer}))
		wiretest.WantCheck(t, name+", received", err, test.want)
	}
}

// In a dry run need decides the entry, so that no data can follow.
func TestDryRunSendsNothing(t *testing.T) {
	from := senderHello()
	from.Flags |= FlagDryRun
	k := newPair(t, wire.Host, from, receiverHello())
	k.open()
	k.announce(rootFile())
	k.answer(Answer{Kind: AnswerNeed, Change: ChangeNew})
	_, err := k.sender.Chunks(nil, chunkOf(func(*Record) {}))
	wantNative(t, err, wire.ErrOutOfOrder)
	_, err = k.sender.End(nil, 0, nativeSize, nativeDigest)
	wantNative(t, err, wire.ErrOutOfOrder)
	k.finish(Counts{Committed: 1})
}

// A receiver does not accept a file above its own limit, regardless of what the caller says.
func TestReceiverKeepsItsOwnLimit(t *testing.T) {
	k := limitedPair(t, nativeSize)
	k.answer(need(0)...)
	k = limitedPair(t, nativeSize-1)
	_, err := k.receiver.Answers(nil, need(0))
	wantNative(t, err, wire.ErrTooLarge)
	k.fail(k.receiver, Failure{Entry: 0, Code: wire.AbortLimit})
	k.finish(Counts{Failed: 1})
}

// limitedPair returns a pair that has announced a file of nativeSize bytes to a receiver with that limit.
func limitedPair(t *testing.T, limit uint64) *pair {
	n, err := New(wire.Host, 2, receiverHello(), wire.Limits{MaxMessage: 4080, MaxFileSize: limit})
	if err != nil {
		t.Fatal(err)
	}
	k := &pair{t: t, sender: newNative(t, wire.DPU, senderHello()), receiver: n}
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
		xattr.Flags = wire.EntryHasMetadata
		k.announce(rootDirectory(), fileAt(1, "a", 10), fileAt(1, "b", 0), fileAt(1, "c", 4096),
			chunkedAt(1, "d", 4097), chunkedAt(1, "e", 100), fileAt(1, "f", 10), xattr)
		k.answer(need(1, 2, 3, 4, 5, 7)...)
	}}
	a := PackedFile{Entry: 1, Length: 10, Check: math.MaxUint32}
	setup.run(t, true, []nativeCheck{
		{"one", nil, packOf(a), nil},
		{"last slot", nil, Pack{Slot: 3, Attempt: 3, Files: []PackedFile{a}}, nil},
		{"no such slot", nil, Pack{Slot: 4, Files: []PackedFile{a}}, wire.ErrMalformed},
		{"slot in flight", func(k *pair) {
			k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(4, 0, 0, 1)}))
		}, packOf(a), wire.ErrOutOfOrder},
		{"attempt too many", nil, Pack{Attempt: 4, Files: []PackedFile{a}}, wire.ErrMalformed},
		{"no files", nil, packOf(), wire.ErrMalformed},
		{"in any order of the entries", nil, packOf(PackedFile{Entry: 2}, a), nil},
		{"next to each other", nil, packOf(a, PackedFile{Entry: 2, Position: 10}), nil},
		{"overlap", nil, packOf(a, PackedFile{Entry: 2, Position: 9}), wire.ErrMalformed},
		{"a whole slot", nil, packOf(PackedFile{Entry: 3, Length: 4096}), nil},
		{"empty at the end", nil, packOf(
			PackedFile{Entry: 3, Length: 4096}, PackedFile{Entry: 2, Position: 4096}), nil},
		{"beyond the end", nil, packOf(PackedFile{Entry: 2, Position: 4097}), wire.ErrMalformed},
		{"past the end", nil, packOf(PackedFile{Entry: 1, Position: 4087, Length: 10}), wire.ErrMalformed},
		{"wraps", nil, packOf(PackedFile{Entry: 1, Position: math.MaxUint32, Length: 10}), wire.ErrMalformed},
		{"more than a slot", nil, packOf(PackedFile{Entry: 4, Length: 4097}), wire.ErrMalformed},
		{"less than the file", nil, packOf(PackedFile{Entry: 1, Length: 9}), wire.ErrMalformed},
		{"more than the file", nil, packOf(PackedFile{Entry: 2, Length: 1}), wire.ErrMalformed},
		{"entry twice", nil, packOf(a, PackedFile{Entry: 1, Position: 10, Length: 10}), wire.ErrOutOfOrder},
		{"in chunks", nil, packOf(PackedFile{Entry: 5, Length: 100}), wire.ErrMalformed},
		{"not answered", nil, packOf(PackedFile{Entry: 6, Length: 10}), wire.ErrOutOfOrder},
		{"directory", nil, packOf(PackedFile{Entry: 0}), wire.ErrOutOfOrder},
		{"no such entry", nil, packOf(a, PackedFile{Entry: 8, Position: 10}), wire.ErrOutOfOrder},
		{"without its metadata", nil, packOf(PackedFile{Entry: 7, Length: 5}), wire.ErrOutOfOrder},
		{"a record of it", nil, []Record{data(1, 0, 0, 1)}, wire.ErrMalformed},
		{"its end", nil, endMessage{1, 10, nativeDigest}, wire.ErrMalformed},
		{"in flight", func(k *pair) { k.say(k.sender, Packed)(k.sender.Pack(nil, packOf(a))) },
			Pack{Slot: 1, Files: []PackedFile{a}}, wire.ErrOutOfOrder},
		{"check too large", nil, packOf(PackedFile{Entry: 1, Length: 10, Check: 1 << 32}), wire.ErrMalformed},
	})
}

func TestEndsAtTheirBoundaries(t *testing.T) {
	end := func(size uint64) endMessage { return endMessage{0, size, nativeDigest} }
	file := checkSetup{senderHello(), receiverHello(), needRoot(rootFile(), 0)}
	file.run(t, true, []nativeCheck{
		{"before any record", nil, end(nativeSize), nil},
		{"less", nil, end(nativeSize - 1), wire.ErrMalformed},
		{"more", nil, end(nativeSize + 1), wire.ErrMalformed},
		{"twice", func(k *pair) { k.end(0, nativeSize) }, end(nativeSize), wire.ErrOutOfOrder},
		{"no such entry", nil, endMessage{1, nativeSize, nativeDigest}, wire.ErrOutOfOrder},
		{"digest short", nil, endMessage{0, nativeSize, nativeDigest[:3]}, wire.ErrMalformed},
		{"no digest", nil, endMessage{0, nativeSize, nil}, wire.ErrMalformed},
		{"sum in place of it", nil, sumMessage{0, nativeSum}, wire.ErrOutOfOrder},
	})
	stream := checkSetup{streamHello(), receiverHello(), func(k *pair) {
		needRoot(rootStream(), 0)(k)
		k.settle([]Record{data(0, 0, 0, 4096)}, Ack{})
		k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(0, 0, 4096, 4)}))
	}}
	stream.run(t, true, []nativeCheck{
		{"stream as announced", nil, end(4100), nil},
		{"stream with more to come", nil, end(5000), nil},
		{"stream, less than announced", nil, end(4099), wire.ErrMalformed},
		{"stream, largest", nil, end(wire.MaxSize), nil},
		{"stream, too large", nil, end(wire.MaxSize + 1), wire.ErrMalformed},
	})
	asked := checkSetup{senderHello(), receiverHello(), func(k *pair) {
		k.announce(rootFile())
		k.answer(Answer{Kind: AnswerSum})
	}}
	asked.run(t, true, []nativeCheck{
		{"asked for the sum", nil, sumMessage{0, nativeSum}, nil},
		{"end in place of it", nil, end(nativeSize), wire.ErrOutOfOrder},
		{"sum of another entry", nil, sumMessage{1, nativeSum}, wire.ErrOutOfOrder},
		{"sum short", nil, sumMessage{0, nativeDigest[:3]}, wire.ErrMalformed},
		{"sum twice", func(k *pair) { k.say(k.sender, PeerSum)(k.sender.Sum(nil, 0, nativeSum)) },
			sumMessage{0, nativeSum}, wire.ErrOutOfOrder},
	})
}

// A retransmitted chunk may follow the end, and a pack that arrived damaged is needed again.
func TestRetransmissionAfterTheEnd(t *testing.T) {
	k := newPair(t, wire.DPU, senderHello(), receiverHello())
	k.open()
	needRoot(rootFile(), 0)(k)
	k.end(0, nativeSize)
	hole := Record{Kind: HoleRecord, Length: nativeSize}
	k.settle([]Record{hole}, Ack{Bad: true})
	_, err := k.receiver.Results(nil, []uint32{0})
	wantNative(t, err, wire.ErrOutOfOrder)
	k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, ""))
	k.settle([]Record{hole}, Ack{})
	k.commit(0)
	k.say(k.receiver, PeerFinished)(k.receiver.Finished(nil, wire.DurabilityFull, ""))
}

func TestPackAgainAfterFinish(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
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
	k.fail(k.sender, Failure{Entry: 2, Code: wire.AbortSourceChanged})
	p = Pack{Slot: 1, Attempt: 1, Files: p.Files[:1]}
	k.say(k.sender, Packed)(k.sender.Pack(nil, p))
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{Slot: 1}}))
	k.commit(1)
	step := k.say(k.receiver, PeerFinished)(k.receiver.Finished(nil, wire.DurabilityFull, ""))
	if want := (Counts{Committed: 2, Failed: 1}); step.Counts != want {
		t.Errorf("got %+v, want %+v", step.Counts, want)
	}
}

// The last number is not given to an entry, so that numbers do not begin again.
func TestNumbersOfEntriesEnd(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	k.commit(0)
	for _, n := range []*Session{k.sender, k.receiver} {
		n.order.Next, n.entries.oldest, n.entries.next = math.MaxUint32-1, math.MaxUint32-1, math.MaxUint32-1
	}
	k.announce(fileAt(1, "a", 1))
	k.answer(Answer{Entry: math.MaxUint32 - 1, Kind: AnswerHave})
	_, _, err := k.sender.Entries(nil, []wire.Entry{fileAt(1, "b", 1)})
	wantNative(t, err, wire.ErrMalformed)
	_, err = k.receiver.Receive(encodeEntries([]wire.Entry{fileAt(1, "b", 1)}))
	wantNative(t, err, wire.ErrMalformed)
}
