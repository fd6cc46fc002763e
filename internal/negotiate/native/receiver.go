package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file has the calls of the receiver, and Fail, which both roles have.

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
	return n.send(dst, AppendCancelled(dst), func() error {
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
