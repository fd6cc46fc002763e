package native

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// treeOf returns a pair that has announced a directory with these files, and committed the directory.
func treeOf(t *testing.T, sending wire.Side, files ...wire.Entry) *pair {
	t.Helper()
	k := newPair(t, sending, fourSlots(treeHello()), fourSlots(receiverHello()))
	k.open()
	k.announce(append([]wire.Entry{rootDirectory()}, files...)...)
	k.commit(0)
	return k
}

func TestFailuresOfTheSenderAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{treeHello(), receiverHello(), func(k *pair) {
		link := entryAt(1, wire.EntrySymlink, "l")
		link.Link = []byte("x")
		k.announce(rootDirectory(), fileAt(1, "a", 1), fileAt(1, "b", 1), fileAt(1, "c", 1), chunkedAt(1, "d", 0), link)
		k.answer(append(need(1, 4), Answer{Entry: 2, Kind: AnswerSum})...)
		k.end(4, 0)
	}}
	setup.run(t, true, []nativeCheck{
		{"needed", nil, Failure{Entry: 1}, nil},
		{"asked", nil, Failure{Entry: 2}, nil},
		{"not answered", nil, Failure{Entry: 3}, wire.ErrOutOfOrder},
		{"ended", nil, Failure{Entry: 4}, wire.ErrOutOfOrder},
		{"symlink", nil, Failure{Entry: 5}, wire.ErrOutOfOrder},
		{"directory", nil, Failure{Entry: 0}, wire.ErrOutOfOrder},
		{"committed directory", func(k *pair) { k.commit(0) }, Failure{Entry: 0}, wire.ErrOutOfOrder},
		{"summed", func(k *pair) { k.say(k.sender, PeerSum)(k.sender.Sum(nil, 2, nativeSum)) }, Failure{Entry: 2},
			wire.ErrOutOfOrder},
		{"decided", func(k *pair) { k.fail(k.sender, Failure{Entry: 1}) }, Failure{Entry: 1}, wire.ErrOutOfOrder},
		{"no such entry", nil, Failure{Entry: 6}, wire.ErrOutOfOrder},
	})
}

func TestFailuresOfTheReceiverAtTheirBoundaries(t *testing.T) {
	setup := checkSetup{treeHello(), receiverHello(), func(k *pair) {
		k.announce(rootDirectory(), fileAt(1, "a", 1), fileAt(1, "b", 1), fileAt(1, "c", 1), chunkedAt(1, "d", 0))
		k.answer(append(need(1, 4), Answer{Entry: 2, Kind: AnswerSum})...)
		k.end(4, 0)
	}}
	var checks []nativeCheck
	for entry := range uint32(5) {
		checks = append(checks, nativeCheck{string(rune('0' + entry)), nil, Failure{Entry: entry}, nil})
	}
	setup.run(t, false, append(checks,
		nativeCheck{"no such entry", nil, Failure{Entry: 5}, wire.ErrOutOfOrder},
		nativeCheck{"decided", func(k *pair) { k.fail(k.receiver, Failure{Entry: 1}) }, Failure{Entry: 1},
			wire.ErrOutOfOrder},
		nativeCheck{"committed file", func(k *pair) { k.commit(4) }, Failure{Entry: 4}, wire.ErrOutOfOrder},
		nativeCheck{"committed file beside a directory", func(k *pair) { k.commit(0, 4) }, Failure{Entry: 4},
			wire.ErrOutOfOrder},
		nativeCheck{"committed directory", func(k *pair) { k.commit(0) }, Failure{Entry: 0}, nil},
		nativeCheck{"unchanged directory", func(k *pair) { k.answer(Answer{Kind: AnswerHave}) }, Failure{Entry: 0},
			nil},
		nativeCheck{"committed directory twice", func(k *pair) {
			k.commit(0)
			k.say(k.receiver, EntryFailed)(k.receiver.Fail(nil, Failure{Entry: 0}))
		}, Failure{Entry: 0}, wire.ErrOutOfOrder},
		nativeCheck{"committed directory twice beside another", func(k *pair) {
			k.announce(entryAt(1, wire.EntryDirectory, "e"))
			k.commit(0, 5)
			k.say(k.receiver, EntryFailed)(k.receiver.Fail(nil, Failure{Entry: 5}))
		}, Failure{Entry: 5}, wire.ErrOutOfOrder},
	))
}

// A directory whose place in the table is reused can still fail, but not more of them than were decided.
func TestLateFailuresOfDirectories(t *testing.T) {
	k := newPair(t, wire.Host, treeHello(), receiverHello())
	k.open()
	k.announce(rootDirectory(), entryAt(1, wire.EntryDirectory, "a"), entryAt(1, wire.EntryDirectory, "b"))
	k.commit(2, 0)
	k.answer(Answer{Entry: 1, Kind: AnswerHave})
	k.announceAll(manyFiles(0, 2*MaxOpen)[:MaxOpen])
	for entry := range uint32(2) {
		k.say(k.receiver, EntryFailed)(k.receiver.Fail(nil, Failure{Entry: entry, Code: wire.AbortTarget,
			Text: "times"}))
	}
	want := Counts{Committed: 2, Unchanged: 1, Failed: 2}
	if k.sender.entries.counts != want || k.receiver.entries.counts != want {
		t.Errorf("counted %+v and %+v", k.sender.entries.counts, k.receiver.entries.counts)
	}
	k.say(k.receiver, EntryFailed)(k.receiver.Fail(nil, Failure{Entry: 2}))
	_, err := k.receiver.Fail(nil, Failure{Entry: 2})
	wantNative(t, err, wire.ErrOutOfOrder)
	_, err = k.sender.Receive(AppendFailure(nil, Failure{Entry: 1}))
	wantNative(t, err, wire.ErrOutOfOrder)
}

// crossing collects what one side sends before the other's FAILURE arrives.
func crossing(t *testing.T, calls ...func() ([]byte, error)) [][]byte {
	t.Helper()
	var sent [][]byte
	for _, call := range calls {
		sent = append(sent, wiretest.Must(t)(call()))
	}
	return sent
}

// Whatever the sender sent about an entry before the receiver's FAILURE arrived is accepted, and has no effect on the
// outcome. After the sender's FAILURE nothing more is.
func TestMessagesThatCrossAFailure(t *testing.T) { bothWays(t, messagesThatCrossAFailure) }

func messagesThatCrossAFailure(t *testing.T, sending wire.Side) {
	k := treeOf(t, sending, chunkedAt(1, "a", 10), fileAt(1, "b", 10), fileAt(1, "c", 10))
	k.answer(append(need(1, 2), Answer{Entry: 3, Kind: AnswerSum})...)
	sent := crossing(t,
		func() ([]byte, error) { return k.sender.Chunks(nil, []Record{data(1, 0, 0, 4), data(1, 1, 4, 6)}) },
		func() ([]byte, error) { return k.sender.End(nil, 1, 10, nativeDigest) },
		func() ([]byte, error) { return k.sender.Pack(nil, Pack{2, 0, []PackedFile{{Entry: 2, Length: 10}}}) },
		func() ([]byte, error) { return k.sender.Sum(nil, 3, nativeSum) })
	failures := crossing(t,
		func() ([]byte, error) {
			return k.receiver.Fail(nil, Failure{Entry: 1, Code: wire.AbortTarget, Text: "full"})
		},
		func() ([]byte, error) {
			return k.receiver.Fail(nil, Failure{Entry: 2, Code: wire.AbortTarget, Text: "full"})
		},
		func() ([]byte, error) {
			return k.receiver.Fail(nil, Failure{Entry: 3, Code: wire.AbortTarget, Text: "full"})
		})
	for i, event := range []Event{Announced, PeerEnded, Packed, PeerSum} {
		k.pass(sent[i], k.receiver, event)
	}
	_, err := k.receiver.Answers(nil, need(3))
	wantNative(t, err, wire.ErrOutOfOrder)
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{Slot: 0}, {Slot: 2}}))
	if k.receiver.Undecided() != 3 || k.receiver.Settled() || k.receiver.Unconfirmed() != 0 {
		t.Errorf("%d undecided, %d unconfirmed", k.receiver.Undecided(), k.receiver.Unconfirmed())
	}
	for _, msg := range failures {
		step := k.pass(msg, k.sender, EntryFailed)
		if step.Failure.Code != wire.AbortTarget || step.Failure.Text != "full" {
			t.Errorf("got %+v", step.Failure)
		}
		k.pass(step.Reply, k.receiver, None)
	}
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{Slot: 1, Bad: true}}))
	k.finish(Counts{Committed: 1, Failed: 3})
}

func TestNothingFollowsTheAnswerToAFailure(t *testing.T) {
	for name, msg := range map[string][]byte{
		"CHUNKS":  AppendChunks(nil, []Record{data(1, 0, 0, 4)}),
		"PACK":    AppendPack(nil, packOf(PackedFile{Entry: 1, Length: 10}), wire.DigestCRC32C),
		"END":     AppendEnd(nil, 1, 10, nativeDigest),
		"FAILURE": AppendFailure(nil, Failure{Entry: 1}),
	} {
		k := treeOf(t, wire.Host, chunkedAt(1, "a", 10))
		k.answer(need(1)...)
		k.fail(k.receiver, Failure{Entry: 1})
		_, err := k.receiver.Receive(msg)
		wiretest.WantCheck(t, name, err, wire.ErrOutOfOrder)
	}
}

// Both sides fail the same entry at the same time: it counts once, and neither answers.
func TestFailuresThatCross(t *testing.T) {
	k := treeOf(t, wire.DPU, chunkedAt(1, "a", 10))
	k.answer(need(1)...)
	k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{data(1, 3, 0, 4)}))
	sent := crossing(t, func() ([]byte, error) { return k.sender.Fail(nil, Failure{Entry: 1, Code: wire.AbortSource}) },
		func() ([]byte, error) { return k.receiver.Fail(nil, Failure{Entry: 1, Code: wire.AbortTarget}) })
	_, err := k.sender.Chunks(nil, []Record{data(1, 0, 4, 4)})
	wantNative(t, err, wire.ErrOutOfOrder)
	for i, to := range []*Session{k.receiver, k.sender} {
		if step := k.pass(sent[i], to, None); step.Reply != nil {
			t.Errorf("answered % x", step.Reply)
		}
	}
	k.say(k.receiver, Acknowledged)(k.receiver.Acks(nil, []Ack{{Slot: 3}}))
	k.finish(Counts{Committed: 1, Failed: 1})
}

// FINISHED waits for the sender's answer to the last failure.
func TestFinishedWaitsForTheAnswerToAFailure(t *testing.T) {
	k := treeOf(t, wire.Host, chunkedAt(1, "a", 10))
	k.answer(need(1)...)
	k.end(1, 10)
	k.settle([]Record{data(1, 0, 0, 10)}, Ack{})
	k.say(k.sender, PeerFinish)(k.sender.Finish(nil, 2, ""))
	step := k.say(k.receiver, EntryFailed)(k.receiver.Fail(nil, Failure{Entry: 1, Code: wire.AbortDigest}))
	_, err := k.receiver.Finished(nil, wire.DurabilityFull, "")
	wantNative(t, err, wire.ErrOutOfOrder)
	k.pass(step.Reply, k.receiver, None)
	if !k.receiver.Settled() {
		t.Error("not settled")
	}
	k.say(k.receiver, PeerFinished)(k.receiver.Finished(nil, wire.DurabilityFull, ""))
}

func TestFailureTextFitsTheChannel(t *testing.T) {
	n, err := New(wire.Host, 2, receiverHello(), wire.Limits{MaxMessage: MaxHello})
	if err != nil {
		t.Fatal(err)
	}
	k := &pair{t: t, sender: newNative(t, wire.DPU, senderHello()), receiver: n}
	k.sender.Start()
	k.pass(k.pass(n.Start(), k.sender, Planned).Reply, n, Planned)
	k.begin()
	k.announce(rootFile())
	msg := wiretest.Must(t)(n.Fail(nil, Failure{Text: string(make([]byte, 1000))}))
	if len(msg) != MaxHello {
		t.Errorf("a FAILURE of %d bytes on a channel of %d", len(msg), MaxHello)
	}
}

// endedPair has sent a file whose result is missing.
func endedPair(t *testing.T) *pair {
	t.Helper()
	k := newPair(t, wire.DPU, senderHello(), receiverHello())
	k.open()
	needRoot(rootFile(), 0)(k)
	k.settle([]Record{{Kind: HoleRecord, Length: nativeSize}}, Ack{})
	k.end(0, nativeSize)
	return k
}

// A sender that gives up or loses the receiver knows the outcome of every entry, or that it does not know it.
func TestOutcomeOfACancelledTransfer(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*pair) error
		want error
	}{
		"lost": {func(k *pair) error { return k.sender.Disconnected() }, wire.ErrOutcomeUnknown},
		"cancelled and lost": {func(k *pair) error {
			k.sender.Abort(wire.AbortInterrupted, "")
			return k.sender.Disconnected()
		}, wire.ErrOutcomeUnknown},
		"cancelled twice": {func(k *pair) error {
			k.sender.Abort(wire.AbortInterrupted, "")
			if k.sender.Abort(wire.AbortInterrupted, "") != nil {
				return errors.New("sent a second ABORT")
			}
			return k.sender.Disconnected()
		}, wire.ErrOutcomeUnknown},
		"stopped in time": {func(k *pair) error {
			k.cancel()
			k.say(k.receiver, PeerCancelled)(k.receiver.Cancelled(nil))
			if open := k.sender.Unconfirmed(); open != 0 {
				return fmt.Errorf("%d unconfirmed", open)
			}
			return k.sender.Disconnected()
		}, wire.ErrAborted},
		"stopped too late": {func(k *pair) error {
			k.cancel()
			k.commit(0)
			return k.sender.Disconnected()
		}, wire.ErrAborted},
		"failed instead": {func(k *pair) error {
			k.cancel()
			step := k.say(k.receiver, EntryFailed)(k.receiver.Fail(nil, Failure{Code: wire.AbortTarget}))
			if step.Reply != nil {
				return errors.New("answered after the ABORT")
			}
			return k.sender.Disconnected()
		}, wire.ErrAborted},
		"the receiver gives up": {func(k *pair) error {
			_, err := k.sender.Receive(k.receiver.Abort(wire.AbortTarget, ""))
			return err
		}, &PeerAborted{}},
	} {
		k := endedPair(t)
		err := test.then(k)
		if aborted := new(PeerAborted); errors.As(test.want, &aborted) {
			if !errors.As(err, &aborted) || aborted.Code != wire.AbortTarget {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		wiretest.WantCheck(t, name, err, test.want)
	}
}

// cancel passes the sender's ABORT.
func (k *pair) cancel() {
	k.t.Helper()
	step := k.pass(k.sender.Abort(wire.AbortInterrupted, "interrupted"), k.receiver, PeerAborting)
	if step.Failure.Code != wire.AbortInterrupted || step.Failure.Text != "interrupted" {
		k.t.Fatalf("got %+v", step.Failure)
	}
	wantNativeStates(k.t, k, Cancelling, Cancelling)
}

// A receiver that has cancelled fails with the sender's reason, whatever it could still commit.
func TestReceiverOfACancelledTransfer(t *testing.T) {
	k := endedPair(t)
	k.cancel()
	k.say(k.receiver, PeerBeat)(k.receiver.Beat(nil, Beat{1, 1}))
	k.commit(0)
	if msg := wiretest.Must(t)(k.receiver.Cancelled(nil)); wire.TypeOf(msg) != wire.TypeCancelled ||
		k.receiver.State() != Failed {
		t.Errorf("sent % x, in %s", msg, k.receiver.State())
	}
	var aborted *PeerAborted
	if err := k.receiver.Disconnected(); !errors.As(err, &aborted) || aborted.Code != wire.AbortInterrupted {
		t.Errorf("failed with %v", err)
	}
	if k.receiver.Reached() != Transferring {
		t.Errorf("cancelled in %s", k.receiver.Reached())
	}
}

// With nothing that the receiver may be committing, an ABORT ends both sides at once.
func TestAbortWithoutUnconfirmedEntries(t *testing.T) {
	k := newPair(t, wire.DPU, senderHello(), receiverHello())
	k.open()
	needRoot(rootFile(), 0)(k)
	msg := k.sender.Abort(wire.AbortInterrupted, "")
	_, err := k.receiver.Receive(msg)
	if aborted := new(PeerAborted); !errors.As(err, &aborted) || k.receiver.State() != Failed {
		t.Errorf("%v in %s", err, k.receiver.State())
	}
	wantNative(t, k.sender.Disconnected(), wire.ErrAborted)
}

// A session ends well between two transfers only.
func TestDisconnectedBetweenTransfers(t *testing.T) {
	k := newPair(t, wire.Host, senderHello(), receiverHello())
	k.open()
	k.announce(rootFile())
	k.answer(Answer{Kind: AnswerHave})
	k.finish(Counts{Unchanged: 1})
	for _, n := range []*Session{k.sender, k.receiver} {
		if n.Transfers() != 1 || n.Room() != 0 || n.Peer().Software != receiverHello().Software {
			t.Errorf("the %s: %d transfers, room for %d, peer %+v", n.side, n.Transfers(), n.Room(), n.Peer())
		}
		if err := n.Disconnected(); err != nil || n.State() != Done || n.Disconnected() != nil {
			t.Errorf("the %s ended in %s: %v", n.side, n.State(), err)
		}
	}
	fresh := newPair(t, wire.Host, senderHello(), receiverHello())
	wantNative(t, fresh.sender.Disconnected(), wire.ErrPeerLost)
}

// MayFail agrees with Fail for every entry that is not decided.
func TestMayFail(t *testing.T) {
	for _, r := range nativeRoles {
		for _, column := range nativeColumns(r) {
			n := reachNative(t, r, column)
			may := n.MayFail(r.entry())
			_, err := n.Fail(nil, r.failure())
			late := r.course == gridTree && !r.sends && strings.HasSuffix(column, "decided")
			if may != (err == nil) && !late || n.MayFail(r.entry()) && err == nil {
				t.Errorf("%s in %s: %v, and then %v", r, column, may, err)
			}
		}
	}
}

// A withdrawn entry is not sent any more.
func TestSenderKeepsToItsFailure(t *testing.T) {
	k := treeOf(t, wire.Host, chunkedAt(1, "a", 10), fileAt(1, "b", 10), chunkedAt(1, "c", 10))
	k.answer(append(need(1, 2), Answer{Entry: 3, Kind: AnswerSum})...)
	for entry := range uint32(3) {
		wiretest.Must(t)(k.sender.Fail(nil, Failure{Entry: 1 + entry, Code: wire.AbortSource}))
	}
	for name, call := range map[string]func() ([]byte, error){
		"CHUNKS":  func() ([]byte, error) { return k.sender.Chunks(nil, []Record{data(1, 0, 0, 1)}) },
		"END":     func() ([]byte, error) { return k.sender.End(nil, 1, 10, nativeDigest) },
		"PACK":    func() ([]byte, error) { return k.sender.Pack(nil, packOf(PackedFile{Entry: 2, Length: 10})) },
		"SUM":     func() ([]byte, error) { return k.sender.Sum(nil, 3, nativeSum) },
		"FAILURE": func() ([]byte, error) { return k.sender.Fail(nil, Failure{Entry: 1}) },
	} {
		_, err := call()
		wiretest.WantCheck(t, name, err, wire.ErrOutOfOrder)
	}
}
