package wire

// Limits of more than one protocol. A peer that exceeds one of them sends a malformed message.
const (
	MinChunk = 4 << 10 // bytes; a chunk is a power of two
	MaxChunk = 1 << 30 // bytes
	MaxDepth = 1024    // the depth of the largest window
	MaxLanes = 64      // connections or workers of a window
	MaxSize  = 1 << 46 // bytes of a file

	MaxMode = 0o7777 // permission bits of a file

	MaxName  = 255  // bytes of an entry's name
	MaxPath  = 4096 // bytes of an entry's path: the names, joined by '/'
	MaxLink  = 4095 // bytes of a symlink's text
	MaxLevel = 2048 // depth of an entry; MaxPath permits no more

	MaxSoftwareName = 64  // bytes, also of the names of a machine and a user
	MaxLocationPath = 512 // bytes
	MaxAbortText    = 512 // bytes, also of a FAILURE
	MaxDigestSize   = 32  // bytes of the longest digest
)

// Limits bound what the peer may send.
type Limits struct {
	MaxMessage  int    // bytes of a control message in either direction
	MaxFileSize uint64 // bytes of a file that the peer announces; at most math.MaxInt64
}
