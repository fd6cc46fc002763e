package negotiate

// Limits bound what the peer may say.
type Limits struct {
	MaxMessage  int    // bytes of a control message, in either direction
	MaxFileSize uint64 // bytes of a file that the peer announces; never more than math.MaxInt64
}

// fileSize bounds the file in the native protocol, be its size known or not.
func (l Limits) fileSize() uint64 { return min(l.MaxFileSize, MaxSize) }
