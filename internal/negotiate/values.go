package negotiate

import "fmt"

// Digest identifies a digest algorithm. A higher number is a stronger algorithm; the stronger of both sides' choices is
// used.
type Digest uint8

// The digest algorithms.
const (
	DigestNone   Digest = iota // no digest
	DigestCRC32C               // detects damage; chunks in any order
	DigestXXH3                 // detects damage, 64 bits; in order
	DigestBLAKE3               // detects damage and forgery; in order
	DigestSHA256               // detects damage and forgery; in order
)

// digests is the only table of the algorithms' names and of the lengths of their digests in bytes.
var digests = [...]struct {
	name string
	size int
}{
	DigestNone:   {"none", 0},
	DigestCRC32C: {"crc32c", 4},
	DigestXXH3:   {"xxh3", 8},
	DigestBLAKE3: {"blake3", 32},
	DigestSHA256: {"sha256", 32},
}

// Digests returns all algorithms, the weakest first.
func Digests() []Digest {
	all := make([]Digest, len(digests))
	for i := range all {
		all[i] = Digest(i)
	}
	return all
}

// String returns the algorithm's name in docs/PROTOCOL.md and on the command line.
func (d Digest) String() string {
	if !d.Known() {
		return fmt.Sprintf("digest %d", uint8(d))
	}
	return digests[d].name
}

// Size returns the length of a digest of a whole file in bytes. It is 0 for DigestNone and for an unknown algorithm.
func (d Digest) Size() int {
	if !d.Known() {
		return 0
	}
	return digests[d].size
}

// Known reports whether d is one of the algorithms above. A value received from a peer may not be.
func (d Digest) Known() bool { return int(d) < len(digests) }

// Ordered reports whether a digest of a whole file needs all bytes in their order. Otherwise the checksums of the
// chunks, in any order, are enough.
func (d Digest) Ordered() bool { return d > DigestCRC32C && d.Known() }

// Durability selects what the receiver flushes before the transfer counts as done. Each includes those before it; the
// stronger of both sides' choices is used. Without a crash of the machine the target is complete under every one.
type Durability uint8

// The durabilities.
const (
	DurabilityNone Durability = iota // after a crash the name may have any content, even an empty file
	DurabilityFile                   // after a crash the name has the old content or the new
	DurabilityFull                   // after a crash the name has the new content
)

var durabilityNames = []string{DurabilityNone: "none", DurabilityFile: "file", DurabilityFull: "full"}

// String returns the durability's name in docs/PROTOCOL.md and on the command line.
func (d Durability) String() string { return nameOf(durabilityNames, d, "durability") }

// Known reports whether d is one of the durabilities above.
func (d Durability) Known() bool { return int(d) < len(durabilityNames) }

// Path is how the content of files gets from the sender to the receiver.
type Path uint8

// The paths. PathDMA and PathFast are those of a device, the others those of a network connection.
const (
	PathDMA      Path = iota // the DPU's engine copies between its memory and the window, which is the host's
	PathFast                 // the sender's producers send to the receiver's consumers, in whose memory the window is
	PathTLS                  // the sender writes to TLS connections, one for each lane of the receiver
	PathMessages             // the sender sends UCX active messages to the receiver's workers
	PathRMA                  // the receiver reads the window in the sender's memory by UCX remote memory access
	PathTCP                  // as PathTLS, without encryption once TLS has authenticated a connection
)

var pathNames = []string{
	PathDMA: "dma", PathFast: "fast", PathTLS: "tls", PathMessages: "am", PathRMA: "rma", PathTCP: "tcp",
}

// String returns the path's name in the parameter --path.
func (p Path) String() string { return nameOf(pathNames, p, "path") }

// Pushed reports whether the sender sends the content of every unit that it announces to the receiver's memory, which
// has no address for it. Otherwise an engine of one side copies what the receiver wants.
func (p Path) Pushed() bool { return p == PathFast || p == PathMessages || p.Connects() }

// Connects reports whether content travels over a connection for each lane of the receiver, to which the sender writes
// a frame for each slot.
func (p Path) Connects() bool { return p == PathTLS || p == PathTCP }

// Encrypts reports whether content is encrypted on its way.
func (p Path) Encrypts() bool { return p == PathTLS }

// Flags are properties and options of a side, in its HELLO.
type Flags uint32

// The flags. FlagFile, FlagTree and FlagStream exclude each other.
const (
	FlagFile           Flags = 1 << iota // it has a regular file
	FlagTree                             // it has a directory
	FlagStream                           // it has a stream: sends if the peer has nothing, otherwise receives
	FlagOverwrite                        // it receives, even if it has a file or a directory
	FlagNoSparse                         // holes are filled with zeros
	FlagReadback                         // the receiver reads back what it wrote
	FlagOwner                            // sender: uid and gid are valid; receiver: it will apply them
	FlagXAttr                            // sender: it has extended attributes to send; receiver: it will apply them
	FlagAllowChanging                    // sender: its files may change during the transfer
	FlagLinks                            // hard links within the transfer are preserved
	FlagChecksum                         // files are compared by content, not by size and mtime
	FlagDryRun                           // nothing is written
	FlagRefuseSame                       // both sides having the file is an error, even if it is the same
	FlagFailFast                         // the first entry that fails ends the transfer
	FlagNoDMA                            // it cannot or will not do its part of PathDMA
	FlagFast                             // it can do its part of PathFast
	FlagReceives                         // it receives, as both sides know: what it has is only compared or replaced
	FlagTLS                              // it can and will do its part of PathTLS
	FlagMessages                         // it can and will do its part of PathMessages
	FlagRMA                              // it can and will do its part of PathRMA
	FlagTCP                              // it can and will do its part of PathTCP
	FlagIgnoreExisting                   // it receives, and leaves what exists; not with FlagOverwrite
	FlagUnfinished                       // its directory was left by an interrupted transfer; with FlagTree

	knownFlags = FlagUnfinished<<1 - 1
)

// Has reports whether all of the wanted flags are set.
func (f Flags) Has(wanted Flags) bool { return f&wanted == wanted }
