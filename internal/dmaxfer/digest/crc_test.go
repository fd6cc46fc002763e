package digest

import (
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

func crcOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func TestCombine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SliceOf(rapid.Byte()).Draw(t, "first")
		second := rapid.SliceOf(rapid.Byte()).Draw(t, "second")
		got := combine(crcOf(first), crcOf(second), int64(len(second)))
		if want := crcOf(append(first, second...)); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
}

func TestCRCOfZeros(t *testing.T) {
	zeros := make([]byte, 1<<20)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, len(zeros)).Draw(t, "n")
		if got, want := crcOfZeros(int64(n)), crcOf(zeros[:n]); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
}

// Runs too long to hash are composed of shorter ones: the operator of a sum of lengths is the product of the operators.
func TestOperatorsOfAnyLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(0, 1<<62-1).Draw(t, "first")
		second := rapid.Int64Range(0, 1<<62-1).Draw(t, "second")
		got, want := operatorOf(first+second), multiply(operatorOf(first), operatorOf(second))
		if got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
}
