package negotiate

// This file has the calls by which a side reports its own progress. Those that a transfer makes often append their
// message to dst and do not allocate if its capacity is sufficient.

// Window is called on the host after Planned and returns the WINDOW to send: Plan.WindowLength bytes at address in
// the memory that the descriptor exports. It fails with ErrTooLarge if the message exceeds Limits.MaxMessage, and
// with ErrMalformed for an empty descriptor or a range that wraps around.
func (n *NativeSession) Window(address uint64, descriptor []byte) ([]byte, error) {
	if n.side != Host || n.window || n.state != AwaitReady && n.state != Preparing {
		return nil, n.refuse(outOfOrder(TypeWindow))
	}
	w := Window{Address: address, Length: n.plan.WindowLength(), Descriptor: descriptor}
	if err := w.check(); err != nil {
		return nil, n.refuse(err)
	}
	if err := n.checkFits(TypeWindow, windowSize+len(descriptor)); err != nil {
		return nil, n.refuse(err)
	}
	n.window = true
	n.startRecords()
	return AppendWindow(nil, w), nil
}

// Ready is called on the receiver after Planned, on a DPU after WindowOpened, and returns the READY to send: the
// target is prepared, and has its first resume bytes from an earlier transfer. It fails with ErrMalformed for a
// resume that the plan does not allow.
func (n *NativeSession) Ready(resume uint64) ([]byte, error) {
	if n.state != Preparing || n.ready || n.side == DPU && !n.window {
		return nil, n.refuse(outOfOrder(TypeReady))
	}
	if err := n.checkResume(resume); err != nil {
		return nil, n.refuse(err)
	}
	n.ready, n.resume = true, resume
	n.startRecords()
	return AppendReady(nil, resume), nil
}

// Chunks is called on the sender in Sending and appends the CHUNKS to send. Each record occupies its slot. There may
// be 1 to MaxRecords(Limits.MaxMessage) records. It fails with ErrTooLarge, with ErrMalformed for a record that the
// plan does not allow, and with ErrOutOfOrder for one whose slot is in flight.
func (n *NativeSession) Chunks(dst []byte, records []Record) ([]byte, error) {
	if n.state != Sending {
		return dst, n.refuse(outOfOrder(TypeChunks))
	}
	if err := n.checkList(TypeChunks, len(records), recordSize); err != nil {
		return dst, n.refuse(err)
	}
	if err := n.announce(records); err != nil {
		return dst, n.refuse(err)
	}
	return AppendChunks(dst, records), nil
}

// Acks is called on the receiver in Receiving and appends the ACKS to send. Each slot is vacant then. There may be 1
// to MaxAcks(Limits.MaxMessage) acknowledgements. It fails with ErrTooLarge, ErrMalformed, and with ErrOutOfOrder for
// a slot that is vacant.
func (n *NativeSession) Acks(dst []byte, acks []Ack) ([]byte, error) {
	if n.state != Receiving {
		return dst, n.refuse(outOfOrder(TypeAcks))
	}
	if err := n.checkList(TypeAcks, len(acks), ackSize); err != nil {
		return dst, n.refuse(err)
	}
	if err := n.acknowledge(acks); err != nil {
		return dst, n.refuse(err)
	}
	return AppendAcks(dst, acks), nil
}

// Beat is called on either side from Planned until Done and appends the HEARTBEAT to send. It fails with ErrMalformed
// for less work than before in the same phase.
func (n *NativeSession) Beat(dst []byte, b Beat) ([]byte, error) {
	if !n.planned() || n.state == Done || n.state == Failed {
		return dst, n.refuse(outOfOrder(TypeHeartbeat))
	}
	if err := checkBeat(b, n.ownBeat); err != nil {
		return dst, n.refuse(err)
	}
	n.ownBeat = b
	return AppendBeat(dst, b), nil
}

// Metadata is called on the sender in Sending if Plan.XAttr, and returns the METADATA to send. Fragments are sent in
// order, each at most MaxMetadataPart(Limits.MaxMessage) bytes. It fails with ErrTooLarge or ErrMalformed.
func (n *NativeSession) Metadata(m Metadata) ([]byte, error) {
	if n.state != Sending {
		return nil, n.refuse(outOfOrder(TypeMetadata))
	}
	if err := n.checkFits(TypeMetadata, metadataSize+len(m.Part)); err != nil {
		return nil, n.refuse(err)
	}
	if err := n.addMetadata(m); err != nil {
		return nil, n.refuse(err)
	}
	return AppendMetadata(nil, m), nil
}

// End is called on the sender in Sending when no slot is in flight, and returns the END to send. size is that of the
// whole file in bytes, digest the one of Plan.Digest. It fails with ErrOutOfOrder, and with ErrMalformed if size or
// digest contradict the plan or the records.
func (n *NativeSession) End(size uint64, digest []byte) ([]byte, error) {
	if n.state != Sending {
		return nil, n.refuse(outOfOrder(TypeEnd))
	}
	t := Total{Algorithm: n.plan.Digest, Size: size, Digest: digest}
	if err := n.checkEnd(t); err != nil {
		return nil, n.refuse(err)
	}
	n.size = size
	n.state = AwaitPrepared
	return AppendEnd(nil, t), nil
}

// Prepared is called on the receiver after PeerEnded and returns the PREPARED to send: the file is complete except
// for its rename, and digest is that of the written content. It fails with ErrMalformed for a digest of the wrong
// length.
func (n *NativeSession) Prepared(digest []byte) ([]byte, error) {
	if n.state != Verifying {
		return nil, n.refuse(outOfOrder(TypePrepared))
	}
	t := Total{Algorithm: n.plan.Digest, Size: n.size, Digest: digest}
	if err := n.checkPrepared(t); err != nil {
		return nil, n.refuse(err)
	}
	n.state = AwaitCommit
	return AppendPrepared(nil, t), nil
}

// Commit is called on the sender after PeerPrepared and returns the COMMIT to send.
func (n *NativeSession) Commit() ([]byte, error) {
	if n.state != Deciding {
		return nil, n.refuse(outOfOrder(TypeCommit))
	}
	n.state = AwaitDone
	return AppendCommit(nil), nil
}

// Done is called on the receiver after PeerCommit and returns the DONE to send: the file is renamed, with durability
// d. The sender then disconnects. It fails with ErrMalformed for less than planned, unless the target is a stream.
func (n *NativeSession) Done(d Durability) ([]byte, error) {
	if n.state != Committing {
		return nil, n.refuse(outOfOrder(TypeDone))
	}
	if err := n.checkDone(d); err != nil {
		return nil, n.refuse(err)
	}
	n.state = AwaitDisconnect
	return AppendDone(nil, d), nil
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
