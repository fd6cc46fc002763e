package native

import (
	"math"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
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
	k := newPair(t, wire.DPU, s.from, s.to)
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
			undecided, outstanding, counts := author.Undecided(), author.Outstanding(), author.entries.counts
			_, err := call(author, c.message)
			wiretest.WantCheck(t, "called", err, c.want)
			if err != nil &&
				(author.Undecided() != undecided || author.Outstanding() != outstanding ||
					author.entries.counts != counts) {
				t.Errorf("refused, and yet it changed something: %+v", author)
			}
			k = s.pair(t, c)
			peer := k.sender
			if bySender {
				peer = k.receiver
			}
			step, err := peer.Receive(encodeNative(c.message, k.sender.plan.Digest))
			wiretest.WantCheck(t, "received", err, c.want)
			if err != nil && (step.Event != None || peer.State() != Failed) {
				t.Errorf("failed with %s in %s", step.Event, peer.State())
			}
		})
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

func rootStream() wire.Entry {
	e := rootFile()
	e.Flags, e.Size = wire.EntrySizeUnknown|wire.EntryChunked, 0
	return e
}

// needRoot announces the only entry, and asks for it from an offset.
func needRoot(e wire.Entry, offset uint64) func(*pair) {
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
		{"no such slot", nil, chunkOf(func(r *Record) { r.Slot = 4 }), wire.ErrMalformed},
		{"last number of a slot", nil, chunkOf(func(r *Record) { r.Slot = math.MaxUint16 }), wire.ErrMalformed},
		{"no such entry", nil, chunkOf(func(r *Record) { r.Entry = 1 }), wire.ErrOutOfOrder},
		{"last number of an entry", nil, chunkOf(func(r *Record) { r.Entry = math.MaxUint32 }), wire.ErrOutOfOrder},
		{"entry in the same place", nil, chunkOf(func(r *Record) { r.Entry = MaxOpen }), wire.ErrOutOfOrder},
		{"last attempt", nil, chunkOf(func(r *Record) { r.Attempt = 3 }), nil},
		{"attempt too many", nil, chunkOf(func(r *Record) { r.Attempt = 4 }), wire.ErrMalformed},
		{"no bytes", nil, chunkOf(func(r *Record) { r.Length = 0 }), wire.ErrMalformed},
		{"more than a chunk", nil, chunkOf(func(r *Record) { r.Length = 4097 }), wire.ErrMalformed},
		{"up to the end", nil, chunkOf(func(r *Record) { r.Offset = nativeSize - 4096 }), nil},
		{"beyond the end", nil, chunkOf(func(r *Record) { r.Offset = nativeSize - 4095 }), wire.ErrMalformed},
		{"wraps", nil, chunkOf(func(r *Record) { r.Offset = math.MaxUint64 - 4094 }), wire.ErrMalformed},
		{"wraps to the start", nil, chunkOf(func(r *Record) { r.Offset = math.MaxUint64 - 4095 }), wire.ErrMalformed},
		{"largest length", nil, chunkOf(func(r *Record) { r.Length = math.MaxUint64 }), wire.ErrMalformed},
		{"largest check", nil, chunkOf(func(r *Record) { r.Check = math.MaxUint32 }), nil},
		{"check too large", nil, chunkOf(func(r *Record) { r.Check = 1 << 32 }), wire.ErrMalformed},
		{"no kind", nil, chunkOf(func(r *Record) { r.Kind = 0 }), wire.ErrMalformed},
		{"unknown kind", nil, chunkOf(func(r *Record) { r.Kind = 4 }), wire.ErrMalformed},
		{"hole of the whole file", nil, []Record{{Kind: HoleRecord, Length: nativeSize}}, nil},
		{"hole beyond the file", nil, []Record{{Kind: HoleRecord, Length: nativeSize + 1}}, wire.ErrMalformed},
		{"hole of nothing", nil, []Record{{Kind: HoleRecord}}, wire.ErrMalformed},
		{"hole with a check", nil, chunkOf(func(r *Record) { r.Kind = HoleRecord }), wire.ErrMalformed},
		{"claim", nil, chunkOf(func(r *Record) { r.Kind, r.Offset = ClaimRecord, 904 }), nil},
		{"claim beyond it", nil, chunkOf(func(r *Record) { r.Kind, r.Offset = ClaimRecord, 905 }), wire.ErrMalformed},
		{"no records", nil, []Record(nil), wire.ErrMalformed},
		{"slot twice", nil, []Record{data(0, 0, 0, 1), data(0, 1, 1, 1), data(0, 0, 2, 1)}, wire.ErrOutOfOrder},
		{"slot in flight", func(k *pair) {
			k.say(k.sender, Announced)(k.sender.Chunks(nil, chunkOf(func(r *Record) { r.Slot = 3 })))
		}, []Record{data(0, 2, 4096, 1), data(0, 3, 4097, 1)}, wire.ErrOutOfOrder},
		{"file twice", nil, []Record{{Kind: HoleRecord, Length: nativeSize}, data(0, 1, 0, 1)}, wire.ErrMalformed},
		{"after the end", func(k *pair) { k.end(0, nativeSize) }, chunkOf(func(*Record) {}), nil},
		{"after all of it", func(k *pair) {
			k.settle([]Record{{Kind: HoleRecord, Length: nativeSize}}, Ack{})
			k.end(0, nativeSize)
		}, chunkOf(func(*Record) {}), wire.ErrMalformed},
	})
}

func TestRecordsOfAStreamAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{streamHello(), fourSlots(receiverHello()), needRoot(rootStream(), 0)}
	setup.run(t, true, []nativeCheck{
		{"far away", nil, chunkOf(func(r *Record) { r.Offset = wire.MaxSize - 4096 }), nil},
		{"too far", nil, chunkOf(func(r *Record) { r.Offset = wire.MaxSize - 4095 }), wire.ErrMalformed},
		{"claim", nil, chunkOf(func(r *Record) { r.Kind = ClaimRecord }), wire.ErrMalformed},
		{"all of it", func(k *pair) { k.end(0, 4096) }, chunkOf(func(*Record) {}), nil},
		{"beyond its end", func(k *pair) { k.end(0, 4095) }, chunkOf(func(*Record) {}), wire.ErrMalformed},
	})
}

// A sender claims no byte twice, regardless of what the receiver has found.
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
		{"the rest and a byte", nil, []Record{claim(4000, 905)}, wire.ErrMalformed},
		{"the same", nil, []Record{claim(0, 4096)}, wire.ErrMalformed},
		{"the same as data", nil, []Record{data(0, 1, 0, 4096)}, nil},
		{"a refused list", func(k *pair) {
			_, err := k.sender.Chunks(nil, []Record{claim(4096, 904), data(0, 1, 0, 4096)})
			wantNative(k.t, err, wire.ErrOutOfOrder)
		}, []Record{claim(4096, 904)}, nil},
	})
}

func TestRecordsNeedTheWindow(t *testing.T) {
	k := newPair(t, wire.DPU, senderHello(), receiverHello())
	k.begin()
	needRoot(rootFile(), 0)(k)
	_, err := k.sender.Chunks(nil, chunkOf(func(*Record) {}))
	wantNative(t, err, wire.ErrOutOfOrder)
	_, err = k.sender.Pack(nil, Pack{Files: []PackedFile{{Length: nativeSize}}})
	wantNative(t, err, wire.ErrOutOfOrder)
	_, err = k.receiver.Receive(AppendChunks(nil, chunkOf(func(*Record) {})))
	wantNative(t, err, wire.ErrOutOfOrder)
	k = newPair(t, wire.DPU, senderHello(), receiverHello())
	k.begin()
	needRoot(rootFile(), 0)(k)
	_, err = k.receiver.Receive(AppendPack(nil, Pack{Files: []PackedFile{{Length: nativeSize}}}, wire.DigestCRC32C))
	wantNative(t, err, wire.ErrOutOfOrder)
}

func TestAcknowledgementsAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{fourSlots(senderHello()), fourSlots(receiverHello()), func(k *pair) {
		needRoot(rootFile(), 0)(k)
		k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(0, 0, 0, 10), data(0, 3, 10, 10)}))
	}}
	setup.run(t, false, []nativeCheck{
		{"both", nil, []Ack{{Slot: 3}, {Slot: 0, Bad: true}}, nil},
		{"none", nil, []Ack(nil), wire.ErrMalformed},
		{"twice", nil, []Ack{{Slot: 0}, {Slot: 0}}, wire.ErrOutOfOrder},
		{"vacant", nil, []Ack{{Slot: 3}, {Slot: 2}}, wire.ErrOutOfOrder},
		{"no such slot", nil, []Ack{{Slot: 0}, {Slot: 4}}, wire.ErrMalformed},
		{"last number", nil, []Ack{{Slot: math.MaxUint32}}, wire.ErrMalformed},
	})
}

// The checksum of a record has the size that the planned digest gives it.
func TestChecksumsByDigest(t *testing.T) {
	for digest, largest := range map[wire.Digest]uint64{
		wire.DigestNone: 0, wire.DigestCRC32C: math.MaxUint32, wire.DigestXXH3: math.MaxUint64,
		wire.DigestBLAKE3: math.MaxUint64,
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
				chunkOf(func(r *Record) { r.Check = largest + 1 }), wire.ErrMalformed})
		}
		setup.run(t, true, checks)
	}
}

// Without a planned digest, a file is compared by CRC-32C.
func TestSumWithoutADigest(t *testing.T) {
	from, to := senderHello(), receiverHello()
	from.Digest, to.Digest = wire.DigestNone, wire.DigestNone
	setup := checkSetup{from, to, func(k *pair) {
		k.announce(rootFile())
		k.answer(Answer{Kind: AnswerSum})
	}}
	setup.run(t, true, []nativeCheck{
		{"xxh3", nil, sumMessage{0, nativeSum}, nil},
		{"crc32c", nil, sumMessage{0, nativeDigest}, wire.ErrMalformed},
		{"none", nil, sumMessage{0, nil}, wire.ErrMalformed},
	})
}
