package disk

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"
)

// sealed returns a record with these values and a correct checksum.
func sealed(size, prefix int64) [journalSize]byte {
	var j journal
	j.fill(&Wanted{Size: size})
	binary.BigEndian.PutUint64(j.record[56:], uint64(prefix))
	binary.BigEndian.PutUint32(j.record[64:], crc32.Checksum(j.record[:64], crc32.MakeTable(crc32.Castagnoli)))
	return j.record
}

func TestJournalsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		size, prefix int64
		sound        bool
	}{
		{10, 0, true}, {10, 10, true}, {0, 0, true}, {math.MaxInt64, math.MaxInt64, true},
		{10, 11, false}, {10, -1, false}, {-1, 0, false}, {-1, -1, false}, {10, math.MinInt64, false},
	} {
		found, err := parseJournal(sealed(c.size, c.prefix))
		if (err == nil) != c.sound || c.sound && (found.size != c.size || found.prefix != c.prefix) {
			t.Errorf("%+v became %d of %d, %v", c, found.prefix, found.size, err)
		}
	}
}

func FuzzParseJournal(f *testing.F) {
	whole := sealed(10, 5)
	f.Add(whole[:])
	f.Fuzz(func(t *testing.T, record []byte) {
		if len(record) != journalSize {
			return
		}
		found, err := parseJournal([journalSize]byte(record))
		if err == nil && (found.prefix < 0 || found.prefix > found.size) {
			t.Errorf("%d of %d", found.prefix, found.size)
		}
	})
}
