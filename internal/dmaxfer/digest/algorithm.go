// Package digest computes checksums of single chunks and digests of whole files. A digest can be computed from chunks
// in any order where its algorithm allows that. The package opens no file, starts no goroutine and knows no protocol
// state.
package digest

import (
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Algorithm identifies a digest algorithm, as in the native protocol. Package negotiate has the table of names and
// sizes.
type Algorithm = wire.Digest

// The algorithms.
const (
	None   = wire.DigestNone
	CRC32C = wire.DigestCRC32C
	XXH3   = wire.DigestXXH3
	BLAKE3 = wire.DigestBLAKE3
	SHA256 = wire.DigestSHA256
)

// Names returns the names that ParseAlgorithm accepts, the weakest algorithm first.
func Names() []string {
	var names []string
	for _, a := range wire.Digests() {
		names = append(names, a.String())
	}
	return names
}

// ParseAlgorithm returns the algorithm with the given lower-case name.
func ParseAlgorithm(name string) (Algorithm, error) {
	for _, a := range wire.Digests() {
		if name == a.String() {
			return a, nil
		}
	}
	return None, fmt.Errorf("not a digest; give one of %s", strings.Join(Names(), ", "))
}
