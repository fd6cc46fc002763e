package pump

import (
	"time"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// The sizes and counts of this package.
const (
	// maxAttempts is how many times one chunk is sent before the transfer fails.
	maxAttempts = 1 + native.MaxAttempt

	// holeStep is the longest range of zeros processed at once, because hashing or writing zeros keeps a lane busy.
	holeStep = 64 << 20

	// flushAfter is how many unsuccessful polls pass before the outbox is flushed. The peer usually sends something
	// first, and then several chunks share one message.
	flushAfter = 8

	// shortSleep is the longest sleep that counts as short: polling a little longer would have avoided it, or the
	// wake-up took as long.
	shortSleep = time.Millisecond

	// maxHalvings is how often the number of polls is halved at most, by one long sleep each.
	maxHalvings = 16
)
