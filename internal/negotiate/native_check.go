package negotiate

// This file has the checks that both sides of a NativeSession make of the same message: one before it sends the
// message, the other when it arrives.

func (n *NativeSession) checkResume(resume uint64) error {
	switch {
	case resume > 0 && !n.plan.Resumable():
		return malformed(TypeReady, "%d bytes to resume from in a copy that does not resume", resume)
	case resume > n.plan.Size:
		return malformed(TypeReady, "%d bytes to resume from, of %d", resume, n.plan.Size)
	}
	return nil
}

// announce occupies a slot for each record, or for none.
func (n *NativeSession) announce(records []Record) error {
	for i, r := range records {
		if err := n.checkRecord(r); err != nil {
			for _, taken := range records[:i] {
				n.slots.release(taken.Slot)
			}
			return err
		}
		n.slots.occupy(r.Slot, r.Length)
	}
	return nil
}

func (n *NativeSession) checkRecord(r Record) error {
	switch {
	case !n.slots.exists(r.Slot):
		return malformed(TypeChunks, "slot %d of %d", r.Slot, n.plan.Depth)
	case n.slots.inFlight[r.Slot]:
		return &Error{Message: TypeChunks, Err: ErrOutOfOrder, Detail: "a record for a slot in flight"}
	case r.Attempt > MaxAttempt:
		return malformed(TypeChunks, "attempt %d, limit %d", r.Attempt, MaxAttempt)
	case r.Length == 0:
		return malformed(TypeChunks, "an empty record")
	}
	if err := n.checkKind(r); err != nil {
		return err
	}
	return n.checkExtent(r)
}

func (n *NativeSession) checkKind(r Record) error {
	most, check := uint64(n.plan.Chunk), n.plan.Digest.maxChecksum()
	switch r.Kind {
	case DataRecord, ClaimRecord:
	case HoleRecord:
		most, check = n.sizeLimit(), 0
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

// checkExtent checks that a record is within the file, a claim within the resumed prefix, and that all records
// together do not cover more than the file.
func (n *NativeSession) checkExtent(r Record) error {
	end := n.sizeLimit()
	if r.Kind == ClaimRecord {
		end = n.resume
	}
	if r.Offset > end || r.Length > end-r.Offset {
		return malformed(TypeChunks, "%s of %d bytes at %d, beyond %d", r.Kind, r.Length, r.Offset, end)
	}
	if claimed := n.slots.covered(); r.Length > n.sizeLimit()-claimed {
		return malformed(TypeChunks, "%d bytes more than the %d that were announced; the limit is %d",
			r.Length, claimed, n.sizeLimit())
	}
	return nil
}

// sizeLimit returns the size of the file, or the largest allowed for a stream.
func (n *NativeSession) sizeLimit() uint64 {
	if n.plan.SizeKnown {
		return n.plan.Size
	}
	return n.limits.fileSize()
}

// acknowledge frees the slots of all acknowledgements, or of none.
func (n *NativeSession) acknowledge(acks []Ack) error {
	for i, a := range acks {
		if err := n.checkAck(a); err != nil {
			for _, settled := range acks[:i] {
				n.slots.undoAcknowledge(settled)
			}
			return err
		}
		n.slots.acknowledge(a)
	}
	return nil
}

func (n *NativeSession) checkAck(a Ack) error {
	if !n.slots.exists(a.Slot) {
		return malformed(TypeAcks, "slot %d of %d", a.Slot, n.plan.Depth)
	}
	if !n.slots.inFlight[a.Slot] {
		return &Error{Message: TypeAcks, Err: ErrOutOfOrder, Detail: "an acknowledgement for a slot not in flight"}
	}
	return nil
}

func (n *NativeSession) addMetadata(m Metadata) error {
	if !n.plan.XAttr {
		return &Error{Message: TypeMetadata, Err: ErrOutOfOrder, Detail: "extended attributes that were not agreed on"}
	}
	if err := m.check(); err != nil {
		return err
	}
	return n.metadata.add(m)
}

// assembly tracks how much of the extended attributes has been transferred.
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

// checkEnd checks that everything was sent and acknowledged.
func (n *NativeSession) checkEnd(t Total) error {
	switch {
	case n.slots.outstanding > 0:
		return &Error{Message: TypeEnd, Err: ErrOutOfOrder, Detail: "slots still in flight"}
	case !n.metadata.complete():
		return &Error{Message: TypeEnd, Err: ErrOutOfOrder, Detail: "the extended attributes are incomplete"}
	case n.plan.SizeKnown && t.Size != n.plan.Size:
		return malformed(TypeEnd, "%d bytes at the end, %d announced", t.Size, n.plan.Size)
	case t.Size != n.slots.acknowledged:
		return malformed(TypeEnd, "%d bytes at the end, %d acknowledged", t.Size, n.slots.acknowledged)
	}
	return n.checkTotal(TypeEnd, t)
}

func (n *NativeSession) checkPrepared(t Total) error {
	if t.Size != n.size {
		return malformed(TypePrepared, "%d bytes, after an END of %d", t.Size, n.size)
	}
	return n.checkTotal(TypePrepared, t)
}

func (n *NativeSession) checkTotal(message Type, t Total) error {
	if t.Algorithm != n.plan.Digest {
		return malformed(message, "a digest by %s instead of %s", t.Algorithm, n.plan.Digest)
	}
	return t.check(message)
}

// checkDone checks that the receiver did what was planned. The durability of a stream is not known.
func (n *NativeSession) checkDone(d Durability) error {
	if !d.Known() {
		return malformed(TypeDone, "unknown %s", d)
	}
	if d < n.plan.Durability && !n.plan.StreamTarget {
		return malformed(TypeDone, "durability %s instead of %s", d, n.plan.Durability)
	}
	return nil
}
