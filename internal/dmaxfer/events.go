package dmaxfer

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Event is something that a user may want to know when it happens: a PeerKnown, a Planned, a
// SentAgain, a Warned or a Kept.
type Event interface{ event() }

// PeerKnown says who is on the other side.
type PeerKnown struct {
	Protocol negotiate.Protocol
	Version  int    // of the native protocol; 0 in the reference protocol
	Software string // name and version as the peer says, printable ASCII; empty in the reference protocol
}

// Planned says what is about to be copied, and how.
type Planned struct {
	Sent       bool  // by this side
	Size       int64 // bytes; Unknown for a stream
	Chunk      int64 // bytes of a piece; 0 on a host in the reference protocol
	Depth      int   // pieces under way at once; 0 on a host in the reference protocol
	Digest     digest.Algorithm
	Durability negotiate.Durability
	Resumed    int64 // bytes that the receiver already has and that are verified again
}

// SentAgain says that a piece arrived other than it was sent.
type SentAgain struct{ Offset, Length int64 }

// Warned is a sentence about something that does not end the copy.
type Warned struct{ Text string }

// Kept is what is left of a copy that failed here: a later one can go on with so many bytes.
type Kept struct {
	Bytes int64
	Lost  string // why nothing is left of what was verified, as the end of a sentence; empty otherwise
}

func (PeerKnown) event() {}
func (Planned) event()   {}
func (SentAgain) event() {}
func (Warned) event()    {}
func (Kept) event()      {}
