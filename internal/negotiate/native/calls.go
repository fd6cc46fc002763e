package native

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// Transfer is called in Ready and appends the TRANSFER to send: a transfer begins.
func (n *Session) Transfer(dst []byte) ([]byte, error) {
	return n.send(dst, wire.AppendEmpty(dst, wire.TypeTransfer), func() error {
		n.beginTransfer(&n.ownBeat)
		return nil
	})
}

// Entries appends an ENTRIES with as many of the entries as Room and Limits.MaxMessage permit, used of them, and sets
// their numbers. It stops before an entry that cannot be announced, and fails if that is the first: with ErrTooLarge if
// it does not fit in a message, with ErrOutOfOrder if there is no room, and with ErrMalformed if the plan, its values
// or the order of the names do not permit it.
func (n *Session) Entries(dst []byte, entries []wire.Entry) (msg []byte, used int, err error) {
	head, allowed := wire.ListHead(dst, wire.TypeEntries), n.mayCall(wire.TypeEntries)
	return wire.SendSome(&n.machine, allowed, head, entries, entryFields, func(e *wire.Entry) error {
		if err := checkEntry(e); err != nil {
			return err
		}
		return n.addEntry(e)
	})
}

// Metadata appends a METADATA. It is called for an entry with EntryHasMetadata: for a file after AnswerNeed and before
// End or Pack, for another entry after Entries. Fragments are sent in order, each at most
// MaxMetadataPart(Limits.MaxMessage) bytes. It fails with ErrTooLarge, ErrMalformed or ErrOutOfOrder.
func (n *Session) Metadata(dst []byte, entry uint32, m Metadata) ([]byte, error) {
	return n.send(dst, AppendMetadata(dst, entry, m), func() error { return n.addMetadata(entry, m) })
}

// Chunks appends a CHUNKS. It is called for files with EntryChunked after AnswerNeed. Each record occupies its slot.
// There may be 1 to MaxRecords(Limits.MaxMessage) records. It fails with ErrTooLarge, with ErrMalformed for a record
// that the plan or the entry does not permit, and with ErrOutOfOrder for a slot in flight, for an entry that is not
// needed, and before the WINDOW.
func (n *Session) Chunks(dst []byte, records []Record) ([]byte, error) {
	return n.send(dst, AppendChunks(dst, records), func() error { return n.announce(records) })
}

// Pack appends a PACK. It is called for files without EntryChunked after AnswerNeed; they need no End. There may be 1
// to MaxPacked(Limits.MaxMessage, Plan.Digest) files. After a bad acknowledgement they are all needed again. It fails
// as Chunks does.
func (n *Session) Pack(dst []byte, p Pack) ([]byte, error) {
	return n.send(dst, AppendPack(dst, p, n.plan.Digest), func() error { return n.announcePack(p) })
}

// End appends an END. It is called for a file with EntryChunked after AnswerNeed when all of it has been read; records
// may follow until they cover size bytes. digest is the file's digest by Plan.Digest. It fails with ErrOutOfOrder, and
// with ErrMalformed if size or digest contradict the plan, the entry or its records.
func (n *Session) End(dst []byte, entry uint32, size uint64, digest []byte) ([]byte, error) {
	return n.send(dst, AppendEnd(dst, entry, size, digest), func() error { return n.end(entry, size, digest) })
}

// Sum appends a SUM. It is called after AnswerSum; digest is the file's digest by Plan.SumDigest. It fails with
// ErrOutOfOrder or ErrMalformed.
func (n *Session) Sum(dst []byte, entry uint32, digest []byte) ([]byte, error) {
	return n.send(dst, AppendSum(dst, entry, digest), func() error { return n.sum(entry, digest) })
}

// Finish appends a FINISH. It is called when every file is ended, failed or decided. missing is the number of entries
// that the sender found and could not announce. transport is what carries the content, as for AppendFinished; it is
// left out unless Plan.NamesTransport. Finish fails with ErrOutOfOrder, and with ErrMalformed without an entry, or with
// missing ones of a transfer without a tree.
func (n *Session) Finish(dst []byte, missing uint32, transport string) ([]byte, error) {
	total := n.entries.next
	return n.send(dst, AppendFinish(dst, total, missing, n.transport(transport)), func() error {
		return n.finish(total, missing)
	})
}

// Answers appends an ANSWERS. There may be 1 to MaxAnswers(Limits.MaxMessage) answers, each for a file after
// EntriesAnnounced or PeerSum; AnswerHave also for another entry. In a dry run AnswerNeed decides the entry. It fails
// with ErrTooLarge, also for the need of a file above Limits.MaxFileSize, ErrMalformed or ErrOutOfOrder.
func (n *Session) Answers(dst []byte, answers []Answer) ([]byte, error) {
	return n.send(dst, AppendAnswers(dst, answers), func() error {
		if err := n.checkNeeds(answers); err != nil {
			return err
		}
		return n.answer(answers)
	})
}

// checkNeeds keeps this side from accepting a file above its own limit.
func (n *Session) checkNeeds(answers []Answer) error {
	for _, a := range answers {
		e, limit := n.entries.open(a.Entry), n.fileLimit()
		if a.Kind == AnswerNeed && e != nil && e.size > limit {
			return wire.TooLarge(wire.TypeAnswers, "the file has", e.size, limit)
		}
	}
	return nil
}

// Acks appends an ACKS. Each slot is vacant then. There may be 1 to MaxAcks(Limits.MaxMessage) acknowledgements. It
// fails with ErrTooLarge, ErrMalformed, and with ErrOutOfOrder for a slot that is vacant.
func (n *Session) Acks(dst []byte, acks []Ack) ([]byte, error) {
	return n.send(dst, AppendAcks(dst, acks), func() error { return n.acknowledge(acks) })
}

// Results appends a RESULTS: the entries with these numbers are committed. It is called for a file after PeerEnded or
// Packed when all its bytes are acknowledged, for another entry when its metadata is complete. There may be 1 to
// MaxResults(Limits.MaxMessage) numbers. It fails with ErrTooLarge, ErrMalformed or ErrOutOfOrder.
func (n *Session) Results(dst []byte, entries []uint32) ([]byte, error) {
	return n.send(dst, AppendResults(dst, entries), func() error { return n.commit(entries) })
}

// Fail appends a FAILURE. The receiver calls it for any undecided entry, and once for a directory that is decided.
// The sender calls it for a file after AnswerNeed or AnswerSum, before its End, Pack or Sum. The entry counts as
// undecided until the peer's FAILURE arrives, which is no event. It fails with ErrOutOfOrder.
func (n *Session) Fail(dst []byte, f Failure) ([]byte, error) {
	msg := appendFailure(dst, f, min(wire.MaxAbortText, n.machine.Limits.MaxMessage-failureSize))
	return n.send(dst, msg, func() error { return n.failEntry(f.Entry) })
}

func (n *Session) failEntry(number uint32) error {
	e := n.entries.open(number)
	switch {
	case e == nil && !n.sends() && n.entries.failLate(number):
		return nil
	case e == nil || e.failed || n.sends() && !e.maySenderFail():
		return wire.WrongTurn(wire.TypeFailure, "entry %d does not expect it", number)
	}
	n.entries.fail(e)
	if n.machine.State == Cancelling { // the sender answers nothing
		n.entries.change(e, decided)
	}
	return nil
}

// maySenderFail reports whether it is the sender's turn.
func (e *openEntry) maySenderFail() bool { return e.phase == needed || e.phase == asked }

// Finished appends a FINISHED. It is called after PeerFinish when Settled: what was committed has durability d;
// transport is as for Finish. It fails with ErrOutOfOrder, and with ErrMalformed for less than planned, unless the
// target is a stream or nothing may be written.
func (n *Session) Finished(dst []byte, d wire.Durability, transport string) ([]byte, error) {
	return n.send(dst, AppendFinished(dst, d, n.entries.counts, n.transport(transport)), func() error {
		if err := n.checkFinished(d); err != nil {
			return err
		}
		n.finishTransfer(&n.ownBeat)
		return nil
	})
}

// Cancelled appends a CANCELLED. It is called after PeerAborting, when nothing more will be committed. The session has
// failed then.
func (n *Session) Cancelled(dst []byte) ([]byte, error) {
	return n.send(dst, wire.AppendEmpty(dst, wire.TypeCancelled), func() error {
		n.endCancelling()
		return nil
	})
}

// MayFail reports whether Fail is in order for an entry that is not decided here: the peer has not failed it meanwhile.
func (n *Session) MayFail(entry uint32) bool {
	if n.mayCall(wire.TypeFailure) != nil {
		return false
	}
	e := n.entries.open(entry)
	return e != nil && !e.failed && (!n.sends() || e.maySenderFail())
}
