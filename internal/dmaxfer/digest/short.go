package digest

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// shortTables returns tables for the CRC-32C of eight bytes at once: entry b of table i is the remainder of byte b
// followed by i zeros. All of them are computed in microseconds.
var shortTables = sync.OnceValue(func() *[8][256]uint32 {
	var tables [8][256]uint32
	for b := range 256 {
		crc := uint32(b)
		for range 8 {
			crc = crc>>1 ^ crc32.Castagnoli&-(crc&1)
		}
		tables[0][b] = crc
	}
	for i := 1; i < len(tables); i++ {
		for b, crc := range tables[i-1] {
			tables[i][b] = crc>>8 ^ tables[0][byte(crc)]
		}
	}
	return &tables
})

// updateShort is crc32.Update for CRC-32C, for inputs that are too short to pay for the table of that.
func updateShort(crc uint32, p []byte) uint32 {
	tables := shortTables()
	crc = ^crc
	for ; len(p) >= 8; p = p[8:] {
		low, high := crc^binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:])
		crc = tables[7][byte(low)] ^ tables[6][byte(low>>8)] ^ tables[5][byte(low>>16)] ^ tables[4][low>>24] ^
			tables[3][byte(high)] ^ tables[2][byte(high>>8)] ^ tables[1][byte(high>>16)] ^ tables[0][high>>24]
	}
	for _, b := range p {
		crc = crc>>8 ^ tables[0][byte(crc)^b]
	}
	return ^crc
}
