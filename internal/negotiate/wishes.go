package negotiate

import "fmt"

// Digest is how the two sides make sure that the bytes arrived as they were. The numbers travel; a larger one is the
// stronger, and the stronger of two wishes counts.
type Digest uint8

// The digests.
const (
	DigestNone Digest = iota
	DigestCRC32C
	DigestXXH3
	DigestBLAKE3
	DigestSHA256
)

// MaxDigestSize is the length of the longest digest in bytes.
const MaxDigestSize = 32

var (
	digestNames = [...]string{"none", "crc32c", "xxh3", "blake3", "sha256"}
	digestSizes = [...]int{0, 4, 8, 32, 32}
)

// String is the digest's name in docs/PROTOCOL.md.
func (d Digest) String() string {
	if !d.known() {
		return fmt.Sprintf("digest %d", uint8(d))
	}
	return digestNames[d]
}

// Size is the length of the digest of a whole file in bytes; 0 for an unknown one.
func (d Digest) Size() int {
	if !d.known() {
		return 0
	}
	return digestSizes[d]
}

func (d Digest) known() bool { return int(d) < len(digestNames) }

// maxCheck is the largest check that a record of data may carry.
func (d Digest) maxCheck() uint64 {
	switch d {
	case DigestNone:
		return 0
	case DigestCRC32C:
		return 1<<32 - 1
	}
	return 1<<64 - 1
}

// Durability is what the receiver does before it says that it is done. The stronger of two wishes counts.
type Durability uint8

// The durabilities.
const (
	DurabilityNone Durability = iota // the file has its name; the system writes it back when it likes
	DurabilityFile                   // the file's bytes are on the disk, too
	DurabilityFull                   // and so is the directory's entry
)

var durabilityNames = [...]string{"none", "file", "full"}

// String is the durability's name in docs/PROTOCOL.md.
func (d Durability) String() string {
	if !d.known() {
		return fmt.Sprintf("durability %d", uint8(d))
	}
	return durabilityNames[d]
}

func (d Durability) known() bool { return int(d) < len(durabilityNames) }

// Flags are what a side says of itself and wishes, in its HELLO.
type Flags uint32

// The flags. A side that is to overwrite its file receives, and does not say that it has one.
const (
	FlagHasFile       Flags = 1 << iota // it has the file
	FlagStream                          // its end is a stream: sends if the peer has no file, otherwise receives
	FlagOverwrite                       // it receives, even over a file
	FlagNoSparse                        // holes are to be filled with zeros
	FlagReadback                        // the receiver is to read back what it wrote
	FlagOwner                           // sender: its uid and gid are meant; receiver: it will apply them
	FlagXAttr                           // sender: it has extended attributes to send; receiver: it will apply them
	FlagAllowChanging                   // sender: its file may change during the copy

	knownFlags = FlagAllowChanging<<1 - 1
)

// Has tells whether all of the given flags are set.
func (f Flags) Has(wanted Flags) bool { return f&wanted == wanted }
