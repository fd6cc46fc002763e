package native

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Receive processes one message of the peer and retains no reference to it. After an error the session has failed;
// the Reply tells the peer, unless the peer knows or does not listen any more. In Cancelling the session may have
// failed without an error: the outcome of every entry is known then. Receive does not allocate for ENTRIES, ANSWERS,
// CHUNKS, PACK, ACKS, END, RESULTS and HEARTBEAT.
func (n *Session) Receive(msg []byte) (Step, error) {
	if n.machine.State == Failed {
		return Step{}, n.machine.Failure
	}
	if len(msg) > n.machine.Limits.MaxMessage {
		return n.failWithNotice(wire.Malformed(0, "%d bytes, limit %d", len(msg), n.machine.Limits.MaxMessage))
	}
	message := wire.TypeOf(msg)
	if n.mayBeReference(message) {
		return n.receiveReference(message, msg)
	}
	if message == wire.TypeAbort && n.machine.State != HandedOver {
		return n.receiveAbort(msg)
	}
	step, err := n.dispatch(message, msg)
	if err != nil && n.machine.State != Failed {
		return n.failWithNotice(err)
	}
	return step, err
}

func (n *Session) dispatch(message wire.Type, msg []byte) (Step, error) {
	if r := n.rule(message, !n.sends()); r.received.Has(n.machine.State) && n.windowPermits(message, n.side.Other()) {
		return r.handle(n, msg)
	}
	return Step{}, wire.Unexpected(message, len(msg))
}

// receiveHello computes the plan. The side that answers sends its own HELLO even if there is nothing to copy, because
// the initiator then finds the same reason itself.
func (n *Session) receiveHello(msg []byte) (Step, error) {
	peer, err := DecodeHello(msg)
	if err != nil {
		return Step{}, err
	}
	var reply []byte
	if !n.side.Initiates() {
		reply = AppendHello(nil, n.own)
	}
	plan, err := Decide(n.side, n.own, peer)
	if nothingToCopy(err) {
		return Step{Reply: reply}, n.machine.Fail(wire.AsError(err))
	}
	if err != nil {
		return Step{}, err
	}
	n.adopt(plan, peer)
	return Step{Reply: reply, Event: Planned, Plan: plan}, nil
}

// nothingToCopy reports whether the peer derives the same error from the HELLOs.
func nothingToCopy(err error) bool {
	for _, shared := range [...]error{
		wire.ErrWordsDiffer, wire.ErrBothHaveFile, wire.ErrNeitherHasFile, wire.ErrKindMismatch, wire.ErrTreeStream,
		wire.ErrNoPath,
	} {
		if errors.Is(err, shared) {
			return true
		}
	}
	return false
}

// adopt allocates everything that the transfers need. A transfer of one file needs little of it.
func (n *Session) adopt(plan Plan, peer Hello) {
	n.plan, n.peer = plan, peer
	open := 1
	if plan.Tree {
		open = MaxOpen
		n.order = wire.Order{Message: wire.TypeEntries}
	}
	n.slots, n.entries = newSlotTable(plan.Depth), newEntryTable(open)
	n.machine.State = Ready
	longest, depth := n.machine.Limits.MaxMessage, int(plan.Depth)
	n.reused.octets = make([]byte, 0, longest)
	n.reused.reply = make([]byte, 0, failureSize)
	if n.sends() {
		n.reused.acks = make([]Ack, 0, min(MaxAcks(longest), depth))
		n.reused.answers = make([]Answer, 0, min(MaxAnswers(longest), open))
		n.reused.results = make([]uint32, 0, min(MaxResults(longest), open))
		return
	}
	n.reused.records = make([]Record, 0, min(MaxRecords(longest), depth))
	n.reused.entries = make([]wire.Entry, 0, min((longest-wire.ListSize)/entrySize, open))
	if plan.Tree {
		n.reused.packed = make([]PackedFile, 0, min(MaxPacked(longest, plan.Digest), open))
	}
}

func (n *Session) receiveWindow(msg []byte) (Step, error) {
	w, err := DecodeWindow(msg)
	if err == nil {
		err = n.openWindow(w)
	}
	return Step{Event: WindowOpened, Window: w}, err
}

func (n *Session) receiveTransfer(msg []byte) (Step, error) {
	if err := wire.DecodeEmpty(msg, wire.TypeTransfer); err != nil {
		return Step{}, err
	}
	n.beginTransfer(&n.peerBeat)
	return Step{Event: TransferBegun}, nil
}

func (n *Session) receiveEntries(msg []byte) (Step, error) {
	entries, err := wire.DecodeList(n.reused.entries[:0], n.copyOctets(msg), wire.TypeEntries, entryFields)
	for i := range entries {
		if err := n.addEntry(&entries[i]); err != nil {
			return Step{}, err
		}
	}
	n.reused.entries = entries
	return Step{Event: EntriesAnnounced, Entries: entries}, err
}

func (n *Session) receiveAnswers(msg []byte) (Step, error) {
	answers, err := receiveList(&n.reused.answers, msg, DecodeAnswers, n.answer)
	return Step{Event: Answered, Answers: answers}, err
}

// receiveList decodes a list into memory that is reused, and lets it take effect.
func receiveList[T any](
	reused *[]T, msg []byte, decode func([]T, []byte) ([]T, error), effect func([]T) error,
) ([]T, error) {
	list, err := decode((*reused)[:0], msg)
	if err == nil {
		*reused, err = list, effect(list)
	}
	return list, err
}

func (n *Session) receiveMetadata(msg []byte) (Step, error) {
	entry, m, err := DecodeMetadata(msg)
	if err == nil {
		err = n.addMetadata(entry, m)
	}
	m.Part = n.copyOctets(m.Part)
	return Step{Event: PeerMetadata, Entry: entry, Metadata: m}, err
}

func (n *Session) receiveChunks(msg []byte) (Step, error) {
	records, err := receiveList(&n.reused.records, msg, DecodeChunks, n.announce)
	return Step{Event: Announced, Records: records}, err
}

func (n *Session) receivePack(msg []byte) (Step, error) {
	p, err := DecodePack(n.reused.packed[:0], msg, n.plan.Digest)
	if err == nil {
		n.reused.packed, err = p.Files, n.announcePack(p)
	}
	return Step{Event: Packed, Pack: p}, err
}

func (n *Session) receiveAcks(msg []byte) (Step, error) {
	acks, err := receiveList(&n.reused.acks, msg, DecodeAcks, n.acknowledge)
	if err == nil {
		n.stopIfDecided() // a pack that arrived damaged is not committed
	}
	return Step{Event: Acknowledged, Acks: acks}, err
}

func (n *Session) receiveEnd(msg []byte) (Step, error) {
	entry, size, digest, err := DecodeEnd(msg, n.plan.Digest)
	if err == nil {
		err = n.end(entry, size, digest)
	}
	return Step{Event: PeerEnded, Entry: entry, Size: size, Digest: n.copyOctets(digest)}, err
}

func (n *Session) receiveSum(msg []byte) (Step, error) {
	entry, digest, err := DecodeSum(msg, n.plan.SumDigest())
	if err == nil {
		err = n.sum(entry, digest)
	}
	return Step{Event: PeerSum, Entry: entry, Digest: n.copyOctets(digest)}, err
}

// receiveFailure decides the entry. If this side has failed it as well, that is all; otherwise the reply tells the peer
// that no further message about the entry is on its way.
func (n *Session) receiveFailure(msg []byte) (Step, error) {
	f, err := DecodeFailure(msg)
	if err != nil {
		return Step{}, err
	}
	e := n.entries.open(f.Entry)
	step := Step{Event: EntryFailed, Failure: f}
	switch {
	case e == nil && n.sends() && n.entries.failLate(f.Entry):
		return step, nil
	case e == nil || !n.sends() && !e.failed && !e.maySenderFail():
		return Step{}, wire.WrongTurn(wire.TypeFailure, "entry %d does not expect it", f.Entry)
	case e.failed:
		n.entries.change(e, decided)
		return Step{}, nil
	}
	n.entries.fail(e)
	n.entries.change(e, decided)
	if n.machine.State != Cancelling {
		step.Reply = AppendFailure(n.reused.reply[:0], Failure{Entry: f.Entry, Code: f.Code})
	}
	n.stopIfDecided()
	return step, nil
}

func (n *Session) receiveResults(msg []byte) (Step, error) {
	results, err := receiveList(&n.reused.results, msg, DecodeResults, n.commit)
	if err == nil {
		n.stopIfDecided()
	}
	return Step{Event: Committed, Results: results}, err
}

// stopIfDecided ends a sender's Cancelling when the outcome of every entry is known.
func (n *Session) stopIfDecided() {
	if n.machine.State == Cancelling && n.entries.unconfirmed == 0 {
		n.endCancelling()
	}
}

func (n *Session) receiveFinish(msg []byte) (Step, error) {
	total, missing, transport, err := DecodeFinish(msg)
	if err == nil {
		err = n.checkTransport(wire.TypeFinish, transport)
	}
	if err == nil {
		err = n.finish(total, missing)
	}
	return Step{Event: PeerFinish, Total: total, Missing: missing, Transport: transport}, err
}

func (n *Session) receiveFinished(msg []byte) (Step, error) {
	d, counts, transport, err := DecodeFinished(msg)
	if err == nil {
		err = wire.FirstError(n.checkFinished(d), n.checkTransport(wire.TypeFinished, transport))
	}
	if err == nil && counts != n.entries.counts {
		err = wire.Malformed(wire.TypeFinished, "counts %v instead of %v", counts, n.entries.counts)
	}
	if err != nil {
		return Step{}, err
	}
	n.finishTransfer(&n.peerBeat)
	return Step{Event: PeerFinished, Durability: d, Counts: counts, Transport: transport}, nil
}

// receiveCancelled ends the session: what the receiver has not confirmed, it has not committed.
func (n *Session) receiveCancelled(msg []byte) (Step, error) {
	if err := wire.DecodeEmpty(msg, wire.TypeCancelled); err != nil {
		return Step{}, err
	}
	n.entries.unconfirmed = 0
	n.endCancelling()
	return Step{Event: PeerCancelled}, nil
}

func (n *Session) receiveBeat(msg []byte) (Step, error) {
	b, err := DecodeBeat(msg)
	if err == nil {
		err = n.peerBeat.follow(b)
	}
	return Step{Event: PeerBeat, Beat: b}, err
}

// receiveAbort ends the session. An ABORT is not answered, except by a receiver that may be committing entries: it says
// when it has stopped.
func (n *Session) receiveAbort(msg []byte) (Step, error) {
	reason, err := DecodeAbort(msg)
	if err != nil {
		return n.failWithNotice(err)
	}
	failure := &wire.Error{State: n.machine.State, Message: wire.TypeAbort, Err: reason}
	if n.planned() && !n.sends() && n.machine.State != Cancelling && n.entries.unconfirmed > 0 {
		n.aborting, n.machine.State = failure, Cancelling
		return Step{Event: PeerAborting, Failure: Failure{Code: reason.Code, Text: reason.Text}}, nil
	}
	return Step{}, n.machine.Fail(failure)
}

// copyOctets copies bytes that a step refers to, because the caller may reuse the message.
func (n *Session) copyOctets(octets []byte) []byte {
	n.reused.octets = append(n.reused.octets[:0], octets...)
	return n.reused.octets
}

// mayBeReference reports whether the message can come from a reference host whose padding only looked like an offer of
// the native protocol: the reference program leaves some of its padding uninitialised. Such a host sends an EXPORT or a
// STATUS where a HELLO is expected.
func (n *Session) mayBeReference(message wire.Type) bool {
	return n.reference != nil && n.side == wire.DPU && n.machine.State == AwaitHello &&
		(message == wire.TypeExport || message == wire.TypeStatus)
}

// receiveReference returns to the reference protocol.
func (n *Session) receiveReference(message wire.Type, msg []byte) (Step, error) {
	if message == wire.TypeStatus {
		return n.receiveStatus(msg)
	}
	reply, err := n.reference.Resume(msg)
	if err != nil {
		return Step{Reply: reply}, n.machine.End(wire.AsError(err))
	}
	n.machine.State = HandedOver
	return Step{Event: ToReference}, nil
}

// receiveStatus accepts only a reference host's failure.
func (n *Session) receiveStatus(msg []byte) (Step, error) {
	message, err := reference.Decode(msg)
	if err != nil {
		return n.failWithNotice(err)
	}
	if message == (reference.Status{Success: false}) {
		return Step{}, n.machine.Fail(&wire.Error{Message: wire.TypeStatus, Err: wire.ErrPeerFailed})
	}
	return n.failWithNotice(wire.OutOfOrder(wire.TypeStatus))
}
