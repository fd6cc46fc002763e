package job

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Event is something that the user may want to know when it happens: a PeerKnown, Planned, FileDone, Retransmitted,
// Warned or Kept.
type Event interface{ event() }

// PeerKnown reports what the peer is.
type PeerKnown struct {
	Protocol wire.Protocol
	Version  int    // of the native protocol; 0 in the reference protocol
	Software string // name and version that the peer reports, printable ASCII; empty in the reference protocol

	Location native.Location // of the peer's file, as it says; zero in the reference protocol
}

// Planned reports what is about to be transferred, and how.
type Planned struct {
	Sent       bool  // by this side
	Tree       bool  // a directory, otherwise a file or a stream
	Compare    bool  // both sides have it and neither overwrites it, so that nothing is written
	Size       int64 // bytes; Unknown for a stream or a tree
	Chunk      int64 // bytes; 0 on a host in the reference protocol
	Depth      int   // chunks in flight; 0 on a host in the reference protocol
	Digest     digest.Algorithm
	Durability wire.Durability
	Resumed    int64 // bytes that the receiver already has, which are verified again
}

// Retransmitted reports that a chunk is retransmitted after a checksum mismatch.
type Retransmitted struct{ Offset, Length int64 }

// Warned is one sentence about something that does not end the transfer.
type Warned struct{ Text string }

// Kept reports what a transfer that failed here has left for a later one to resume.
type Kept struct {
	Bytes int64
	Lost  string // why nothing is left of what was verified, as the end of a sentence; empty otherwise
}

func (PeerKnown) event()     {}
func (Planned) event()       {}
func (Retransmitted) event() {}
func (Warned) event()        {}
func (Kept) event()          {}
