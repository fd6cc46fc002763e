package negotiate

// This file has the calls of the sender.

// Transfer is called in Ready and appends the TRANSFER to send: a transfer begins.
func (n *NativeSession) Transfer(dst []byte) ([]byte, error) {
	if err := n.mayCall(TypeTransfer); err != nil {
		return dst, n.refuse(err)
	}
	n.ownBeat = Beat{}
	n.beginTransfer()
	return AppendTransfer(dst), nil
}

// Entries appends an ENTRIES with as many of the entries as Room and Limits.MaxMessage permit, used of them, and sets
// their numbers. It stops before an entry that cannot be announced, and fails if that is the first: with ErrTooLarge if
// it does not fit in a message, with ErrOutOfOrder if there is no room, and with ErrMalformed if the plan, its values
// or the order of the names do not permit it.
func (n *NativeSession) Entries(dst []byte, entries []Entry) (msg []byte, used int, err error) {
	if err := n.mayCall(TypeEntries); err != nil {
		return dst, 0, n.refuse(err)
	}
	if len(entries) == 0 {
		return dst, 0, n.refuse(malformed(TypeEntries, "an empty list"))
	}
	length := listSize
	for i := range entries {
		e := &entries[i]
		length += entrySize + len(e.Name) + len(e.Link)
		err = firstError(n.checkFits(TypeEntries, length), e.check())
		if err == nil {
			err = n.checkEntry(e)
		}
		if err != nil {
			break
		}
		n.addEntry(e)
		used++
	}
	if used == 0 {
		return dst, 0, n.refuse(err)
	}
	return AppendEntries(dst, entries[:used]), used, nil
}

// Metadata appends a METADATA. It is called for an entry with EntryHasMetadata: for a file after AnswerNeed and before
// End or Pack, for another entry after Entries. Fragments are sent in order, each at most
// MaxMetadataPart(Limits.MaxMessage) bytes. It fails with ErrTooLarge, ErrMalformed or ErrOutOfOrder.
func (n *NativeSession) Metadata(dst []byte, entry uint32, m Metadata) ([]byte, error) {
	err := n.mayCall(TypeMetadata)
	if err == nil {
		err = n.checkFits(TypeMetadata, metadataSize+len(m.Part))
	}
	if err == nil {
		err = n.addMetadata(entry, m)
	}
	if err != nil {
		return dst, n.refuse(err)
	}
	return AppendMetadata(dst, entry, m), nil
}

// Chunks appends a CHUNKS. It is called for files with EntryChunked after AnswerNeed. Each record occupies its slot.
// There may be 1 to MaxRecords(Limits.MaxMessage) records. It fails with ErrTooLarge, with ErrMalformed for a record
// that the plan or the entry does not permit, and with ErrOutOfOrder for a slot in flight, for an entry that is not
// needed, and before the WINDOW.
func (n *NativeSession) Chunks(dst []byte, records []Record) ([]byte, error) {
	err := n.mayAnnounce(TypeChunks)
	if err == nil {
		err = n.checkList(TypeChunks, len(records), recordSize)
	}
	if err == nil {
		err = n.announce(records)
	}
	if err != nil {
		return dst, n.refuse(err)
	}
	return AppendChunks(dst, records), nil
}

// Pack appends a PACK. It is called for files without EntryChunked after AnswerNeed; they need no End. There may be 1
// to MaxPacked(Limits.MaxMessage, Plan.Digest) files. After a bad acknowledgement they are all needed again. It fails
// as Chunks does.
func (n *NativeSession) Pack(dst []byte, p Pack) ([]byte, error) {
	err := n.mayAnnounce(TypePack)
	if err == nil && len(p.Files) == 0 {
		err = malformed(TypePack, "an empty list")
	}
	if err == nil {
		err = n.checkFits(TypePack, packSize+len(p.Files)*(packedSize+n.plan.Digest.Size()))
	}
	if err == nil {
		err = n.announcePack(p)
	}
	if err != nil {
		return dst, n.refuse(err)
	}
	return AppendPack(dst, p, n.plan.Digest), nil
}

// mayAnnounce checks that both sides know the window.
func (n *NativeSession) mayAnnounce(message Type) error {
	if !n.window {
		return wrongTurn(message, "there is no window")
	}
	return n.mayCall(message)
}

// End appends an END. It is called for a file with EntryChunked after AnswerNeed when all of it has been read; records
// may follow until they cover size bytes. digest is that of the file by Plan.Digest. It fails with ErrOutOfOrder, and
// with ErrMalformed if size or digest contradict the plan, the entry or its records.
func (n *NativeSession) End(dst []byte, entry uint32, size uint64, digest []byte) ([]byte, error) {
	err := n.mayCall(TypeEnd)
	if err == nil {
		err = checkDigest(TypeEnd, digest, n.plan.Digest)
	}
	if err == nil {
		err = n.end(entry, size)
	}
	if err != nil {
		return dst, n.refuse(err)
	}
	return AppendEnd(dst, entry, size, digest), nil
}

// Sum appends a SUM. It is called after AnswerSum; digest is that of the file by Plan.SumDigest. It fails with
// ErrOutOfOrder or ErrMalformed.
func (n *NativeSession) Sum(dst []byte, entry uint32, digest []byte) ([]byte, error) {
	err := n.mayCall(TypeSum)
	if err == nil {
		err = checkDigest(TypeSum, digest, n.plan.SumDigest())
	}
	if err == nil {
		err = n.sum(entry)
	}
	if err != nil {
		return dst, n.refuse(err)
	}
	return AppendSum(dst, entry, digest), nil
}

// Finish appends a FINISH. It is called when every file is ended, failed or decided. missing is the number of entries
// that the sender found and could not announce. transport is what carries the content, as for AppendFinished; it is
// left out unless Plan.NamesTransport. Finish fails with ErrOutOfOrder, and with ErrMalformed without an entry, or with
// missing ones of a transfer without a tree.
func (n *NativeSession) Finish(dst []byte, missing uint32, transport string) ([]byte, error) {
	err := n.mayCall(TypeFinish)
	if err == nil {
		err = n.checkFinish(n.entries.next, missing)
	}
	if err != nil {
		return dst, n.refuse(err)
	}
	n.state = Finishing
	return AppendFinish(dst, n.entries.next, missing, n.transport(transport)), nil
}
