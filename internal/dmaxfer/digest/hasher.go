package digest

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"sync"

	"github.com/zeebo/blake3"
	"github.com/zeebo/xxh3"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// hasher is the hash of an Ordered algorithm, with space for its result, which would escape to the heap elsewhere.
type hasher struct {
	hash.Hash
	of     Algorithm
	result [wire.MaxDigestSize]byte
}

// hashers are reused, by algorithm: a new one of BLAKE3 has 10 KiB, which take longer to allocate and clear than a
// small file to hash.
var hashers [wire.DigestSHA256 + 1]sync.Pool

// newHasher returns the hash of nothing.
func newHasher(a Algorithm) *hasher {
	if h, reused := hashers[a].Get().(*hasher); reused {
		h.Reset()
		return h
	}
	return &hasher{Hash: newHash(a), of: a}
}

func newHash(a Algorithm) hash.Hash {
	switch a {
	case XXH3:
		return xxh3.New()
	case BLAKE3:
		return blake3.New()
	case SHA256:
		return sha256.New()
	default:
		panic(fmt.Sprintf("internal error: no ordered digest %s", a))
	}
}

// digest returns the digest of what was written. More may be written afterwards.
func (h *hasher) digest() Sum {
	sum := Sum{algorithm: h.of}
	copy(sum.bytes[:], h.Sum(h.result[:0]))
	return sum
}

// release makes the hasher available to others. It must not be used any more.
func (h *hasher) release() { hashers[h.of].Put(h) }
