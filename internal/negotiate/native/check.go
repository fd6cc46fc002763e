package native

import (
	"math"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file has what both sides of a Session do for the same message: one before it sends the message, the other
// when it arrives. A list is checked completely before anything of it takes effect.

// openIn returns an undecided file or other entry whose phase is one of two.
func (n *Session) openIn(message wire.Type, number uint32, is, or phase) (*openEntry, error) {
	e := n.entries.open(number)
	if e == nil || e.phase != is && e.phase != or {
		return nil, wire.WrongTurn(message, "entry %d does not expect it", number)
	}
	return e, nil
}

// addEntry adds an entry that is valid by itself.
func (n *Session) addEntry(e *wire.Entry) error {
	if err := n.order.Check(e); err != nil {
		return err
	}
	switch stream := e.Kind == wire.EntryFile && e.Flags.Has(wire.EntrySizeUnknown); {
	case n.entries.room() == 0:
		return wire.WrongTurn(wire.TypeEntries, "more than %d open entries", len(n.entries.ring))
	case e.Depth == 0 && (e.Kind == wire.EntryDirectory) != n.plan.Tree:
		return wire.Malformed(wire.TypeEntries, "a %s as the root", e.Kind)
	case e.Depth == 0 && e.Kind == wire.EntryFile && !e.Flags.Has(wire.EntryChunked):
		// A PACK names files of directories.
		return wire.Malformed(wire.TypeEntries, "a file as the root that does not come in chunks")
	case stream != n.plan.StreamSource:
		return wire.Malformed(wire.TypeEntries, "a size that is known of a stream only, or unknown of a file")
	case e.Kind == wire.EntryFile && !e.Flags.Has(wire.EntryChunked) && e.Size > uint64(n.plan.Chunk):
		return wire.Malformed(wire.TypeEntries, "a file of %d bytes for a pack, in a slot of %d", e.Size, n.plan.Chunk)
	case e.Size > math.MaxInt64-n.entries.bytes: // programs add the sizes up
		return wire.Malformed(wire.TypeEntries, "%d bytes more than %d in one transfer", e.Size, n.entries.bytes)
	case e.Kind == wire.EntryHardLink && !n.plan.Links:
		return wire.Malformed(wire.TypeEntries, "a hard link that was not agreed on")
	case e.Flags.Has(wire.EntryHasMetadata) && !n.plan.XAttr:
		return wire.Malformed(wire.TypeEntries, "extended attributes that were not agreed on")
	}
	e.Number = n.order.Next
	n.order.Add(e)
	n.entries.add(e)
	return nil
}

func (n *Session) checkAnswer(a Answer) error {
	if err := a.check(); err != nil {
		return err
	}
	e, err := n.openIn(wire.TypeAnswers, a.Entry, unanswered, summed)
	switch {
	case err != nil:
		return err
	case e.failed || e.marked:
		return wire.WrongTurn(wire.TypeAnswers, "entry %d does not expect it", a.Entry)
	case !n.mayAnswer(a.Kind, e.kind):
		return wire.Malformed(wire.TypeAnswers, "%s for a %s", a.Kind, e.kind)
	case !n.mayHave(a, e.kind):
		return wire.Malformed(wire.TypeAnswers, "%s with the change %q", a.Kind, a.Change)
	case !e.sizeKnown() && a.Kind != AnswerNeed && a.Kind != AnswerExists:
		return wire.Malformed(wire.TypeAnswers, "%s for a stream", a.Kind)
	case a.Kind == AnswerSum && e.phase == summed:
		return wire.WrongTurn(wire.TypeAnswers, "entry %d was asked for its digest before", a.Entry)
	case e.kind != wire.EntryFile && !e.complete():
		return wire.WrongTurn(wire.TypeAnswers, "the metadata of entry %d is incomplete", a.Entry)
	case a.Kind == AnswerNeed && n.plan.Compare:
		return wire.Malformed(wire.TypeAnswers, "%s where nothing may be written", a.Kind)
	case a.Offset > 0 && (!n.plan.Resumable() || n.plan.DryRun):
		return wire.Malformed(wire.TypeAnswers, "%d bytes to resume from in a transfer that does not resume", a.Offset)
	case a.Discarded != 0 && (!e.chunked() || n.plan.DryRun):
		return wire.Malformed(wire.TypeAnswers, "something was discarded of a file that nothing is kept of")
	case a.Offset > 0 && !e.chunked():
		return wire.Malformed(wire.TypeAnswers, "%d bytes to resume from in a file that comes in a pack", a.Offset)
	case a.Offset > e.size:
		return wire.Malformed(wire.TypeAnswers, "%d bytes to resume from, of %d", a.Offset, e.size)
	}
	e.marked = true
	return nil
}

// mayAnswer reports whether the plan has such an answer for a kind of entries.
func (n *Session) mayAnswer(a AnswerKind, to wire.EntryKind) bool {
	switch a {
	case AnswerNeed:
		return to == wire.EntryFile || n.plan.DryRun
	case AnswerSum:
		return to == wire.EntryFile
	case AnswerExists:
		return to != wire.EntryDirectory && n.plan.IgnoreExisting
	default:
		return true
	}
}

// mayHave reports whether an answer has a change where it must or may.
func (n *Session) mayHave(a Answer, to wire.EntryKind) bool {
	switch a.Kind {
	case AnswerNeed:
		return (a.Change != ChangeNone) == n.plan.DryRun
	case AnswerHave:
		return a.Change == ChangeNone || to == wire.EntryFile && n.plan.Overwrite
	default:
		return true
	}
}

// answer applies all answers, or none.
func (n *Session) answer(answers []Answer) error {
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

func (n *Session) applyAnswer(a Answer) {
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

func (n *Session) checkResult(number uint32) error {
	e, err := n.openIn(wire.TypeResults, number, unanswered, ended)
	switch {
	case err != nil:
		return err
	case e.failed || e.marked || e.packed || (e.kind == wire.EntryFile) != (e.phase == ended):
		return wire.WrongTurn(wire.TypeResults, "entry %d does not expect it", number)
	case e.kind == wire.EntryFile && e.acked != e.size:
		return wire.WrongTurn(wire.TypeResults, "%d of the %d bytes of entry %d were acknowledged", e.acked, e.size,
			number)
	case !e.complete():
		return wire.WrongTurn(wire.TypeResults, "the metadata of entry %d is incomplete", number)
	case n.plan.Compare || n.plan.DryRun:
		return wire.Malformed(wire.TypeResults, "a result where nothing may be written")
	}
	e.marked = true
	return nil
}

// commit applies all results, or none.
func (n *Session) commit(results []uint32) error {
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

func (n *Session) addMetadata(number uint32, m Metadata) error {
	if err := m.check(); err != nil {
		return err
	}
	e, err := n.openIn(wire.TypeMetadata, number, unanswered, needed)
	switch {
	case err != nil:
		return err
	case n.sends() && e.failed || !e.flags.Has(wire.EntryHasMetadata) ||
		(e.kind == wire.EntryFile) != (e.phase == needed):
		return wire.WrongTurn(wire.TypeMetadata, "entry %d does not expect it", number)
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
		return wire.Malformed(wire.TypeMetadata, "a fragment at %d of %d, after %d of %d", m.Offset, m.Total, a.done,
			a.total)
	}
	a.total, a.done = m.Total, a.done+uint32(len(m.Part))
	return nil
}

// end fixes the size of a file that was read completely.
func (n *Session) end(number uint32, size uint64, digest []byte) error {
	if err := checkDigest(wire.TypeEnd, digest, n.plan.Digest); err != nil {
		return err
	}
	e, err := n.openIn(wire.TypeEnd, number, needed, needed)
	switch {
	case err != nil:
		return err
	case n.sends() && e.failed:
		return wire.WrongTurn(wire.TypeEnd, "entry %d has failed", number)
	case !e.chunked():
		return wire.Malformed(wire.TypeEnd, "entry %d, which comes in a pack", number)
	case !e.complete():
		return wire.WrongTurn(wire.TypeEnd, "the metadata of entry %d is incomplete", number)
	case e.sizeKnown() && size != e.size:
		return wire.Malformed(wire.TypeEnd, "%d bytes at the end, %d announced", size, e.size)
	case size < e.covered() || size > n.sizeLimit(e):
		return wire.Malformed(wire.TypeEnd, "%d bytes at the end, %d announced, limit %d", size, e.covered(),
			n.sizeLimit(e))
	}
	e.size = size
	n.entries.change(e, ended)
	return nil
}

func (n *Session) sum(number uint32, digest []byte) error {
	if err := checkDigest(wire.TypeSum, digest, n.plan.SumDigest()); err != nil {
		return err
	}
	e, err := n.openIn(wire.TypeSum, number, asked, asked)
	if err != nil {
		return err
	}
	if n.sends() && e.failed {
		return wire.WrongTurn(wire.TypeSum, "entry %d has failed", number)
	}
	n.entries.change(e, summed)
	return nil
}

// finish checks that the sender has nothing to send for any entry, except for a second time. The receiver may have
// asked for that before it received the FINISH.
func (n *Session) finish(total, missing uint32) error {
	switch {
	case total != n.entries.next || total == 0:
		return wire.Malformed(wire.TypeFinish, "%d entries in total, %d announced", total, n.entries.next)
	case missing > 0 && !n.plan.Tree:
		return wire.Malformed(wire.TypeFinish, "%d missing entries of a file", missing)
	}
	for number := n.entries.oldest; number != n.entries.next; number++ {
		e := n.entries.at(number)
		switch {
		case e.phase == decided, e.phase == ended, e.again, e.failed && n.sends():
		case e.kind == wire.EntryFile || !e.complete():
			return wire.WrongTurn(wire.TypeFinish, "entry %d is incomplete", number)
		}
	}
	n.machine.State = Finishing
	return nil
}

// checkFinished checks that everything is decided, and that the receiver did what was planned. The durability of a
// stream is not known, and nothing is written without a need.
func (n *Session) checkFinished(d wire.Durability) error {
	switch {
	case !d.Known():
		return wire.Malformed(wire.TypeFinished, "unknown %s", d)
	case !n.Settled():
		return wire.WrongTurn(wire.TypeFinished, "%d entries are undecided, %d slots in flight", n.entries.undecided,
			n.slots.outstanding)
	case d < n.plan.Durability && !n.plan.StreamTarget && !n.plan.Compare && !n.plan.DryRun:
		return wire.Malformed(wire.TypeFinished, "durability %s instead of %s", d, n.plan.Durability)
	}
	return nil
}

// checkTransport checks that the peer may name the transport of the content.
func (n *Session) checkTransport(t wire.Type, transport string) error {
	if transport != "" && !n.plan.NamesTransport(n.side.Other()) {
		return wire.Malformed(t, "transport of the path %s", n.plan.Path)
	}
	return nil
}

// transport returns what this side may say of its transport.
func (n *Session) transport(name string) string {
	if !n.plan.NamesTransport(n.side) {
		return ""
	}
	return name
}

// beginTransfer is the effect of a TRANSFER, finishTransfer the effect of a FINISHED. The beat is of the side that
// sends it.
func (n *Session) beginTransfer(beat *Beat) {
	*beat = Beat{}
	n.order.Reset()
	n.entries.reset()
	n.machine.State = Transferring
}

func (n *Session) finishTransfer(beat *Beat) {
	*beat = Beat{}
	n.transfers++
	n.machine.State = Ready
}

// openWindow is the effect of a WINDOW.
func (n *Session) openWindow(w Window) error {
	if err := w.check(n.plan); err != nil {
		return err
	}
	n.window = true
	return nil
}

func checkDigest(t wire.Type, digest []byte, d wire.Digest) error {
	if len(digest) != d.Size() {
		return wire.Malformed(t, "%d bytes of %s instead of %d", len(digest), d, d.Size())
	}
	return nil
}
