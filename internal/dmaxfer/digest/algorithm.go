// Package digest computes checksums of single chunks and digests of whole files. A digest can be computed from chunks
// in any order where its algorithm allows that. The package opens no file, starts no goroutine and knows no protocol
// state.
package digest

import (
	"fmt"
	"strings"
)

// Algorithm identifies a digest algorithm. The numbers are those of the native protocol; a higher number is a
// stronger algorithm.
type Algorithm uint8

const (
	None   Algorithm = iota // no digest at all
	CRC32C                  // detects damage; chunks in any order
	XXH3                    // detects damage, 64 bits; in order
	BLAKE3                  // detects damage and forgery; in order
	SHA256                  // detects damage and forgery; in order

	algorithms // number of algorithms
)

// MaxSize is the length of the longest digest in bytes.
const MaxSize = 32

var (
	names = [algorithms]string{"none", "crc32c", "xxh3", "blake3", "sha256"}
	sizes = [algorithms]int{0, 4, 8, 32, 32}
)

// String returns the name that ParseAlgorithm accepts.
func (a Algorithm) String() string {
	if !a.Known() {
		return fmt.Sprintf("Algorithm(%d)", uint8(a))
	}
	return names[a]
}

// Known reports whether a is one of the algorithms above. A value received from a peer may not be.
func (a Algorithm) Known() bool { return a < algorithms }

// Size returns the length of a digest of a whole file in bytes. It is 0 for None and for an unknown algorithm.
func (a Algorithm) Size() int {
	if !a.Known() {
		return 0
	}
	return sizes[a]
}

// Ordered reports whether a digest of a whole file needs all bytes in their order. Otherwise the checksums of the
// chunks, in any order, are enough.
func (a Algorithm) Ordered() bool { return a > CRC32C && a.Known() }

// Names returns the names that ParseAlgorithm accepts, the weakest algorithm first.
func Names() []string { return names[:] }

// ParseAlgorithm returns the algorithm with the given lower-case name.
func ParseAlgorithm(name string) (Algorithm, error) {
	for a, known := range names {
		if name == known {
			return Algorithm(a), nil
		}
	}
	return None, fmt.Errorf("not a digest; give one of %s", strings.Join(names[:], ", "))
}
