package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The limits of the native protocol. A peer that exceeds one of them sends a malformed message.
const (
	MaxAttempt = 3  // number of times that a chunk is retransmitted
	MaxPhase   = 15 // of a heartbeat, so that a side cannot count phases in place of work

	// MaxHello is the size of a HELLO in bytes, without the texts of its Location.
	MaxHello = helloSize + wire.MaxSoftwareName + locationSize

	MaxOpen      = 1024      // entries from the oldest undecided one to the newest
	MaxMetadata  = 256 << 10 // bytes of an entry's extended attributes
	MaxTransport = 64        // bytes of the transport's name in FINISH and FINISHED
)
