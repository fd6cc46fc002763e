package wire

import "fmt"

// Side is one end of the connection.
type Side int

// The sides of a channel between a host and its DPU, and of a network connection. The host is the Comch client and owns
// the window of PathDMA; the DPU is the server and has the DMA engine. The client is the command that has connected to
// a daemon on another machine, the server that daemon. They speak the native protocol only, as the host and the DPU do.
const (
	Host   Side = 0
	DPU    Side = 1
	Client Side = 2
	Server Side = 3
)

var sideNames = []string{Host: "host", DPU: "DPU", Client: "client", Server: "server"}

// String returns the side's name in messages to the user.
func (s Side) String() string { return NameOf(sideNames, s, "side") }

// others is the only table of the pairs.
var others = [...]Side{Host: DPU, DPU: Host, Client: Server, Server: Client}

// Other returns the peer's side.
func (s Side) Other() Side { return others[s] }

// Initiates reports whether the side sends the first message of a session: the host and the client do. The other one
// chooses what only one side can choose.
func (s Side) Initiates() bool { return s == Host || s == Client }

// Protocol is the protocol that both sides use.
type Protocol int

// Reference is the protocol of NVIDIA's doca_dma_copy, Native the one between two dma-copy.
const (
	Reference Protocol = 1
	Native    Protocol = 2
)

var protocolNames = []string{Reference: "reference", Native: "native"}

// String returns the protocol's name in messages to the user.
func (p Protocol) String() string { return NameOf(protocolNames, p, "protocol") }

// Digest identifies a digest algorithm. A higher number is a stronger algorithm; the stronger of both sides' choices is
// used.
type Digest uint8

// The digest algorithms.
const (
	DigestNone   Digest = 0 // no digest
	DigestCRC32C Digest = 1 // detects damage; chunks in any order
	DigestXXH3   Digest = 2 // detects damage, 64 bits; in order
	DigestBLAKE3 Digest = 3 // detects damage and forgery; in order
	DigestSHA256 Digest = 4 // detects damage and forgery; in order
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

// String returns the algorithm's name in docs/internals/protocol and on the command line.
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
	DurabilityNone Durability = 0 // after a crash the name may have any content, even an empty file
	DurabilityFile Durability = 1 // after a crash the name has the old content or the new
	DurabilityFull Durability = 2 // after a crash the name has the new content
)

var durabilityNames = []string{DurabilityNone: "none", DurabilityFile: "file", DurabilityFull: "full"}

// String returns the durability's name in docs/internals/protocol and on the command line.
func (d Durability) String() string { return NameOf(durabilityNames, d, "durability") }

// Known reports whether d is one of the durabilities above.
func (d Durability) Known() bool { return int(d) < len(durabilityNames) }

// Path is how the content of files gets from the sender to the receiver.
type Path uint8

// The paths. PathDMA and PathFast are paths of a device, the others of a network connection.
const (
	PathDMA      Path = 0 // the DPU's engine copies between its memory and the window, which is the host's
	PathFast     Path = 1 // the sender's producers send to the receiver's consumers, in whose memory the window is
	PathTLS      Path = 2 // the sender writes to TLS connections, one for each lane of the receiver
	PathMessages Path = 3 // the sender sends UCX active messages to the receiver's workers
	PathRMA      Path = 4 // the receiver reads the window in the sender's memory by UCX remote memory access
	PathTCP      Path = 5 // as PathTLS, without encryption once TLS has authenticated a connection
)

var pathNames = []string{
	PathDMA: "dma", PathFast: "fast", PathTLS: "tls", PathMessages: "am", PathRMA: "rma", PathTCP: "tcp",
}

// String returns the path's name in the parameter --path.
func (p Path) String() string { return NameOf(pathNames, p, "path") }

// Known reports whether p is one of the paths above.
func (p Path) Known() bool { return int(p) < len(pathNames) }

// Pushed reports whether the sender sends the content of every unit that it announces to the receiver's memory, which
// has no address for it. Otherwise an engine of one side copies what the receiver wants.
func (p Path) Pushed() bool { return p == PathFast || p == PathMessages || p.Connects() }

// Connects reports whether content travels over a connection for each lane of the receiver, to which the sender writes
// a frame for each slot.
func (p Path) Connects() bool { return p == PathTLS || p == PathTCP }

// Encrypts reports whether content is encrypted on its way.
func (p Path) Encrypts() bool { return p == PathTLS }

// Discarded is why a receiver does not use what an earlier attempt has left of a file.
type Discarded uint8

// The reasons; 0 where nothing was left or all of it is used.
const (
	DiscardedOtherSource  Discarded = 1
	DiscardedOtherDigest  Discarded = 2
	DiscardedNoJournal    Discarded = 3
	DiscardedDamaged      Discarded = 4
	DiscardedNotResumable Discarded = 5
)

var discardedNames = []string{
	DiscardedOtherSource:  "the source is another file or has changed since",
	DiscardedOtherDigest:  "it was copied with another digest algorithm",
	DiscardedNoJournal:    "its journal is missing",
	DiscardedDamaged:      "it or its journal is damaged",
	DiscardedNotResumable: "this copy cannot resume",
}

// String returns the reason, in a sentence about what was left.
func (d Discarded) String() string { return NameOf(discardedNames, d, "reason") }

// AbortCode is why a side gives up. The numbers are the program's exit codes.
type AbortCode uint8

// The codes. Any other is treated as AbortFailure, sent or received.
const (
	AbortFailure       AbortCode = 1 // any other reason
	AbortSettings      AbortCode = 3 // this peer cannot do what the user asked for
	AbortSource        AbortCode = 4
	AbortTarget        AbortCode = 5
	AbortDevice        AbortCode = 6
	AbortPeer          AbortCode = 7 // the side that receives the ABORT was silent
	AbortRefused       AbortCode = 8 // authentication or policy
	AbortDigest        AbortCode = 9
	AbortSourceChanged AbortCode = 10
	AbortProtocol      AbortCode = 11
	AbortLimit         AbortCode = 14
	AbortOtherPath     AbortCode = 64  // no exit code: the window is not within reach; another path may serve instead
	AbortHangup        AbortCode = 129 // SIGHUP; older releases treat it as AbortFailure
	AbortInterrupted   AbortCode = 130
	AbortTerminated    AbortCode = 143
)

// Known returns the code, or AbortFailure for an unknown one.
func (c AbortCode) Known() AbortCode {
	switch c {
	case AbortFailure, AbortSettings, AbortSource, AbortTarget, AbortDevice, AbortPeer, AbortRefused, AbortDigest,
		AbortSourceChanged, AbortProtocol, AbortLimit, AbortOtherPath, AbortHangup, AbortInterrupted, AbortTerminated:
		return c
	}
	return AbortFailure
}

// Versions is a range of versions of a protocol, from Min to Max inclusive, starting at 1.
type Versions struct {
	Min, Max uint8
}

// String returns, for example, "version 1" or "versions 1 to 3".
func (v Versions) String() string {
	if v.Min == v.Max {
		return fmt.Sprintf("version %d", v.Min)
	}
	return fmt.Sprintf("versions %d to %d", v.Min, v.Max)
}

// Valid reports whether the range has a version.
func (v Versions) Valid() bool { return 1 <= v.Min && v.Min <= v.Max }

// Common returns the highest version in both ranges.
func (v Versions) Common(w Versions) (version uint8, ok bool) {
	version = min(v.Max, w.Max)
	return version, version >= max(v.Min, w.Min)
}
