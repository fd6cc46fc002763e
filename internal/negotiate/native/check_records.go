package native

import (
	"math"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// announce occupies a slot for each record, or for none.
func (n *Session) announce(records []Record) error {
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
func (n *Session) retract(r *Record) {
	e := n.release(&n.slots.slots[r.Slot])
	if r.Kind == ClaimRecord {
		e.claimed -= r.Length
	}
}

func (n *Session) announceRecord(r Record) error {
	s, err := n.slots.vacant(wire.TypeChunks, uint32(r.Slot))
	if err != nil {
		return err
	}
	e, err := n.openIn(wire.TypeChunks, r.Entry, needed, ended)
	switch {
	case err != nil:
		return err
	case n.sends() && e.failed:
		return wire.WrongTurn(wire.TypeChunks, "entry %d has failed", r.Entry)
	case !e.chunked():
		return wire.Malformed(wire.TypeChunks, "a record of entry %d, which comes in a pack", r.Entry)
	case r.Length == 0:
		return wire.Malformed(wire.TypeChunks, "an empty record")
	}
	if err := wire.FirstError(r.check(), n.checkKind(r, e), n.checkExtent(r, e)); err != nil {
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

func (n *Session) checkKind(r Record, e *openEntry) error {
	most, check := uint64(n.plan.Chunk), maxChecksum(n.plan.Digest)
	switch r.Kind {
	case HoleRecord:
		most, check = n.sizeLimit(e), 0
	case ClaimRecord:
		check = math.MaxUint64
	}
	if r.Length > most {
		return wire.Malformed(wire.TypeChunks, "%d bytes of %s, limit %d", r.Length, r.Kind, most)
	}
	if r.Check > check {
		return wire.Malformed(wire.TypeChunks, "check %#x of %s, by %s", r.Check, r.Kind, n.plan.Digest)
	}
	return nil
}

// maxChecksum returns the largest checksum that a record of data may have.
func maxChecksum(d wire.Digest) uint64 {
	switch d {
	case wire.DigestNone:
		return 0
	case wire.DigestCRC32C:
		return 1<<32 - 1
	}
	return 1<<64 - 1
}

// checkExtent checks that a record is within the file, a claim within the resumed prefix, and that all records of the
// file together do not cover more than the file. Claims that were refused are not made again, so that a sender cannot
// have the receiver compare its prefix without end.
func (n *Session) checkExtent(r Record, e *openEntry) error {
	end := n.sizeLimit(e)
	if r.Kind == ClaimRecord {
		end = e.resume
	}
	if r.Offset > end || r.Length > end-r.Offset {
		return wire.Malformed(wire.TypeChunks, "%s of %d bytes at %d, beyond %d", r.Kind, r.Length, r.Offset, end)
	}
	if r.Kind == ClaimRecord && r.Length > e.resume-e.claimed {
		return wire.Malformed(wire.TypeChunks, "%d bytes claimed after %d, of %d", r.Length, e.claimed, e.resume)
	}
	if covered := e.covered(); r.Length > n.sizeLimit(e)-covered {
		return wire.Malformed(wire.TypeChunks, "%d bytes more than the %d that were announced; the limit is %d",
			r.Length, covered, n.sizeLimit(e))
	}
	return nil
}

// fileLimit returns the limit on a file, whether or not its size is known.
func (n *Session) fileLimit() uint64 { return min(n.machine.Limits.MaxFileSize, wire.MaxSize) }

// sizeLimit returns the size of the file, or the largest allowed for a stream.
func (n *Session) sizeLimit(e *openEntry) uint64 {
	if e.sizeKnown() {
		return e.size
	}
	return n.fileLimit()
}

// release makes a slot with a record vacant and returns the entry of the record; nil if it is decided.
func (n *Session) release(s *slot) *openEntry {
	s.inFlight = false
	n.slots.outstanding--
	e := n.entries.open(s.entry)
	if e != nil {
		e.pending -= s.length
	}
	return e
}

// acknowledge makes the slots of all acknowledgements vacant, or of none.
func (n *Session) acknowledge(acks []Ack) error {
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
	n.slots.acknowledged += uint64(len(acks))
	for _, a := range acks {
		n.applyAck(&n.slots.slots[a.Slot], a.Bad)
	}
	return nil
}

func (n *Session) applyAck(s *slot, bad bool) {
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
func (n *Session) acknowledgePack(s *slot, bad bool) {
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

func (n *Session) checkPacked(f *PackedFile, from uint64) error {
	e, err := n.openIn(wire.TypePack, f.Entry, needed, needed)
	switch {
	case err != nil:
		return err
	case e.marked || n.sends() && e.failed || !e.complete():
		return wire.WrongTurn(wire.TypePack, "entry %d does not expect it", f.Entry)
	case e.chunked():
		return wire.Malformed(wire.TypePack, "entry %d, which comes in chunks", f.Entry)
	case uint64(f.Length) != e.size:
		return wire.Malformed(wire.TypePack, "%d bytes of entry %d instead of all %d", f.Length, f.Entry, e.size)
	case uint64(f.Position) < from || uint64(f.Position)+uint64(f.Length) > uint64(n.plan.Chunk):
		return wire.Malformed(wire.TypePack, "%d bytes at %d of a slot of %d, after those before %d",
			f.Length, f.Position, n.plan.Chunk, from)
	case f.Check > maxChecksum(n.plan.Digest):
		return wire.Malformed(wire.TypePack, "check %#x, by %s", f.Check, n.plan.Digest)
	}
	e.marked = true
	return nil
}

// announcePack occupies the slot for all files, or not at all.
func (n *Session) announcePack(p Pack) error {
	s, err := n.slots.vacant(wire.TypePack, uint32(p.Slot))
	if err != nil {
		return err
	}
	if p.Attempt > MaxAttempt {
		return wire.Malformed(wire.TypePack, "attempt %d, limit %d", p.Attempt, MaxAttempt)
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
func (n *Session) linkPack(s *slot, files []PackedFile) {
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
