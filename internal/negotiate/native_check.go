package negotiate

import (
	"math"
)

// This file has what both sides of a NativeSession do for the same message: one before it sends the message, the other
// when it arrives. A list is checked completely before anything of it takes effect.

// openIn returns an undecided file or other entry whose phase is one of two.
func (n *NativeSession) openIn(message Type, number uint32, is, or phase) (*openEntry, error) {
	e := n.entries.open(number)
	if e == nil || e.phase != is && e.phase != or {
		return nil, wrongTurn(message, "entry %d does not expect it", number)
	}
	return e, nil
}

// addEntry adds an entry that is valid by itself.
func (n *NativeSession) addEntry(e *Entry) error {
	if err := n.order.check(e); err != nil {
		return err
	}
	switch stream := e.Kind == EntryFile && e.Flags.Has(EntrySizeUnknown); {
	case n.entries.room() == 0:
		return wrongTurn(TypeEntries, "more than %d open entries", len(n.entries.ring))
	case e.Depth == 0 && (e.Kind == EntryDirectory) != n.plan.Tree:
		return malformed(TypeEntries, "a %s as the root", e.Kind)
	case e.Depth == 0 && e.Kind == EntryFile && !e.Flags.Has(EntryChunked): // a PACK names files of directories
		return malformed(TypeEntries, "a file as the root that does not come in chunks")
	case stream != n.plan.StreamSource:
		return malformed(TypeEntries, "a size that is known of a stream only, or unknown of a file")
	case e.Kind == EntryFile && !e.Flags.Has(EntryChunked) && e.Size > uint64(n.plan.Chunk):
		return malformed(TypeEntries, "a file of %d bytes for a pack, in a slot of %d", e.Size, n.plan.Chunk)
	case e.Size > math.MaxInt64-n.entries.bytes: // programs add the sizes up
		return malformed(TypeEntries, "%d bytes more than %d in one transfer", e.Size, n.entries.bytes)
	case e.Kind == EntryHardLink && !n.plan.Links:
		return malformed(TypeEntries, "a hard link that was not agreed on")
	case e.Flags.Has(EntryHasMetadata) && !n.plan.XAttr:
		return malformed(TypeEntries, "extended attributes that were not agreed on")
	}
	e.Number = n.order.next
	n.order.add(e)
	n.entries.add(e)
	return nil
}

func (n *NativeSession) checkAnswer(a Answer) error {
	if err := a.check(); err != nil {
		return err
	}
	e, err := n.openIn(TypeAnswers, a.Entry, unanswered, summed)
	switch {
	case err != nil:
		return err
	case e.failed || e.marked:
		return wrongTurn(TypeAnswers, "entry %d does not expect it", a.Entry)
	case !n.mayAnswer(a.Kind, e.kind):
		return malformed(TypeAnswers, "%s for a %s", a.Kind, e.kind)
	case (a.Change != ChangeNone) != (a.Kind == AnswerNeed && n.plan.DryRun):
		return malformed(TypeAnswers, "%s with the change %q", a.Kind, a.Change)
	case !e.sizeKnown() && a.Kind != AnswerNeed && a.Kind != AnswerExists:
		return malformed(TypeAnswers, "%s for a stream", a.Kind)
	case a.Kind == AnswerSum && e.phase == summed:
		return wrongTurn(TypeAnswers, "entry %d was asked for its digest before", a.Entry)
	case e.kind != EntryFile && !e.complete():
		return wrongTurn(TypeAnswers, "the metadata of entry %d is incomplete", a.Entry)
	case a.Kind == AnswerNeed && n.plan.Compare:
		return malformed(TypeAnswers, "%s where nothing may be written", a.Kind)
	case a.Offset > 0 && (!n.plan.Resumable() || n.plan.DryRun):
		return malformed(TypeAnswers, "%d bytes to resume from in a transfer that does not resume", a.Offset)
	case a.Discarded != 0 && (!e.chunked() || n.plan.DryRun):
		return malformed(TypeAnswers, "something was discarded of a file that nothing is kept of")
	case a.Offset > 0 && !e.chunked():
		return malformed(TypeAnswers, "%d bytes to resume from in a file that comes in a pack", a.Offset)
	case a.Offset > e.size:
		return malformed(TypeAnswers, "%d bytes to resume from, of %d", a.Offset, e.size)
	}
	e.marked = true
	return nil
}

// mayAnswer reports whether the plan has such an answer for a kind of entries.
func (n *NativeSession) mayAnswer(a AnswerKind, to EntryKind) bool {
	switch a {
	case AnswerNeed:
		return to == EntryFile || n.plan.DryRun
	case AnswerSum:
		return to == EntryFile
	case AnswerExists:
		return to != EntryDirectory && n.plan.IgnoreExisting
	default:
		return true
	}
}

// answer applies all answers, or none.
func (n *NativeSession) answer(answers []Answer) error {
	for i, a := range answers {
		if err := n.checkAnswer(a); err != nil {
			for _, checked := range answers[:i] {
				n.entries.at(checked.Entry).marked = false
			}
			return err
		}
	}
	for _, a := range answers {
		n.applyAnswer(a)
	}
	return nil
}

func (n *NativeSession) applyAnswer(a Answer) {
	e := n.entries.at(a.Entry)
	e.marked = false
	switch {
	case a.Kind == AnswerSum:
		n.entries.change(e, asked)
	case a.Kind == AnswerHave, a.Kind == AnswerExists:
		n.entries.decide(e, &n.entries.counts.Unchanged)
	case n.plan.DryRun:
		n.entries.decide(e, &n.entries.counts.Committed)
	default:
		e.resume = a.Offset
		n.entries.change(e, needed)
	}
}

func (n *NativeSession) checkResult(number uint32) error {
	e, err := n.openIn(TypeResults, number, unanswered, ended)
	switch {
	case err != nil:
		return err
	case e.failed || e.marked || e.packed || (e.kind == EntryFile) != (e.phase == ended):
		return wrongTurn(TypeResults, "entry %d does not expect it", number)
	case e.kind == EntryFile && e.acked != e.size:
		return wrongTurn(TypeResults, "%d of the %d bytes of entry %d were acknowledged", e.acked, e.size, number)
	case !e.complete():
		return wrongTurn(TypeResults, "the metadata of entry %d is incomplete", number)
	case n.plan.Compare || n.plan.DryRun:
		return malformed(TypeResults, "a result where nothing may be written")
	}
	e.marked = true
	return nil
}

// commit applies all results, or none.
func (n *NativeSession) commit(results []uint32) error {
	for i, number := range results {
		if err := n.checkResult(number); err != nil {
			for _, checked := range results[:i] {
				n.entries.at(checked).marked = false
			}
			return err
		}
	}
	for _, number := range results {
		e := n.entries.at(number)
		e.marked = false
		n.entries.decide(e, &n.entries.counts.Committed)
	}
	return nil
}

func (n *NativeSession) addMetadata(number uint32, m Metadata) error {
	if err := m.check(); err != nil {
		return err
	}
	e, err := n.openIn(TypeMetadata, number, unanswered, needed)
	switch {
	case err != nil:
		return err
	case n.sends() && e.failed || !e.flags.Has(EntryHasMetadata) || (e.kind == EntryFile) != (e.phase == needed):
		return wrongTurn(TypeMetadata, "entry %d does not expect it", number)
	}
	return e.metadata.add(m)
}

// assembly tracks how much of the extended attributes of an entry has been transferred.
type assembly struct {
	total, done uint32
}

func (a assembly) complete() bool { return a.done == a.total }

// add accounts for the next fragment.
func (a *assembly) add(m Metadata) error {
	if m.Offset != a.done || a.done > 0 && m.Total != a.total {
		return malformed(TypeMetadata, "a fragment at %d of %d, after %d of %d", m.Offset, m.Total, a.done, a.total)
	}
	a.total, a.done = m.Total, a.done+uint32(len(m.Part))
	return nil
}

// end fixes the size of a file that was read completely.
func (n *NativeSession) end(number uint32, size uint64, digest []byte) error {
	if err := checkDigest(TypeEnd, digest, n.plan.Digest); err != nil {
		return err
	}
	e, err := n.openIn(TypeEnd, number, needed, needed)
	switch {
	case err != nil:
		return err
	case n.sends() && e.failed:
		return wrongTurn(TypeEnd, "entry %d has failed", number)
	case !e.chunked():
		return malformed(TypeEnd, "entry %d, which comes in a pack", number)
	case !e.complete():
		return wrongTurn(TypeEnd, "the metadata of entry %d is incomplete", number)
	case e.sizeKnown() && size != e.size:
		return malformed(TypeEnd, "%d bytes at the end, %d announced", size, e.size)
	case size < e.covered() || size > n.sizeLimit(e):
		return malformed(TypeEnd, "%d bytes at the end, %d announced, limit %d", size, e.covered(), n.sizeLimit(e))
	}
	e.size = size
	n.entries.change(e, ended)
	return nil
}

func (n *NativeSession) sum(number uint32, digest []byte) error {
	if err := checkDigest(TypeSum, digest, n.plan.SumDigest()); err != nil {
		return err
	}
	e, err := n.openIn(TypeSum, number, asked, asked)
	if err != nil {
		return err
	}
	if n.sends() && e.failed {
		return wrongTurn(TypeSum, "entry %d has failed", number)
	}
	n.entries.change(e, summed)
	return nil
}

// finish checks that the sender has nothing to send for any entry, except for a second time. The receiver may have
// asked for that before it received the FINISH.
func (n *NativeSession) finish(total, missing uint32) error {
	switch {
	case total != n.entries.next || total == 0:
		return malformed(TypeFinish, "%d entries in total, %d announced", total, n.entries.next)
	case missing > 0 && !n.plan.Tree:
		return malformed(TypeFinish, "%d missing entries of a file", missing)
	}
	for number := n.entries.oldest; number != n.entries.next; number++ {
		e := n.entries.at(number)
		switch {
		case e.phase == decided, e.phase == ended, e.again, e.failed && n.sends():
		case e.kind == EntryFile || !e.complete():
			return wrongTurn(TypeFinish, "entry %d is incomplete", number)
		}
	}
	n.machine.state = Finishing
	return nil
}

// checkFinished checks that everything is decided, and that the receiver did what was planned. The durability of a
// stream is not known, and nothing is written without a need.
func (n *NativeSession) checkFinished(d Durability) error {
	switch {
	case !d.Known():
		return malformed(TypeFinished, "unknown %s", d)
	case !n.Settled():
		return wrongTurn(TypeFinished, "%d entries are undecided, %d slots in flight", n.entries.undecided,
			n.slots.outstanding)
	case d < n.plan.Durability && !n.plan.StreamTarget && !n.plan.Compare && !n.plan.DryRun:
		return malformed(TypeFinished, "durability %s instead of %s", d, n.plan.Durability)
	}
	return nil
}

// checkTransport checks that the peer may name the transport of the content.
func (n *NativeSession) checkTransport(t Type, transport string) error {
	if transport != "" && !n.plan.NamesTransport(n.side.Other()) {
		return malformed(t, "transport of the path %s", n.plan.Path)
	}
	return nil
}

// transport returns what this side may say of its transport.
func (n *NativeSession) transport(name string) string {
	if !n.plan.NamesTransport(n.side) {
		return ""
	}
	return name
}

// beginTransfer is the effect of a TRANSFER, finishTransfer that of a FINISHED. The beat is of the side that sends it.
func (n *NativeSession) beginTransfer(beat *Beat) {
	*beat = Beat{}
	n.order.reset()
	n.entries.reset()
	n.machine.state = Transferring
}

func (n *NativeSession) finishTransfer(beat *Beat) {
	*beat = Beat{}
	n.transfers++
	n.machine.state = Ready
}

// openWindow is the effect of a WINDOW.
func (n *NativeSession) openWindow(w Window) error {
	if err := w.check(n.plan); err != nil {
		return err
	}
	n.window = true
	return nil
}

func checkDigest(t Type, digest []byte, d Digest) error {
	if len(digest) != d.Size() {
		return malformed(t, "%d bytes of %s instead of %d", len(digest), d, d.Size())
	}
	return nil
}
