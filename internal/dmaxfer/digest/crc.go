package digest

import (
	"hash/crc32"
	"sync"
)

// A CRC is the remainder of a polynomial over GF(2). The CRC of two consecutive chunks is therefore the CRC of the
// first, multiplied by x^n where n is the length of the second in bits, plus the CRC of the second. Computing x^n
// modulo the polynomial takes one step per binary digit of n. zlib's crc32_combine uses the same method.
//
// Polynomials are stored reflected, like CRCs: the highest bit is the coefficient of x^0.

const byteOperator = uint32(1) << (31 - 8) // x^8

// doublings returns a table in which entry i is the operator for 2^i bytes.
var doublings = sync.OnceValue(func() *[63]uint32 {
	var table [63]uint32
	table[0] = byteOperator
	for i := 1; i < len(table); i++ {
		table[i] = multiply(table[i-1], table[i-1])
	}
	return &table
})

// multiply returns a times b modulo the polynomial of CRC-32C.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		product ^= b & -(a >> 31)
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return product
}

// operatorOf returns x^8n, the factor for the CRC of data that n more bytes follow. n must not be negative.
func operatorOf(n int64) uint32 {
	operator := uint32(1) << 31 // x^0
	for i := 0; n > 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			operator = multiply(operator, doublings()[i])
		}
	}
	return operator
}

// combine returns the CRC of two consecutive chunks. length is the length of the second chunk.
func combine(first, second uint32, length int64) uint32 {
	return multiply(operatorOf(length), first) ^ second
}
