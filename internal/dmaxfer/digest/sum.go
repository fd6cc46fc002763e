package digest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Sum is the digest of some bytes. Two Sums are equal (==) if the algorithm cannot tell their bytes apart. The zero
// value is the Sum of None.
type Sum struct {
	algorithm Algorithm
	bytes     [wire.MaxDigestSize]byte // zero beyond the algorithm's size
}

// NewSum returns the Sum with the given digest bytes, big-endian if the digest is a number, as in messages. It fails
// for an unknown algorithm or a digest of the wrong length.
func NewSum(a Algorithm, digest []byte) (Sum, error) {
	if !a.Known() {
		return Sum{}, fmt.Errorf("unknown digest algorithm %d", uint8(a))
	}
	if len(digest) != a.Size() {
		return Sum{}, fmt.Errorf("a %s digest has %d bytes, not %d", a, a.Size(), len(digest))
	}
	sum := Sum{algorithm: a}
	copy(sum.bytes[:], digest)
	return sum, nil
}

// ParseSum parses ALGORITHM:HEX, the form that String returns. The digits may be upper case. "none" is refused,
// because it says nothing about the bytes.
func ParseSum(text string) (Sum, error) {
	name, digits, found := strings.Cut(text, ":")
	if !found {
		return Sum{}, errors.New("not a digest; give ALGORITHM:HEX, such as crc32c:1f0e22c4")
	}
	a, err := ParseAlgorithm(name)
	if err != nil {
		return Sum{}, fmt.Errorf("%s is %w", quote.Text(name), err)
	}
	if a == None {
		return Sum{}, errors.New("none has no digest; give another algorithm")
	}
	if len(digits) != hex.EncodedLen(a.Size()) {
		return Sum{}, fmt.Errorf("a %s digest has %d hexadecimal digits, not %d",
			a, hex.EncodedLen(a.Size()), len(digits))
	}
	digest, err := hex.DecodeString(digits)
	if err != nil {
		return Sum{}, fmt.Errorf("a %s digest has %d hexadecimal digits, and nothing else", a, hex.EncodedLen(a.Size()))
	}
	return NewSum(a, digest)
}

// Algorithm returns the algorithm of the digest.
func (s Sum) Algorithm() Algorithm { return s.algorithm }

// Bytes returns a copy of the digest in the form that NewSum accepts. It is empty for None.
func (s Sum) Bytes() []byte { return append([]byte(nil), s.bytes[:s.algorithm.Size()]...) }

// String returns the form "crc32c:1f0e22c4", or "none".
func (s Sum) String() string {
	if s.algorithm == None {
		return None.String()
	}
	return s.algorithm.String() + ":" + hex.EncodeToString(s.bytes[:s.algorithm.Size()])
}

// CopyTo copies the digest to the start of b, which is long enough, in the form of Bytes.
func (s Sum) CopyTo(b []byte) { copy(b, s.bytes[:s.algorithm.Size()]) }

// SumOf returns the digest of a whole file whose Check is known. It allocates nothing, but for the first digests of an
// algorithm that hashes the content again.
func SumOf(a Algorithm, content []byte, check uint64) Sum {
	sum := Sum{algorithm: a}
	switch a {
	case None:
	case CRC32C:
		binary.BigEndian.PutUint32(sum.bytes[:], uint32(check))
	case XXH3:
		binary.BigEndian.PutUint64(sum.bytes[:], check)
	default:
		hash := newHasher(a)
		defer hash.release()
		_, _ = hash.Write(content) // hash.Hash documents that Write never fails
		return hash.digest()
	}
	return sum
}
