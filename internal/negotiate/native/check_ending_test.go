package native

import (
	"math"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

func TestResultsAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{treeHello(), receiverHello(), func(k *pair) {
		link := entryAt(1, wire.EntrySymlink, "l")
		link.Link, link.Flags = []byte("x"), wire.EntryHasMetadata
		k.announce(rootDirectory(), chunkedAt(1, "a", 10), chunkedAt(1, "b", 0), fileAt(1, "c", 0), link)
		k.answer(need(1, 2)...)
		k.end(1, 10)
		k.settle([]Record{data(1, 0, 0, 9)}, Ack{})
		k.end(2, 0)
	}}
	setup.run(t, false, []nativeCheck{
		{"directory and empty file", nil, resultsMessage{2, 0}, nil},
		{"none", nil, resultsMessage(nil), wire.ErrMalformed},
		{"twice in a message", nil, resultsMessage{0, 0}, wire.ErrOutOfOrder},
		{"twice", func(k *pair) { k.commit(0) }, resultsMessage{0}, wire.ErrOutOfOrder},
		{"incomplete", nil, resultsMessage{0, 1}, wire.ErrOutOfOrder},
		{"one byte in flight", func(k *pair) {
			k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(1, 0, 9, 1)}))
		}, resultsMessage{1}, wire.ErrOutOfOrder},
		{"complete", func(k *pair) { k.settle([]Record{data(1, 0, 9, 1)}, Ack{}) }, resultsMessage{1}, nil},
		{"not answered", nil, resultsMessage{3}, wire.ErrOutOfOrder},
		{"without its metadata", nil, resultsMessage{4}, wire.ErrOutOfOrder},
		{"no such entry", nil, resultsMessage{5}, wire.ErrOutOfOrder},
		{"last number", nil, resultsMessage{math.MaxUint32}, wire.ErrOutOfOrder},
	})
	both := receiverHello()
	both.Flags |= FlagTree
	k := newPair(t, wire.Host, treeHello(), both)
	k.begin()
	k.announce(rootDirectory())
	_, err := k.receiver.Results(nil, []uint32{0})
	wantNative(t, err, wire.ErrMalformed)
	k.answer(Answer{Kind: AnswerHave})
	k.finish(Counts{Unchanged: 1})
}

func TestMetadataComesInOrder(t *testing.T) {
	root := rootFile()
	root.Flags |= wire.EntryHasMetadata
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
		{"gap", nil, part(10, 6, "7890"), wire.ErrMalformed},
		{"overlap", nil, part(10, 4, "567890"), wire.ErrMalformed},
		{"again", nil, part(10, 0, "12345"), wire.ErrMalformed},
		{"other total", nil, part(11, 5, "67890"), wire.ErrMalformed},
		{"another entry", nil, metadataMessage{1, Metadata{10, 5, []byte("6")}}, wire.ErrOutOfOrder},
		{"end in the middle", nil, endMessage{0, nativeSize, nativeDigest}, wire.ErrOutOfOrder},
		{"more than there is", func(k *pair) {
			k.say(k.sender, PeerMetadata)(k.sender.Metadata(nil, 0, part(10, 5, "67890").Metadata))
		}, part(10, 10, "1"), wire.ErrMalformed},
		{"after the end", func(k *pair) {
			k.say(k.sender, PeerMetadata)(k.sender.Metadata(nil, 0, part(10, 5, "67890").Metadata))
			k.end(0, nativeSize)
		}, part(10, 0, "1"), wire.ErrOutOfOrder},
	})
}

func TestMetadataHasToBeAnnounced(t *testing.T) {
	one := metadataMessage{0, Metadata{1, 0, []byte("1")}}
	without := checkSetup{senderHello(), receiverHello(), needRoot(rootFile(), 0)}
	without.run(t, true, []nativeCheck{{"not announced", nil, one, wire.ErrOutOfOrder}})
	root := rootFile()
	root.Flags |= wire.EntryHasMetadata
	early := checkSetup{senderHello(), receiverHello(), func(k *pair) { k.announce(root) }}
	early.run(t, true, []nativeCheck{{"before the answer", nil, one, wire.ErrOutOfOrder}})
	plain := senderHello()
	plain.Flags &^= FlagXAttr
	disagreed := checkSetup{plain, receiverHello(), nil}
	disagreed.run(t, true, []nativeCheck{{"not agreed on", nil, []wire.Entry{root}, wire.ErrMalformed}})
}

func TestFinishAtItsBoundaries(t *testing.T) {
	link := entryAt(1, wire.EntrySymlink, "l")
	link.Link, link.Flags = []byte("x"), wire.EntryHasMetadata
	setup := checkSetup{treeHello(), receiverHello(), nil}
	setup.run(t, true, []nativeCheck{
		{"nothing announced", nil, finishMessage{0, 0, ""}, wire.ErrMalformed},
		{"directory without a result", func(k *pair) { k.announce(rootDirectory()) }, finishMessage{1, 7, ""}, nil},
		{"file without an answer", func(k *pair) { k.announce(rootDirectory(), chunkedAt(1, "a", 0)) },
			finishMessage{2, 0, ""}, wire.ErrOutOfOrder},
		{"file without an end", func(k *pair) {
			k.announce(rootDirectory(), fileAt(1, "a", 0))
			k.answer(need(1)...)
		}, finishMessage{2, 0, ""}, wire.ErrOutOfOrder},
		{"file with an end", func(k *pair) {
			k.announce(rootDirectory(), chunkedAt(1, "a", 0))
			k.answer(need(1)...)
			k.end(1, 0)
		}, finishMessage{2, 0, ""}, nil},
		{"metadata missing", func(k *pair) { k.announce(rootDirectory(), link) }, finishMessage{2, 0, ""},
			wire.ErrOutOfOrder},
		{"entries after it", func(k *pair) {
			k.announce(rootDirectory())
			k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, ""))
		}, []wire.Entry{fileAt(1, "a", 0)}, wire.ErrOutOfOrder},
	})
	file := checkSetup{senderHello(), receiverHello(), func(k *pair) {
		needRoot(rootFile(), 0)(k)
		k.end(0, nativeSize)
	}}
	file.run(t, true, []nativeCheck{
		{"file", nil, finishMessage{1, 0, ""}, nil},
		{"missing entry of a file", nil, finishMessage{1, 1, ""}, wire.ErrMalformed},
	})
	for _, total := range []uint32{0, 2, math.MaxUint32} {
		k := setup.pair(t, nativeCheck{})
		k.announce(rootDirectory())
		_, err := k.receiver.Receive(AppendFinish(nil, total, 0, ""))
		wantNative(t, err, wire.ErrMalformed)
	}
}

// FINISHED is refused unless it agrees with what the sender has counted, and with the planned durability.
func TestFinishedAtItsBoundaries(t *testing.T) {
	done := Counts{Committed: 1}
	for name, test := range map[string]struct {
		durability wire.Durability
		counts     Counts
		want       error
	}{
		"as planned":        {wire.DurabilityFull, done, nil},
		"less durable":      {wire.DurabilityFile, done, wire.ErrMalformed},
		"not durable":       {wire.DurabilityNone, done, wire.ErrMalformed},
		"one more":          {wire.DurabilityFull, Counts{Committed: 2}, wire.ErrMalformed},
		"another outcome":   {wire.DurabilityFull, Counts{Unchanged: 1}, wire.ErrMalformed},
		"an entry failed":   {wire.DurabilityFull, Counts{Failed: 1}, wire.ErrMalformed},
		"a failure besides": {wire.DurabilityFull, Counts{Committed: 1, Failed: 1}, wire.ErrMalformed},
	} {
		n := reachNative(t, nativeRole{wire.DPU, true, gridFile}, "finishing+decided")
		_, err := n.Receive(AppendFinished(nil, test.durability, test.counts, ""))
		wiretest.WantCheck(t, name, err, test.want)
	}
	n := reachNative(t, nativeRole{wire.DPU, false, gridFile}, "finishing+decided")
	for _, d := range []wire.Durability{3, wire.DurabilityNone, wire.DurabilityFile} {
		_, err := n.Finished(nil, d, "")
		wantNative(t, err, wire.ErrMalformed)
	}
	wiretest.Must(t)(n.Finished(nil, wire.DurabilityFull, ""))
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
			k := pathPair(t, wire.Client, path)
			want := map[wire.Path][2]string{wire.PathMessages: {shown, ""}, wire.PathRMA: {"", shown}}[path]
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
	received := k.say(k.receiver, PeerFinished)(k.receiver.Finished(nil, wire.DurabilityFull, name))
	return [2]string{sent.Transport, received.Transport}
}

// A name from the wrong side, or on a path that has no transport of UCX, breaks the protocol.
func TestTransportOfTheWrongSide(t *testing.T) {
	for _, path := range []wire.Path{wire.PathTLS, wire.PathTCP, wire.PathRMA, wire.PathFast} {
		k := pathPair(t, wire.Client, path)
		k.sendEmpty()
		_, err := k.receiver.Receive(AppendFinish(nil, 1, 0, "tcp/eth0"))
		wantNative(t, err, wire.ErrMalformed)
	}
	for _, path := range []wire.Path{wire.PathTLS, wire.PathMessages, wire.PathFast} {
		k := pathPair(t, wire.Client, path)
		k.sendEmpty()
		k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 0, ""))
		k.say(k.receiver, Committed)(k.receiver.Results(nil, []uint32{0}))
		_, err := k.sender.Receive(AppendFinished(nil, wire.DurabilityFull, Counts{Committed: 1}, "tcp/eth0"))
		wantNative(t, err, wire.ErrMalformed)
	}
}

// A phase starts again with each transfer, and never goes back within one.
func TestNeitherPhasesNorWorkGoBack(t *testing.T) {
	k := newPair(t, wire.Host, senderHello(), receiverHello())
	k.open()
	for _, b := range []Beat{{1, 5}, {1, 5}, {1, 6}, {2, 0}, {7, 0}, {7, math.MaxUint64 - 1}} {
		for _, n := range []*Session{k.sender, k.receiver} {
			if got := k.say(n, PeerBeat)(n.Beat(nil, b)).Beat; got != b {
				t.Errorf("got %+v, want %+v", got, b)
			}
		}
	}
	for name, b := range map[string]Beat{
		"less work": {7, 7}, "an earlier phase": {6, math.MaxUint64}, "no such phase": {MaxPhase + 1, 0},
	} {
		_, err := k.sender.Beat(nil, b)
		wiretest.WantCheck(t, name+", called", err, wire.ErrMalformed)
		peer := *k.receiver
		_, err = peer.Receive(AppendBeat(nil, b))
		wiretest.WantCheck(t, name+", received", err, wire.ErrMalformed)
	}
	k.announce(rootFile())
	k.answer(Answer{Kind: AnswerHave})
	k.finish(Counts{Unchanged: 1})
	k.say(k.receiver, PeerBeat)(k.receiver.Beat(nil, Beat{0, 1}))
	_, err := k.sender.Beat(nil, Beat{0, 1})
	wantNative(t, err, wire.ErrMalformed)
	k.begin()
	k.say(k.sender, PeerBeat)(k.sender.Beat(nil, Beat{0, 1}))
}
