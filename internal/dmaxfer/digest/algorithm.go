// Package digest computes what tells one file's bytes from another's: whole digests, from chunks in any order where the
// algorithm allows that, and the checks of single chunks. It opens no file and starts no goroutine.
package digest

import (
	"fmt"
	"strings"
)

// Algorithm is a way to digest a file. The numbers go over the wire; a larger one is the stronger.
type Algorithm uint8

const (
	None   Algorithm = iota // no digest at all
	CRC32C                  // finds damage; from chunks in any order
	XXH3                    // finds damage, 64 bits; in order
	BLAKE3                  // finds damage and forgery; in order
	SHA256                  // finds damage and forgery; in order

	algorithms // how many there are
)

// MaxSize is the length of the longest digest, in bytes.
const MaxSize = 32

var (
	names = [algorithms]string{"none", "crc32c", "xxh3", "blake3", "sha256"}
	sizes = [algorithms]int{0, 4, 8, 32, 32}
)

// String returns the name that ParseAlgorithm takes.
func (a Algorithm) String() string {
	if !a.Known() {
		return fmt.Sprintf("Algorithm(%d)", uint8(a))
	}
	return names[a]
}

// Known tells whether the number stands for an algorithm, as one that a peer sent may not.
func (a Algorithm) Known() bool { return a < algorithms }

// Size is the length of a whole digest in bytes: 0 for None, and for what is not Known.
func (a Algorithm) Size() int {
	if !a.Known() {
		return 0
	}
	return sizes[a]
}

// Ordered tells whether the whole digest needs the bytes themselves and in their order. Where it does not, the checks of
// the chunks are enough, in any order.
func (a Algorithm) Ordered() bool { return a > CRC32C && a.Known() }

// Names lists what ParseAlgorithm takes, the weakest first.
func Names() []string { return names[:] }

// ParseAlgorithm finds an algorithm by its name, in small letters.
func ParseAlgorithm(name string) (Algorithm, error) {
	for a, known := range names {
		if name == known {
			return Algorithm(a), nil
		}
	}
	return None, fmt.Errorf("not a digest; give one of %s", strings.Join(names[:], ", "))
}
