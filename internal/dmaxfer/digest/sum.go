package digest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Sum is the digest of some bytes. Two are of the same bytes, as far as the algorithm can tell, if they are ==. The zero
// value is the one of None.
type Sum struct {
	algorithm Algorithm
	bytes     [MaxSize]byte // zero beyond the algorithm's size
}

// NewSum makes a Sum of the digest's bytes as they travel: big-endian where it is a number. It fails if there is no such
// algorithm, or its digest is of another length.
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

// ParseSum reads ALGORITHM:HEX, the form that String returns; the digits may be capitals. A digest of None says nothing,
// so it is refused.
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
		return Sum{}, fmt.Errorf("a %s digest has %d hexadecimal digits, not %d", a, hex.EncodedLen(a.Size()), len(digits))
	}
	digest, err := hex.DecodeString(digits)
	if err != nil {
		return Sum{}, fmt.Errorf("a %s digest has %d hexadecimal digits, and nothing else", a, hex.EncodedLen(a.Size()))
	}
	return NewSum(a, digest)
}

// Algorithm is the one that made the digest.
func (s Sum) Algorithm() Algorithm { return s.algorithm }

// Bytes returns a copy of the digest as NewSum takes it: nothing for None.
func (s Sum) Bytes() []byte { return append([]byte(nil), s.bytes[:s.algorithm.Size()]...) }

// String returns crc32c:1f0e22c4, or none.
func (s Sum) String() string {
	if s.algorithm == None {
		return None.String()
	}
	return s.algorithm.String() + ":" + hex.EncodeToString(s.bytes[:s.algorithm.Size()])
}
