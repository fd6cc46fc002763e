package negotiate

// This file is what the caller of a NativeSession reports of its own side. The methods that a copy calls often append
// their message to dst and allocate nothing if it has room.

// Window, on the host after Planned, returns the WINDOW to send: Plan.WindowLength bytes at address, in the memory that
// the descriptor opens. ErrTooLarge if the message is longer than Limits.MaxMessage, ErrMalformed for an empty
// descriptor or a range that wraps.
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

// Ready, on the receiver after Planned, and on a DPU after WindowOpened, returns the READY to send: all is prepared, and
// the first resume bytes are there from an earlier attempt. ErrMalformed for a resume that the plan does not allow.
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

// Chunks, on the sender in Sending, appends the CHUNKS to send: each record takes its slot. There are 1 to
// MaxRecords(Limits.MaxMessage) of them. ErrTooLarge, ErrMalformed for a record that the plan does not allow,
// ErrOutOfOrder for one whose slot is outstanding.
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

// Acks, on the receiver in Receiving, appends the ACKS to send: each slot is vacant from then on. There are 1 to
// MaxAcks(Limits.MaxMessage) of them. ErrTooLarge, ErrMalformed, and ErrOutOfOrder for a slot that is vacant.
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

// Beat, on either side from Planned on until it is done, appends the HEARTBEAT to send. ErrMalformed for less work than
// before in the same phase.
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

// Metadata, on the sender in Sending if Plan.XAttr, returns the METADATA to send. The fragments go out in order, each of
// at most MaxMetadataPart(Limits.MaxMessage) bytes. ErrTooLarge, ErrMalformed.
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

// End, on the sender in Sending once nothing is outstanding, returns the END to send: size is that of the whole file in
// bytes, digest is by Plan.Digest. ErrOutOfOrder, and ErrMalformed for what contradicts the plan or the records.
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

// Prepared, on the receiver after PeerEnded, returns the PREPARED to send: the file is written and only lacks its name,
// and digest, by Plan.Digest, is of what was written. ErrMalformed for a digest of the wrong length.
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

// Commit, on the sender after PeerPrepared, returns the COMMIT to send.
func (n *NativeSession) Commit() ([]byte, error) {
	if n.state != Deciding {
		return nil, n.refuse(outOfOrder(TypeCommit))
	}
	n.state = AwaitDone
	return AppendCommit(nil), nil
}

// Done, on the receiver after PeerCommit, returns the DONE to send: the file has its name and is as durable as d says.
// The sender then hangs up. ErrMalformed for less than was planned, unless the receiver's end is a stream.
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
