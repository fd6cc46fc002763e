package digest

import "hash/crc32"

// A CRC is the remainder of a polynomial over GF(2), so the CRC of two chunks one after the other follows from theirs: that
// of the first, multiplied by x once for each bit of the second, plus that of the second. The multiplication by x^n is
// a single one by x^n modulo the CRC's polynomial, which takes as many steps as n has binary digits. This is how zlib's
// crc32_combine does it.
//
// Polynomials are held as CRCs are, reflected: the highest bit is the coefficient of x^0.

const byteOperator = uint32(1) << (31 - 8) // x^8

// doublings[i] is the operator of 2^i bytes.
var doublings = func() (table [63]uint32) {
	table[0] = byteOperator
	for i := 1; i < len(table); i++ {
		table[i] = multiply(table[i-1], table[i-1])
	}
	return table
}()

// multiply returns a times b modulo CRC-32C's polynomial.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		product ^= b & -(a >> 31)
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return product
}

// operatorOf returns x^8n, what the CRC of what stands before n more bytes is multiplied by. n is not negative.
func operatorOf(n int64) uint32 {
	operator := uint32(1) << 31 // x^0
	for i := 0; n > 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			operator = multiply(doublings[i], operator)
		}
	}
	return operator
}

// operatorCache remembers the operators of a few lengths, since most chunks of a file are of one. The zero value is ready.
type operatorCache [8]struct {
	length   int64
	operator uint32
}

// of returns the operator of a positive length.
func (c *operatorCache) get(length int64) uint32 {
	entry := &c[uint64(length)*0x9e3779b97f4a7c15>>61] // Fibonacci hashing: lengths are mostly powers of two
	if entry.length != length {
		entry.length, entry.operator = length, operatorOf(length)
	}
	return entry.operator
}

// combine returns the CRC of two chunks, of which the second has the length that the operator is for.
func combine(first, second, operator uint32) uint32 { return multiply(operator, first) ^ second }
