package negotiate

import (
	"fmt"
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

func (n *NativeSession) checkEntry(e *Entry) error {
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
	return nil
}

func (n *NativeSession) addEntry(e *Entry) {
	e.Number = n.order.next
	n.order.add(e)
	n.entries.add(e)
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
	case e.kind != EntryFile && a.Kind != AnswerHave:
		return malformed(TypeAnswers, "%s for a %s", a.Kind, e.kind)
	case !e.sizeKnown() && a.Kind != AnswerNeed:
		return malformed(TypeAnswers, "%s for a stream", a.Kind)
	case a.Kind == AnswerSum && e.phase == summed:
		return wrongTurn(TypeAnswers, "entry %d was asked for its digest before", a.Entry)
	case a.Kind == AnswerHave && e.kind != EntryFile && !e.complete():
		return wrongTurn(TypeAnswers, "the metadata of entry %d is incomplete", a.Entry)
	case a.Kind == AnswerNeed && n.plan.Compare:
		return malformed(TypeAnswers, "%s where nothing may be written", a.Kind)
	case a.Offset > 0 && (!n.plan.Resumable() || n.plan.DryRun):
		return malformed(TypeAnswers, "%d bytes to resume from in a transfer that does not resume", a.Offset)
	case a.Offset > 0 && !e.chunked():
		return malformed(TypeAnswers, "%d bytes to resume from in a file that comes in a pack", a.Offset)
	case a.Offset > e.size:
		return malformed(TypeAnswers, "%d bytes to resume from, of %d", a.Offset, e.size)
	}
	e.marked = true
	return nil
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
	case a.Kind == AnswerHave:
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
	case n.plan.Compare:
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

// announce occupies a slot for each record, or for none.
func (n *NativeSession) announce(records []Record) error {
	for i, r := range records {
		if err := n.announceRecord(r); err != nil {
			for k := range records[:i] {
				n.retract(&records[k])
			}
			return err
		}
	}
	return nil
}

// retract undoes announceRecord.
func (n *NativeSession) retract(r *Record) {
	e := n.release(&n.slots.slots[r.Slot])
	if r.Kind == ClaimRecord {
		e.claimed -= r.Length
	}
}

func (n *NativeSession) announceRecord(r Record) error {
	s, err := n.slots.vacant(TypeChunks, uint32(r.Slot))
	if err != nil {
		return err
	}
	e, err := n.openIn(TypeChunks, r.Entry, needed, ended)
	switch {
	case err != nil:
		return err
	case n.sends() && e.failed:
		return wrongTurn(TypeChunks, "entry %d has failed", r.Entry)
	case !e.chunked():
		return malformed(TypeChunks, "a record of entry %d, which comes in a pack", r.Entry)
	case r.Attempt > MaxAttempt:
		return malformed(TypeChunks, "attempt %d, limit %d", r.Attempt, MaxAttempt)
	case r.Length == 0:
		return malformed(TypeChunks, "an empty record")
	}
	if err := n.checkKind(r, e); err != nil {
		return err
	}
	if err := n.checkExtent(r, e); err != nil {
		return err
	}
	*s = slot{inFlight: true, entry: r.Entry, length: r.Length}
	n.slots.outstanding++
	e.pending += r.Length
	if r.Kind == ClaimRecord {
		e.claimed += r.Length
	}
	return nil
}

func (n *NativeSession) checkKind(r Record, e *openEntry) error {
	most, check := uint64(n.plan.Chunk), n.plan.Digest.maxChecksum()
	switch r.Kind {
	case DataRecord, ClaimRecord:
	case HoleRecord:
		most, check = n.sizeLimit(e), 0
	default:
		return malformed(TypeChunks, "a record of unknown %s", r.Kind)
	}
	if r.Length > most {
		return malformed(TypeChunks, "%d bytes of %s, limit %d", r.Length, r.Kind, most)
	}
	if r.Check > check {
		return malformed(TypeChunks, "check %#x of %s, by %s", r.Check, r.Kind, n.plan.Digest)
	}
	return nil
}

// maxChecksum returns the largest checksum that a record of data may have.
func (d Digest) maxChecksum() uint64 {
	switch d {
	case DigestNone:
		return 0
	case DigestCRC32C:
		return 1<<32 - 1
	}
	return 1<<64 - 1
}

// checkExtent checks that a record is within the file, a claim within the resumed prefix, and that all records of the
// file together do not cover more than the file. Claims that were refused are not made again, so that a sender cannot
// have the receiver compare its prefix without end.
func (n *NativeSession) checkExtent(r Record, e *openEntry) error {
	end := n.sizeLimit(e)
	if r.Kind == ClaimRecord {
		end = e.resume
	}
	if r.Offset > end || r.Length > end-r.Offset {
		return malformed(TypeChunks, "%s of %d bytes at %d, beyond %d", r.Kind, r.Length, r.Offset, end)
	}
	if r.Kind == ClaimRecord && r.Length > e.resume-e.claimed {
		return malformed(TypeChunks, "%d bytes claimed after %d, of %d", r.Length, e.claimed, e.resume)
	}
	if covered := e.covered(); r.Length > n.sizeLimit(e)-covered {
		return malformed(TypeChunks, "%d bytes more than the %d that were announced; the limit is %d",
			r.Length, covered, n.sizeLimit(e))
	}
	return nil
}

// sizeLimit returns the size of the file, or the largest allowed for a stream.
func (n *NativeSession) sizeLimit(e *openEntry) uint64 {
	if e.sizeKnown() {
		return e.size
	}
	return n.limits.fileSize()
}

// release makes a slot with a record vacant and returns the entry of the record; nil if it is decided.
func (n *NativeSession) release(s *slot) *openEntry {
	s.inFlight = false
	n.slots.outstanding--
	e := n.entries.open(s.entry)
	if e != nil {
		e.pending -= s.length
	}
	return e
}

// acknowledge makes the slots of all acknowledgements vacant, or of none.
func (n *NativeSession) acknowledge(acks []Ack) error {
	for i, a := range acks {
		s, err := n.slots.inFlight(a.Slot)
		if err != nil {
			for _, checked := range acks[:i] {
				n.slots.slots[checked.Slot].marked = false
			}
			return err
		}
		s.marked = true
	}
	for _, a := range acks {
		n.applyAck(&n.slots.slots[a.Slot], a.Bad)
	}
	return nil
}

func (n *NativeSession) applyAck(s *slot, bad bool) {
	s.marked = false
	if s.packed {
		n.acknowledgePack(s, bad)
		return
	}
	if e := n.release(s); e != nil && !bad {
		e.acked += s.length
	}
}

// acknowledgePack ends the files of a pack, or makes the sender send them again.
func (n *NativeSession) acknowledgePack(s *slot, bad bool) {
	s.inFlight = false
	n.slots.outstanding--
	for at := s.first; ; {
		e := &n.entries.ring[at]
		e.packed = false
		switch {
		case e.phase == decided:
		case bad:
			e.again = true
			n.entries.change(e, needed)
		default:
			e.acked = e.size
		}
		if e.next == at {
			break
		}
		at = e.next
	}
	n.entries.advance()
}

func (n *NativeSession) checkPacked(f *PackedFile, from uint64) error {
	e, err := n.openIn(TypePack, f.Entry, needed, needed)
	switch {
	case err != nil:
		return err
	case e.marked || n.sends() && e.failed || !e.complete():
		return wrongTurn(TypePack, "entry %d does not expect it", f.Entry)
	case e.chunked():
		return malformed(TypePack, "entry %d, which comes in chunks", f.Entry)
	case uint64(f.Length) != e.size:
		return malformed(TypePack, "%d bytes of entry %d instead of all %d", f.Length, f.Entry, e.size)
	case uint64(f.Position) < from || uint64(f.Position)+uint64(f.Length) > uint64(n.plan.Chunk):
		return malformed(TypePack, "%d bytes at %d of a slot of %d, after those before %d",
			f.Length, f.Position, n.plan.Chunk, from)
	case f.Check > n.plan.Digest.maxChecksum():
		return malformed(TypePack, "check %#x, by %s", f.Check, n.plan.Digest)
	}
	e.marked = true
	return nil
}

// announcePack occupies the slot for all files, or not at all.
func (n *NativeSession) announcePack(p Pack) error {
	s, err := n.slots.vacant(TypePack, uint32(p.Slot))
	if err != nil {
		return err
	}
	if p.Attempt > MaxAttempt {
		return malformed(TypePack, "attempt %d, limit %d", p.Attempt, MaxAttempt)
	}
	from := uint64(0)
	for i := range p.Files {
		f := &p.Files[i]
		if err := n.checkPacked(f, from); err != nil {
			for k := range p.Files[:i] {
				n.entries.at(p.Files[k].Entry).marked = false
			}
			return err
		}
		from = uint64(f.Position) + uint64(f.Length)
	}
	*s = slot{inFlight: true, packed: true}
	n.slots.outstanding++
	n.linkPack(s, p.Files)
	return nil
}

// linkPack makes a list of the files of a pack. The last refers to itself.
func (n *NativeSession) linkPack(s *slot, files []PackedFile) {
	next := n.entries.place(files[len(files)-1].Entry)
	for i := len(files) - 1; i >= 0; i-- {
		place := n.entries.place(files[i].Entry)
		e := &n.entries.ring[place]
		e.marked, e.packed, e.next = false, true, next
		n.entries.change(e, ended)
		next = place
	}
	s.first = next
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
func (n *NativeSession) end(number uint32, size uint64) error {
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

func (n *NativeSession) sum(number uint32) error {
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

// checkFinish checks that the sender has nothing to send for any entry, except for a second time. The receiver may have
// asked for that before it received the FINISH.
func (n *NativeSession) checkFinish(total, missing uint32) error {
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

// beginTransfer is the effect of a TRANSFER, finishTransfer that of a FINISHED.
func (n *NativeSession) beginTransfer() {
	n.order.reset()
	n.entries.reset()
	n.state = Transferring
}

func (n *NativeSession) finishTransfer() {
	n.transfers++
	n.state = Ready
}

func checkDigest(t Type, digest []byte, d Digest) error {
	if len(digest) != d.Size() {
		return malformed(t, "%d bytes of %s instead of %d", len(digest), d, d.Size())
	}
	return nil
}

func (n *NativeSession) checkList(t Type, count, element int) error {
	if count == 0 {
		return malformed(t, "an empty list")
	}
	return n.checkFits(t, listSize+count*element)
}

func (n *NativeSession) checkFits(t Type, length int) error {
	if length > n.limits.MaxMessage {
		return tooLarge(t, "the message has", uint64(length), uint64(max(0, n.limits.MaxMessage)))
	}
	return nil
}

func wrongTurn(t Type, format string, args ...any) *Error {
	return &Error{Message: t, Err: ErrOutOfOrder, Detail: fmt.Sprintf(format, args...)}
}
