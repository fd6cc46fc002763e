package digest

import (
	"hash/crc32"

	"github.com/zeebo/xxh3"
)

// Check is what travels with a single chunk of a copy that uses the algorithm: 0 for None, the chunk's CRC-32C for
// CRC32C, its XXH3-64 for all others, whose own digest covers the file as a whole.
func Check(a Algorithm, chunk []byte) uint64 {
	switch a {
	case None:
		return 0
	case CRC32C:
		return uint64(updateCastagnoli(0, chunk))
	default:
		return xxh3.Hash(chunk)
	}
}

// CheckedCopy copies a chunk to target, which is as long, and returns the Check of what target then holds, whoever changes the chunk meanwhile.
func CheckedCopy(a Algorithm, target, chunk []byte) uint64 {
	if a == CRC32C {
		return uint64(copyCastagnoli(target, chunk))
	}
	copy(target, chunk)
	return Check(a, target)
}

// foldBlock is how many bytes fold takes at once.
const foldBlock = 256

// foldFrom is from how many bytes on folding pays.
const minFold = 4 * foldBlock

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// updateCastagnoli is crc32.Update for CRC-32C. Where the processor multiplies polynomials on whole cache lines it first folds the bytes
// into one block that leaves the same remainder, which is several times faster than the processor's CRC instruction.
func updateCastagnoli(crc uint32, p []byte) uint32 {
	if !canFold || len(p) < minFold {
		return crc32.Update(crc, castagnoli, p)
	}
	whole := len(p) / foldBlock * foldBlock
	return crc32.Update(^fold(p[:whole], ^crc), castagnoli, p[whole:])
}

// copyCastagnoli copies p to target, which is as long, and returns the CRC-32C of what it has copied.
func copyCastagnoli(target, p []byte) uint32 {
	whole := 0
	var crc uint32
	if canFold && len(p) >= minFold {
		whole = len(p) / foldBlock * foldBlock
		crc = ^foldCopy(target[:whole], p[:whole], ^crc)
	}
	copy(target[whole:], p[whole:])
	return crc32.Update(crc, castagnoli, target[whole:])
}
