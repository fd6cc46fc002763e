package role

import "time"

// How long work may take that shows no progress.
const (
	// SlowChunk is how long one chunk may take that the bandwidth limit or a disk delays. It is within the second that
	// a side may take beyond its idle timeout.
	SlowChunk = time.Second

	// SlowEntry is how long one entry of a tree may take, for example on a disk that writes its journal.
	SlowEntry = 20 * time.Millisecond

	// SlowFlush is how long the flush of a file system may take.
	SlowFlush = 2 * time.Minute

	// SlowWalk is how long a sender may look for something to send.
	SlowWalk = 10 * time.Minute

	// slowestDisk is how many bytes per second are allocated, flushed or read back at least.
	slowestDisk = 4 << 20
)

// SlowWork returns how long an honest peer may need to allocate, flush or read back that many bytes.
func SlowWork(bytes int64) time.Duration {
	return SlowChunk + time.Duration(max(bytes, 0)/slowestDisk)*time.Second
}
