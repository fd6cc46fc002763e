// Package digest computes checksums of single chunks and digests of whole files. A digest can be computed from chunks
// in any order where its algorithm allows that. The package opens no file, starts no goroutine and knows no protocol
// state.
package digest

import (
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Algorithm identifies a digest algorithm, as in the native protocol. Package negotiate has the table of names and
// sizes.
type Algorithm = negotiate.Digest

// The algorithms.
const (
	None   = negotiate.DigestNone
	CRC32C = negotiate.DigestCRC32C
	XXH3   = negotiate.DigestXXH3
	BLAKE3 = negotiate.DigestBLAKE3
	SHA256 = negotiate.DigestSHA256
)

// Names returns the names that ParseAlgorithm accepts, the weakest algorithm first.
func Names() []string {
	var names []string
	for _, a := range negotiate.Digests() {
		names = append(names, a.String())
	}
	return names
}

// ParseAlgorithm returns the algorithm with the given lower-case name.
func ParseAlgorithm(name string) (Algorithm, error) {
	for _, a := range negotiate.Digests() {
		if name == a.String() {
			return a, nil
		}
	}
	return None, fmt.Errorf("not a digest; give one of %s", strings.Join(Names(), ", "))
}
