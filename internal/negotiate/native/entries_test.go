package native

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

func TestEntriesAtTheirBoundaries(t *testing.T) {
	directory, link := entryAt(1, wire.EntryDirectory, "d"), entryAt(1, wire.EntryHardLink, "z")
	link.Link = []byte("d/a")
	setup := checkSetup{treeHello(), receiverHello(), func(k *pair) {
		k.announce(rootDirectory(), directory, fileAt(2, "b", 1))
	}}
	list := func(entries ...wire.Entry) []wire.Entry { return entries }
	setup.run(t, true, []nativeCheck{
		{"next sibling", nil, list(fileAt(2, "c", 1)), nil},
		{"longer name", nil, list(fileAt(2, "b\x00"[:1]+"0", 1)), nil},
		{"high byte", nil, list(fileAt(2, "\xff", 1)), nil},
		{"sibling of the parent", nil, list(fileAt(1, "e", 1)), nil},
		{"directory after its content", nil, list(fileAt(1, "d0", 1)), nil},
		{"hard link", nil, list(link), nil},
		{"no entries", nil, list(), wire.ErrMalformed},
		{"duplicate", nil, list(fileAt(2, "b", 1)), wire.ErrMalformed},
		{"directory of a file's name", nil, list(entryAt(2, wire.EntryDirectory, "b")), wire.ErrMalformed},
		{"unsorted", nil, list(fileAt(2, "a", 1)), wire.ErrMalformed},
		{"in a pack", nil, list(fileAt(2, "c", wire.MinChunk)), nil},
		{"too large for a pack", nil, list(fileAt(2, "c", wire.MinChunk+1)), wire.ErrMalformed},
		{"in chunks", nil, list(chunkedAt(2, "c", wire.MinChunk+1)), nil},
		{"capital after small", nil, list(fileAt(2, "B", 1)), wire.ErrMalformed},
		{"parent's name again", nil, list(entryAt(1, wire.EntryDirectory, "d")), wire.ErrMalformed},
		{"before the parent", nil, list(fileAt(1, "c", 1)), wire.ErrMalformed},
		{"child of a file", nil, list(fileAt(3, "a", 1)), wire.ErrMalformed},
		{"depth that is skipped", func(k *pair) { k.announce(entryAt(2, wire.EntryDirectory, "c")) },
			list(fileAt(4, "a", 1)), wire.ErrMalformed},
		{"second root", nil, list(rootDirectory()), wire.ErrMalformed},
		{"stream in a tree", nil, list(wire.Entry{Kind: wire.EntryFile, Flags: rootStream().Flags, Depth: 2,
			Name: []byte("c")}),
			wire.ErrMalformed},
		{"child of a symlink", func(k *pair) {
			e := entryAt(2, wire.EntrySymlink, "c")
			e.Link = []byte("/")
			k.announce(e)
		}, list(fileAt(3, "passwd", 1)), wire.ErrMalformed},
		{"after the end of a subtree", func(k *pair) {
			k.announce(entryAt(1, wire.EntryDirectory, "e"), fileAt(2, "z", 1), entryAt(1, wire.EntryDirectory, "f"))
		}, list(fileAt(2, "a", 1)), nil},
	})
}

// The sizes of all files of a transfer add up to what fits into 63 bits, so that programs can add them up.
func TestSizesAddUp(t *testing.T) {
	setup := checkSetup{treeHello(), receiverHello(), func(k *pair) {
		k.sender.entries.bytes, k.receiver.entries.bytes = math.MaxInt64-15, math.MaxInt64-15
		k.announce(rootDirectory(), chunkedAt(1, "a", 10))
	}}
	setup.run(t, true, []nativeCheck{
		{"all", nil, []wire.Entry{chunkedAt(1, "b", 5)}, nil},
		{"one byte more", nil, []wire.Entry{chunkedAt(1, "b", 6)}, wire.ErrMalformed},
		{"in a pack", nil, []wire.Entry{fileAt(1, "b", 6)}, wire.ErrMalformed},
		{"another transfer", func(k *pair) {
			k.sender.entries.reset()
			k.receiver.entries.reset()
			k.sender.order.Reset()
			k.receiver.order.Reset()
			k.announce(rootDirectory())
		}, []wire.Entry{chunkedAt(1, "b", wire.MaxSize)}, nil},
	})
}

// The second entry of a message is checked against the first.
func TestEntriesOfOneMessageAreChecked(t *testing.T) {
	for name, entries := range map[string][]wire.Entry{
		"duplicate":       {rootDirectory(), fileAt(1, "a", 0), fileAt(1, "a", 0)},
		"child of a file": {rootDirectory(), fileAt(1, "a", 0), fileAt(2, "a", 0)},
		"second root":     {rootDirectory(), rootDirectory()},
	} {
		k := newPair(t, wire.Host, treeHello(), receiverHello())
		k.open()
		step, err := k.receiver.Receive(encodeEntries(entries))
		wiretest.WantCheck(t, name, err, wire.ErrMalformed)
		if step.Entries != nil {
			t.Errorf("%s: got %d entries beside the error", name, len(step.Entries))
		}
	}
}

func TestRootsAtTheirBoundaries(t *testing.T) {
	list := func(entries ...wire.Entry) []wire.Entry { return entries }
	tree := checkSetup{treeHello(), receiverHello(), nil}
	tree.run(t, true, []nativeCheck{
		{"directory", nil, list(rootDirectory()), nil},
		{"file in place of a tree", nil, list(rootFile()), wire.ErrMalformed},
		{"no root", nil, list(fileAt(1, "a", 1)), wire.ErrMalformed},
	})
	file := checkSetup{senderHello(), receiverHello(), nil}
	file.run(t, true, []nativeCheck{
		{"file", nil, list(rootFile()), nil},
		{"directory in place of a file", nil, list(rootDirectory()), wire.ErrMalformed},
		{"stream in place of a file", nil, list(rootStream()), wire.ErrMalformed},
		{"file that does not come in chunks", nil, list(fileAt(0, "", 1)), wire.ErrMalformed},
		{"second file", func(k *pair) { k.announce(rootFile()) }, list(fileAt(1, "a", 1)), wire.ErrMalformed},
		{"second root", func(k *pair) { k.announce(rootFile()) }, list(rootFile()), wire.ErrMalformed},
	})
	stream := checkSetup{streamHello(), receiverHello(), nil}
	stream.run(t, true, []nativeCheck{
		{"stream", nil, list(rootStream()), nil},
		{"file in place of a stream", nil, list(rootFile()), wire.ErrMalformed},
	})
	plain := treeHello()
	plain.Flags &^= FlagLinks
	link := entryAt(1, wire.EntryHardLink, "z")
	link.Link = []byte("a")
	disagreed := checkSetup{plain, receiverHello(), func(k *pair) { k.announce(rootDirectory()) }}
	disagreed.run(t, true, []nativeCheck{{"hard link that was not agreed on", nil, list(link), wire.ErrMalformed}})
}

// openDirectories announces and commits directories in one another, with names of the given lengths.
func openDirectories(k *pair, lengths ...int) {
	k.announce(rootDirectory())
	k.commit(0)
	for i, length := range lengths {
		k.announce(entryAt(i+1, wire.EntryDirectory, strings.Repeat("n", length)))
		k.commit(uint32(i + 1))
	}
}

// A path has at most 4096 bytes, with the slashes, and thus at most 2048 names.
func TestPathsAtTheirBoundaries(t *testing.T) {
	long := func(k *pair) {
		openDirectories(k, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255)
	}
	setup := checkSetup{treeHello(), receiverHello(), long}
	name := func(length int) []wire.Entry { return []wire.Entry{fileAt(16, strings.Repeat("n", length), 0)} }
	setup.run(t, true, []nativeCheck{
		{"4095 bytes", nil, name(255), nil},
		{"4096 bytes", func(k *pair) { k.announce(entryAt(16, wire.EntryDirectory, strings.Repeat("n", 254))) },
			[]wire.Entry{fileAt(17, "n", 0)}, nil},
		{"4097 bytes", func(k *pair) { k.announce(entryAt(16, wire.EntryDirectory, strings.Repeat("n", 255))) },
			[]wire.Entry{fileAt(17, "n", 0)}, wire.ErrMalformed},
		{"short again", nil, []wire.Entry{fileAt(1, "o", 0)}, nil},
	})
	deep := make([]int, 2047)
	for i := range deep {
		deep[i] = 1
	}
	setup.before = func(k *pair) { openDirectories(k, deep...) }
	setup.run(t, true, []nativeCheck{
		{"deepest", nil, []wire.Entry{fileAt(2048, "n", 0)}, nil},
		{"deepest, longest", nil, []wire.Entry{fileAt(2048, "nn", 0)}, nil},
		{"deepest, too long", nil, []wire.Entry{fileAt(2048, "nnn", 0)}, wire.ErrMalformed},
		{"too deep", func(k *pair) { k.announce(entryAt(2048, wire.EntryDirectory, "n")) }, []wire.Entry{fileAt(2049,
			"n", 0)},
			wire.ErrMalformed},
	})
}

// manyFiles returns files for the root, numbered from 0.
func manyFiles(from, to int) []wire.Entry {
	var files []wire.Entry
	for i := from; i < to; i++ {
		files = append(files, fileAt(1, fmt.Sprintf("f%08d", i), 1))
	}
	return files
}

// announceAll announces entries in as many messages as needed.
func (k *pair) announceAll(entries []wire.Entry) {
	k.t.Helper()
	for len(entries) > 0 {
		msg, used, err := k.sender.Entries(nil, entries)
		step := k.say(k.sender, EntriesAnnounced)(msg, err)
		for i, e := range step.Entries {
			if e.Number != entries[i].Number || !bytes.Equal(e.Name, entries[i].Name) {
				k.t.Fatalf("entry %d %q arrived as %d %q", entries[i].Number, entries[i].Name, e.Number, e.Name)
			}
		}
		entries = entries[used:]
	}
}

// However many entries there are, at most MaxOpen are between the oldest undecided and the newest.
func TestOpenEntriesAreBounded(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	k.announceAll(manyFiles(0, MaxOpen-1))
	one := manyFiles(MaxOpen, MaxOpen+1)
	for _, decide := range []func(){
		func() {},
		func() { k.answer(Answer{Entry: MaxOpen - 1, Kind: AnswerHave}) },
		func() { k.answer(Answer{Entry: 1, Kind: AnswerHave}) },
	} {
		decide()
		if _, _, err := k.sender.Entries(nil, one); k.sender.Room() != 0 || err == nil {
			t.Fatalf("room for %d while the first entry is undecided: %v", k.sender.Room(), err)
		}
	}
	k.commit(0)
	if k.sender.Room() != 2 || k.sender.Undecided() != MaxOpen-3 {
		t.Errorf("room for %d, %d undecided", k.sender.Room(), k.sender.Undecided())
	}
	msg, used, err := k.sender.Entries(nil, manyFiles(MaxOpen, MaxOpen+10))
	if used != 2 {
		t.Errorf("announced %d entries, %v", used, err)
	}
	k.say(k.sender, EntriesAnnounced)(msg, err)
	_, err = k.receiver.Receive(encodeEntries(manyFiles(MaxOpen+10, MaxOpen+11)))
	wantNative(t, err, wire.ErrOutOfOrder)
}

// A record belongs to its entry, also after that is decided, until another entry takes the place of it.
func TestRecords(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	k.announceAll(manyFiles(0, MaxOpen-1))
	for number := range uint32(MaxOpen) {
		k.sender.Attach(number, number)
	}
	k.commit(0)
	if got := k.sender.Record(0); got != uint32(0) {
		t.Errorf("record %v of a decided entry", got)
	}
	k.announceAll(manyFiles(MaxOpen, MaxOpen+1))
	k.sender.Attach(MaxOpen, "next")
	for number, want := range map[uint32]any{
		0: nil, 1: uint32(1), MaxOpen - 1: uint32(MaxOpen - 1), MaxOpen: "next", MaxOpen + 1: nil, 1<<32 - 1: nil,
	} {
		if got := k.sender.Record(number); got != want {
			t.Errorf("record %v of entry %d instead of %v", got, number, want)
		}
	}
	records := slices.Collect(k.sender.Records())
	if len(records) != MaxOpen || records[0] != uint32(1) || records[MaxOpen-1] != "next" {
		t.Errorf("%d records from %v on", len(records), records[0])
	}
	for e := range k.sender.OpenEntries() {
		if e.Record != k.sender.Record(e.Number) {
			t.Errorf("record %v of open entry %d", e.Record, e.Number)
		}
	}
}

// A file is unanswered until the receiver needs it, has it, or either side has failed it.
func TestUnanswered(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	k.announceAll(manyFiles(0, 4))
	k.answer(Answer{Entry: 1, Kind: AnswerSum}, need(2)[0], Answer{Entry: 3, Kind: AnswerHave})
	if got := [...]int{k.sender.Unanswered(), k.receiver.Unanswered()}; got != [...]int{2, 2} {
		t.Errorf("%d unanswered on the two sides, of one file that is compared and one without an answer", got)
	}
	k.fail(k.sender, Failure{Entry: 1})
	k.fail(k.receiver, Failure{Entry: 4})
	if got := [...]int{k.sender.Unanswered(), k.receiver.Unanswered()}; got != [2]int{} {
		t.Errorf("%d unanswered on the two sides after the failures", got)
	}
}

// A pack in flight keeps the places of its files, even if they are decided.
func TestPackInFlightKeepsItsPlaces(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	k.commit(0)
	k.announceAll(manyFiles(0, 3))
	k.answer(need(1, 2, 3)...)
	k.say(k.sender, Packed)(k.sender.Pack(nil, packOf(
		PackedFile{Entry: 1, Length: 1}, PackedFile{Entry: 2, Position: 1, Length: 1})))
	k.fail(k.receiver, Failure{Entry: 1})
	k.announceAll(manyFiles(3, MaxOpen))
	if k.sender.Room() != 0 {
		t.Errorf("room for %d", k.sender.Room())
	}
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{}}))
	if k.sender.Room() != 1 {
		t.Errorf("room for %d after the acknowledgement", k.sender.Room())
	}
	k.commit(2)
	if k.sender.Room() != 2 {
		t.Errorf("room for %d after the result", k.sender.Room())
	}
}

// A message has as many entries as fit; one that cannot be announced is refused when it is the first.
func TestEntriesFitTheChannel(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	msg, used, err := k.sender.Entries(nil, manyFiles(0, 100))
	if length := MaxEntrySize(9, 0) - wire.ListSize; err != nil || used != (4080-wire.ListSize)/length ||
		len(msg) > 4080 {
		t.Errorf("%d entries in %d bytes, %v", used, len(msg), err)
	}
	link := entryAt(1, wire.EntrySymlink, "g")
	for length, want := range map[int]error{4080 - MaxEntrySize(1, 0): nil, 4081 - MaxEntrySize(1,
		0): wire.ErrTooLarge} {
		link.Link = bytes.Repeat([]byte("x"), length)
		sender := newPair(t, wire.Host, treeHello(), receiverHello())
		sender.open()
		sender.announce(rootDirectory())
		msg, used, err := sender.sender.Entries(nil, []wire.Entry{link})
		wiretest.WantCheck(t, fmt.Sprintf("a symlink of %d bytes", length), err, want)
		if want == nil && (len(msg) != 4080 || used != 1) || want != nil && (len(msg) != 0 || used != 0) {
			t.Errorf("%d entries in %d bytes", used, len(msg))
		}
	}
	bad := []wire.Entry{fileAt(1, "h", 0), fileAt(1, "..", 0), fileAt(1, "i", 0)}
	if _, used, err := k.sender.Entries(nil, bad); used != 1 || err != nil {
		t.Errorf("announced %d of a list whose second entry is wrong, %v", used, err)
	}
	if msg, used, err := k.sender.Entries([]byte("x"), bad[1:]); used != 0 || err == nil || string(msg) != "x" {
		t.Errorf("announced %d of a list whose first entry is wrong, % x, %v", used, msg, err)
	}
}

// The names of a step do not depend on the message after Receive.
func TestEntriesShareNoMemoryWithMessages(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory())
	msg, _, err := k.sender.Entries(nil, []wire.Entry{fileAt(1, "name", 1)})
	if err != nil {
		t.Fatal(err)
	}
	step, err := k.receiver.Receive(msg)
	clear(msg)
	if err != nil || len(step.Entries) != 1 || string(step.Entries[0].Name) != "name" || step.Entries[0].Number != 1 {
		t.Errorf("%+v, %v", step.Entries, err)
	}
}
