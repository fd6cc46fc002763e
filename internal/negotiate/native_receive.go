package negotiate

import "errors"

// This file handles the peer's messages in a NativeSession.

// Receive processes one message of the peer and retains no reference to it. After an error the session has failed;
// the Reply tells the peer, unless the peer knows or does not listen any more. In Cancelling the session may have
// failed without an error: the outcome of every entry is known then. Receive does not allocate for ENTRIES, ANSWERS,
// CHUNKS, PACK, ACKS, END, RESULTS and HEARTBEAT.
func (n *NativeSession) Receive(msg []byte) (NativeStep, error) {
	if n.machine.state == Failed {
		return NativeStep{}, n.machine.failure
	}
	if len(msg) > n.machine.limits.MaxMessage {
		return n.failWithNotice(malformed(0, "%d bytes, limit %d", len(msg), n.machine.limits.MaxMessage))
	}
	message := TypeOf(msg)
	if n.mayBeReference(message) {
		return n.receiveReference(message, msg)
	}
	if message == TypeAbort && n.machine.state != HandedOver {
		return n.receiveAbort(msg)
	}
	step, err := n.dispatch(message, msg)
	if err != nil && n.machine.state != Failed {
		return n.failWithNotice(err)
	}
	return step, err
}

func (n *NativeSession) dispatch(message Type, msg []byte) (NativeStep, error) {
	if r := n.rule(message, !n.sends()); r.received.has(n.machine.state) && n.windowPermits(message, n.side.Other()) {
		return r.handle(n, msg)
	}
	if !message.known() {
		return NativeStep{}, malformed(message, "unknown type, in %d bytes", len(msg))
	}
	return NativeStep{}, outOfOrder(message)
}

// receiveHello computes the plan. The side that answers sends its own HELLO even if there is nothing to copy, because
// the initiator then finds the same reason itself.
func (n *NativeSession) receiveHello(msg []byte) (NativeStep, error) {
	peer, err := DecodeHello(msg)
	if err != nil {
		return NativeStep{}, err
	}
	var reply []byte
	if !n.side.Initiates() {
		reply = AppendHello(nil, n.own)
	}
	plan, err := Decide(n.side, n.own, peer)
	if nothingToCopy(err) {
		return NativeStep{Reply: reply}, n.machine.fail(asError(err))
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.adopt(plan, peer)
	return NativeStep{Reply: reply, Event: Planned, Plan: plan}, nil
}

// nothingToCopy reports whether the peer derives the same error from the HELLOs.
func nothingToCopy(err error) bool {
	for _, shared := range [...]error{
		ErrWordsDiffer, ErrBothHaveFile, ErrNeitherHasFile, ErrKindMismatch, ErrTreeStream, ErrNoPath,
	} {
		if errors.Is(err, shared) {
			return true
		}
	}
	return false
}

// adopt allocates everything that the transfers need. A transfer of one file needs little of it.
func (n *NativeSession) adopt(plan Plan, peer Hello) {
	n.plan, n.peer = plan, peer
	open := 1
	if plan.Tree {
		open = MaxOpen
		n.order = entryOrder{message: TypeEntries}
	}
	n.slots, n.entries = newSlotTable(plan.Depth), newEntryTable(open)
	n.machine.state = Ready
	longest, depth := n.machine.limits.MaxMessage, int(plan.Depth)
	n.reused.octets = make([]byte, 0, longest)
	n.reused.reply = make([]byte, 0, failureSize)
	if n.sends() {
		n.reused.acks = make([]Ack, 0, min(MaxAcks(longest), depth))
		n.reused.answers = make([]Answer, 0, min(MaxAnswers(longest), open))
		n.reused.results = make([]uint32, 0, min(MaxResults(longest), open))
		return
	}
	n.reused.records = make([]Record, 0, min(MaxRecords(longest), depth))
	n.reused.entries = make([]Entry, 0, min((longest-listSize)/entrySize, open))
	if plan.Tree {
		n.reused.packed = make([]PackedFile, 0, min(MaxPacked(longest, plan.Digest), open))
	}
}

func (n *NativeSession) receiveWindow(msg []byte) (NativeStep, error) {
	w, err := DecodeWindow(msg)
	if err == nil {
		err = n.openWindow(w)
	}
	return NativeStep{Event: WindowOpened, Window: w}, err
}

func (n *NativeSession) receiveTransfer(msg []byte) (NativeStep, error) {
	if err := DecodeTransfer(msg); err != nil {
		return NativeStep{}, err
	}
	n.beginTransfer(&n.peerBeat)
	return NativeStep{Event: TransferBegun}, nil
}

func (n *NativeSession) receiveEntries(msg []byte) (NativeStep, error) {
	entries, err := DecodeEntries(n.reused.entries[:0], n.copyOctets(msg))
	for i := range entries {
		if err := n.addEntry(&entries[i]); err != nil {
			return NativeStep{}, err
		}
	}
	n.reused.entries = entries
	return NativeStep{Event: EntriesAnnounced, Entries: entries}, err
}

func (n *NativeSession) receiveAnswers(msg []byte) (NativeStep, error) {
	answers, err := DecodeAnswers(n.reused.answers[:0], msg)
	if err == nil {
		err = n.answer(answers)
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.reused.answers = answers
	return NativeStep{Event: Answered, Answers: answers}, nil
}

func (n *NativeSession) receiveMetadata(msg []byte) (NativeStep, error) {
	entry, m, err := DecodeMetadata(msg)
	if err == nil {
		err = n.addMetadata(entry, m)
	}
	m.Part = n.copyOctets(m.Part)
	return NativeStep{Event: PeerMetadata, Entry: entry, Metadata: m}, err
}

func (n *NativeSession) receiveChunks(msg []byte) (NativeStep, error) {
	records, err := DecodeChunks(n.reused.records[:0], msg)
	if err == nil {
		err = n.announce(records)
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.reused.records = records
	return NativeStep{Event: Announced, Records: records}, nil
}

func (n *NativeSession) receivePack(msg []byte) (NativeStep, error) {
	p, err := DecodePack(n.reused.packed[:0], msg, n.plan.Digest)
	if err == nil {
		err = n.announcePack(p)
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.reused.packed = p.Files
	return NativeStep{Event: Packed, Pack: p}, nil
}

func (n *NativeSession) receiveAcks(msg []byte) (NativeStep, error) {
	acks, err := DecodeAcks(n.reused.acks[:0], msg)
	if err == nil {
		err = n.acknowledge(acks)
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.reused.acks = acks
	n.stopIfDecided() // a pack that arrived damaged is not committed
	return NativeStep{Event: Acknowledged, Acks: acks}, nil
}

func (n *NativeSession) receiveEnd(msg []byte) (NativeStep, error) {
	entry, size, digest, err := DecodeEnd(msg, n.plan.Digest)
	if err == nil {
		err = n.end(entry, size, digest)
	}
	return NativeStep{Event: PeerEnded, Entry: entry, Size: size, Digest: n.copyOctets(digest)}, err
}

func (n *NativeSession) receiveSum(msg []byte) (NativeStep, error) {
	entry, digest, err := DecodeSum(msg, n.plan.SumDigest())
	if err == nil {
		err = n.sum(entry, digest)
	}
	return NativeStep{Event: PeerSum, Entry: entry, Digest: n.copyOctets(digest)}, err
}

// receiveFailure decides the entry. If this side has failed it as well, that is all; otherwise the reply tells the peer
// that no further message about the entry is on its way.
func (n *NativeSession) receiveFailure(msg []byte) (NativeStep, error) {
	f, err := DecodeFailure(msg)
	if err != nil {
		return NativeStep{}, err
	}
	e := n.entries.open(f.Entry)
	step := NativeStep{Event: EntryFailed, Failure: f}
	switch {
	case e == nil && n.sends() && n.entries.failLate(f.Entry):
		return step, nil
	case e == nil || !n.sends() && !e.failed && !e.maySenderFail():
		return NativeStep{}, wrongTurn(TypeFailure, "entry %d does not expect it", f.Entry)
	case e.failed:
		n.entries.change(e, decided)
		return NativeStep{}, nil
	}
	n.entries.fail(e)
	n.entries.change(e, decided)
	if n.machine.state != Cancelling {
		step.Reply = AppendFailure(n.reused.reply[:0], Failure{Entry: f.Entry, Code: f.Code})
	}
	n.stopIfDecided()
	return step, nil
}

func (n *NativeSession) receiveResults(msg []byte) (NativeStep, error) {
	results, err := DecodeResults(n.reused.results[:0], msg)
	if err == nil {
		err = n.commit(results)
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.reused.results = results
	n.stopIfDecided()
	return NativeStep{Event: Committed, Results: results}, nil
}

// stopIfDecided ends a sender's Cancelling when the outcome of every entry is known.
func (n *NativeSession) stopIfDecided() {
	if n.machine.state == Cancelling && n.entries.unconfirmed == 0 {
		n.endCancelling()
	}
}

func (n *NativeSession) receiveFinish(msg []byte) (NativeStep, error) {
	total, missing, transport, err := DecodeFinish(msg)
	if err == nil {
		err = n.checkTransport(TypeFinish, transport)
	}
	if err == nil {
		err = n.finish(total, missing)
	}
	return NativeStep{Event: PeerFinish, Total: total, Missing: missing, Transport: transport}, err
}

func (n *NativeSession) receiveFinished(msg []byte) (NativeStep, error) {
	d, counts, transport, err := DecodeFinished(msg)
	if err == nil {
		err = firstError(n.checkFinished(d), n.checkTransport(TypeFinished, transport))
	}
	if err == nil && counts != n.entries.counts {
		err = malformed(TypeFinished, "counts %v instead of %v", counts, n.entries.counts)
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.finishTransfer(&n.peerBeat)
	return NativeStep{Event: PeerFinished, Durability: d, Counts: counts, Transport: transport}, nil
}

// receiveCancelled ends the session: what the receiver has not confirmed, it has not committed.
func (n *NativeSession) receiveCancelled(msg []byte) (NativeStep, error) {
	if err := DecodeCancelled(msg); err != nil {
		return NativeStep{}, err
	}
	n.entries.unconfirmed = 0
	n.endCancelling()
	return NativeStep{Event: PeerCancelled}, nil
}

func (n *NativeSession) receiveBeat(msg []byte) (NativeStep, error) {
	b, err := DecodeBeat(msg)
	if err == nil {
		err = n.peerBeat.follow(b)
	}
	return NativeStep{Event: PeerBeat, Beat: b}, err
}

// receiveAbort ends the session. An ABORT is not answered, except by a receiver that may be committing entries: it says
// when it has stopped.
func (n *NativeSession) receiveAbort(msg []byte) (NativeStep, error) {
	reason, err := DecodeAbort(msg)
	if err != nil {
		return n.failWithNotice(err)
	}
	failure := &Error{State: n.machine.state, Message: TypeAbort, Err: reason}
	if n.planned() && !n.sends() && n.machine.state != Cancelling && n.entries.unconfirmed > 0 {
		n.aborting, n.machine.state = failure, Cancelling
		return NativeStep{Event: PeerAborting, Failure: Failure{Code: reason.Code, Text: reason.Text}}, nil
	}
	return NativeStep{}, n.machine.fail(failure)
}

// copyOctets copies bytes that a step refers to, because the caller may reuse the message.
func (n *NativeSession) copyOctets(octets []byte) []byte {
	n.reused.octets = append(n.reused.octets[:0], octets...)
	return n.reused.octets
}

// mayBeReference reports whether the message can be that of a reference host whose padding only looked like an offer
// of the native protocol: the reference program leaves some of its padding uninitialised. Such a host sends an EXPORT
// or a STATUS where a HELLO is expected.
func (n *NativeSession) mayBeReference(message Type) bool {
	return n.reference != nil && n.side == DPU && n.machine.state == AwaitHello &&
		(message == TypeExport || message == TypeStatus)
}

// receiveReference returns to the reference protocol.
func (n *NativeSession) receiveReference(message Type, msg []byte) (NativeStep, error) {
	if message == TypeStatus {
		return n.receiveStatus(msg)
	}
	reply, err := n.reference.Resume(msg)
	if err != nil {
		return NativeStep{Reply: reply}, n.machine.end(asError(err))
	}
	n.machine.state = HandedOver
	return NativeStep{Event: ToReference}, nil
}

// receiveStatus accepts only a reference host's failure.
func (n *NativeSession) receiveStatus(msg []byte) (NativeStep, error) {
	message, err := Decode(msg)
	if err != nil {
		return n.failWithNotice(err)
	}
	if message == (Status{Success: false}) {
		return NativeStep{}, n.machine.fail(&Error{Message: TypeStatus, Err: ErrPeerFailed})
	}
	return n.failWithNotice(outOfOrder(TypeStatus))
}
