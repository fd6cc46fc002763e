package digest

import (
	"hash/crc32"

	"github.com/zeebo/xxh3"
)

// Check returns the checksum of one chunk in a transfer that uses algorithm a: 0 for None, CRC-32C for CRC32C, and
// XXH3-64 for all others, whose digest covers the whole file anyway.
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

// CheckedCopy copies chunk to target, which has the same length, and returns the Check of target. The result is right
// even if another process changes chunk during the copy.
func CheckedCopy(a Algorithm, target, chunk []byte) uint64 {
	if a == CRC32C {
		return uint64(copyCastagnoli(target, chunk))
	}
	copy(target, chunk)
	return Check(a, target)
}

// updateCastagnoli is crc32.Update for CRC-32C. On processors with VPCLMULQDQ it first folds p into one block with
// the same remainder, which is several times faster than the CRC32 instruction.
func updateCastagnoli(crc uint32, p []byte) uint32 {
	if !canFold || len(p) < minFold {
		return updateUnfolded(crc, p)
	}
	whole := len(p) / foldBlock * foldBlock
	return updateUnfolded(^fold(p[:whole], ^crc), p[whole:])
}

// updateUnfolded computes the table of hash/crc32, which takes 0.2 ms, on first use, and not for nothing.
func updateUnfolded(crc uint32, p []byte) uint32 {
	if len(p) == 0 {
		return crc
	}
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p)
}

// copyCastagnoli copies p to target, which has the same length, and returns the CRC-32C of the bytes that were
// copied.
func copyCastagnoli(target, p []byte) uint32 {
	whole := 0
	var crc uint32
	if canFold && len(p) >= minFold {
		whole = len(p) / foldBlock * foldBlock
		crc = ^foldCopy(target[:whole], p[:whole], ^crc)
	}
	copy(target[whole:], p[whole:])
	return updateUnfolded(crc, target[whole:])
}
