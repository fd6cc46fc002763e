package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// A journal is one record that is overwritten in place: what is copied, and how much of the partial file is verified.
//
//	0 magic [8]  8 size i64  16 mtime_sec i64  24 mtime_nsec u32  28 chunk u64  36 digest u8  37 zero [3]
//	40 identity [16]  56 prefix i64  64 CRC-32C of all before u32            big-endian; the magic holds the version
const journalSize = 68

const journalMagic = "dma-jnl\x01"

// journal is an open journal. Its content need not be durable, nor even true: a resumed transfer compares all of it
// with the source, so a journal that is ahead of the disk only loses the saved work.
type journal struct {
	file     File
	record   [journalSize]byte
	recorded int64
}

// fill initialises the record for a transfer that has verified nothing yet.
func (j *journal) fill(w *Wanted) {
	j.record = [journalSize]byte{}
	copy(j.record[:], journalMagic)
	binary.BigEndian.PutUint64(j.record[8:], uint64(w.Size))
	binary.BigEndian.PutUint64(j.record[16:], uint64(w.Modified.Sec))
	binary.BigEndian.PutUint32(j.record[24:], w.Modified.Nsec)
	j.record[36] = w.Digest
	copy(j.record[40:56], w.Identity[:])
}

// write records that the bytes below prefix are verified.
func (j *journal) write(prefix int64) error {
	binary.BigEndian.PutUint64(j.record[56:], uint64(prefix))
	binary.BigEndian.PutUint32(j.record[64:], checksum(&j.record))
	if _, err := j.file.WriteAt(j.record[:], 0); err != nil {
		return err
	}
	j.recorded = prefix
	return nil
}

// checksum returns the CRC-32C of the fields of a record.
func checksum(record *[journalSize]byte) uint32 {
	return uint32(digest.Check(digest.CRC32C, record[:64]))
}

// journalContent is the content of an intact journal.
type journalContent struct {
	size, prefix int64
	record       [journalSize]byte
}

// Reasons for not using a journal, in sentences about the partial file.
var (
	errJournalMissing  = errors.New("its journal is missing")
	errJournalDamaged  = errors.New("its journal is damaged")
	errOtherSource     = errors.New("the source is another file or has changed since")
	errOtherDigest     = errors.New("it was copied with another digest algorithm")
	errPartialTooShort = errors.New("it is shorter than its journal says")
	errMayNotResume    = errors.New("this copy cannot resume")
)

// readJournal reads a journal without trusting it: it may be torn, or be another file.
func readJournal(file File) (journalContent, error) {
	var buffer [journalSize + 1]byte
	n, err := file.ReadAt(buffer[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return journalContent{}, err
	}
	if n != journalSize {
		return journalContent{}, errJournalDamaged
	}
	return parseJournal([journalSize]byte(buffer[:]))
}

func parseJournal(record [journalSize]byte) (journalContent, error) {
	found := journalContent{
		size:   int64(binary.BigEndian.Uint64(record[8:])),
		prefix: int64(binary.BigEndian.Uint64(record[56:])),
		record: record,
	}
	switch {
	case string(record[:8]) != journalMagic,
		binary.BigEndian.Uint32(record[64:]) != checksum(&record),
		found.prefix < 0, found.prefix > found.size:
		return journalContent{}, errJournalDamaged
	default:
		return found, nil
	}
}

// matches returns an error if the journal is not the wanted transfer's.
func (c journalContent) matches(w *Wanted) error {
	var wanted journal
	wanted.fill(w)
	same := func(from, to int) bool { return bytes.Equal(c.record[from:to], wanted.record[from:to]) }
	switch {
	case !same(8, 28) || !same(40, 56):
		return errOtherSource
	case !same(36, 40):
		return errOtherDigest
	default:
		return nil
	}
}
