package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file has the calls of the sender.

// Transfer is called in Ready and appends the TRANSFER to send: a transfer begins.
func (n *Session) Transfer(dst []byte) ([]byte, error) {
	return n.send(dst, AppendTransfer(dst), func() error {
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
// may follow until they cover size bytes. digest is that of the file by Plan.Digest. It fails with ErrOutOfOrder, and
// with ErrMalformed if size or digest contradict the plan, the entry or its records.
func (n *Session) End(dst []byte, entry uint32, size uint64, digest []byte) ([]byte, error) {
	return n.send(dst, AppendEnd(dst, entry, size, digest), func() error { return n.end(entry, size, digest) })
}

// Sum appends a SUM. It is called after AnswerSum; digest is that of the file by Plan.SumDigest. It fails with
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
