package negotiate

// The limits of the native protocol. A peer that exceeds one of them sends a malformed message.
const (
	MinChunk = 4 << 10 // bytes; a chunk is a power of two
	MaxChunk = 1 << 30 // bytes
	MaxDepth = 1024    // the depth of the largest window
	MaxSize  = 1 << 46 // bytes of a file

	MaxAttempt = 3      // number of times that a chunk is retransmitted
	MaxPhase   = 15     // of a heartbeat, so that a side cannot count phases in place of work
	MaxMode    = 0o7777 // permission bits of a file

	// MaxHello is the size of a HELLO in bytes, without the texts of its Location.
	MaxHello = helloSize + MaxSoftwareName + locationSize

	MaxOpen  = 1024 // entries from the oldest undecided one to the newest
	MaxName  = 255  // bytes of an entry's name
	MaxPath  = 4096 // bytes of an entry's path: the names, joined by '/'
	MaxLink  = 4095 // bytes of a symlink's text
	maxLevel = 2048 // depth of an entry; MaxPath permits no more

	MaxMetadata     = 256 << 10 // bytes of an entry's extended attributes
	MaxSoftwareName = 64        // bytes, also of the names of a machine and a user
	MaxLocationPath = 512       // bytes
	MaxTransport    = 64        // bytes of the transport's name in FINISH and FINISHED
	MaxAbortText    = 512       // bytes, also of a FAILURE
	MaxDigestSize   = 32        // bytes of the longest digest
)

// Limits bound what the peer may send.
type Limits struct {
	MaxMessage  int    // bytes of a control message in either direction
	MaxFileSize uint64 // bytes of a file that the peer announces; at most math.MaxInt64
}

// fileSize returns the limit on the file in the native protocol, whether or not its size is known.
func (l Limits) fileSize() uint64 { return min(l.MaxFileSize, MaxSize) }
