package native

import (
	"math"

	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Step is the result of a received message. Its slices are valid until the next call of Receive.
type Step struct {
	Reply []byte // to be sent to the peer first, even together with an error; may be nil
	Event Event

	Plan       Plan            // with Planned
	Window     Window          // with WindowOpened
	Entries    []wire.Entry    // with EntriesAnnounced
	Answers    []Answer        // with Answered
	Records    []Record        // with Announced, also of entries that this side has failed; all are to be acknowledged
	Pack       Pack            // with Packed, likewise
	Acks       []Ack           // with Acknowledged
	Entry      uint32          // with PeerEnded, PeerSum and PeerMetadata, also of an entry that this side has failed
	Size       uint64          // with PeerEnded, bytes
	Digest     []byte          // with PeerEnded, of Plan.Digest; with PeerSum, of Plan.SumDigest
	Metadata   Metadata        // with PeerMetadata
	Failure    Failure         // with EntryFailed; with PeerAborting, where it has no entry
	Results    []uint32        // with Committed: numbers of the entries
	Total      uint32          // with PeerFinish: number of the entries announced
	Missing    uint32          // with PeerFinish: number of further entries, which the sender could not announce
	Durability wire.Durability // with PeerFinished: what the receiver really did
	Counts     Counts          // with PeerFinished
	Transport  string          // with PeerFinish and PeerFinished: what carries the content, if the peer knows
	Beat       Beat            // with PeerBeat
}

// Session is one side of a session in the native protocol: transfers one after another, all in the direction of
// the plan. It is not safe for concurrent use.
//
// Call Start, pass every received message to Receive, and do what the Step requires. All other methods except
// the accessors report this side's own progress and return the message to send, appended to dst; they do not allocate
// if its capacity is sufficient. A call that the state or its arguments do not allow returns dst with an *Error and
// changes nothing; a failed session returns the error that it failed with.
type Session struct {
	machine   machine
	side      wire.Side
	own       Hello
	peer      Hello
	reference *reference.Session // continues with a reference host; nil if there was no session before
	aborting  *wire.Error        // in Cancelling: what the failure will be

	plan      Plan
	window    bool // WINDOW has been sent or received
	transfers int  // finished ones
	slots     slotTable
	entries   entryTable
	order     wire.Order

	ownBeat, peerBeat Beat

	reused reused
}

// reused has what a Step refers to.
type reused struct {
	entries []wire.Entry
	answers []Answer
	records []Record
	packed  []PackedFile
	acks    []Ack
	results []uint32
	octets  []byte
	reply   []byte
}

// New returns a session in state Idle for one version of the protocol. own is this side's HELLO; its Version is
// ignored. It fails with ErrMalformed for a HELLO that a peer would refuse, and with ErrTooLarge if the channel's
// messages are too short.
func New(side wire.Side, version uint8, own Hello, limits wire.Limits) (*Session, error) {
	own.Version = version
	if err := own.check(); err != nil {
		return nil, err
	}
	if limits.MaxMessage < MaxHello {
		return nil, wire.TooLarge(wire.TypeHello, "the message may have", MaxHello, uint64(max(0, limits.MaxMessage)))
	}
	own.Location = own.Location.within(limits.MaxMessage - MaxHello)
	// A larger size would be negative as a file offset.
	limits.MaxFileSize = min(limits.MaxFileSize, math.MaxInt64)
	return &Session{machine: machine{Limits: limits, State: Idle, Failed: Failed}, side: side, own: own}, nil
}

// State returns the session's state.
func (n *Session) State() State { return n.machine.State }

// Reached returns State, or of a failed session the state in which it failed.
func (n *Session) Reached() State { return n.machine.Reached() }

// Peer returns the peer's HELLO; it is zero before Planned.
func (n *Session) Peer() Hello { return n.peer }

// Transfers returns how many transfers of the session have finished.
func (n *Session) Transfers() int { return n.transfers }

// Undecided returns the number of entries of this transfer that are not decided. One that this side has failed counts
// until the peer's FAILURE arrives.
func (n *Session) Undecided() int { return n.entries.undecided }

// Unanswered returns the number of files that the receiver has not answered finally: it may still need their content.
func (n *Session) Unanswered() int { return n.entries.unanswered }

// Unconfirmed returns the number of undecided entries that were sent completely: the receiver may commit them.
func (n *Session) Unconfirmed() int { return n.entries.unconfirmed }

// Outstanding returns the number of slots in flight.
func (n *Session) Outstanding() int { return n.slots.outstanding }

// Room returns the number of entries that the sender may announce now.
func (n *Session) Room() int {
	if n.machine.State != Transferring {
		return 0
	}
	return n.entries.room()
}

// Settled reports whether everything of the transfer is decided and acknowledged, so that the receiver may call
// Finished after PeerFinish.
func (n *Session) Settled() bool { return n.entries.undecided == 0 && n.slots.outstanding == 0 }

// Propose replaces the chunk size and depth in this side's HELLO, until it is sent: one side answers the initiator's.
// It fails with ErrMalformed for values that a peer would refuse.
func (n *Session) Propose(chunk, depth uint32) error {
	own := n.own
	own.Chunk, own.Depth = chunk, depth
	if err := own.check(); err != nil {
		return err
	}
	n.own = own
	return nil
}

// Start begins the session. It returns the initiator's HELLO to send. On the other side, which waits for it, and after
// the first call it returns nil.
func (n *Session) Start() []byte {
	if n.machine.State != Idle {
		return nil
	}
	n.machine.State = AwaitHello
	if !n.side.Initiates() {
		return nil
	}
	return AppendHello(nil, n.own)
}

// Window is called on the side of Plan.WindowOwner once after Planned and returns the WINDOW to send. On PathDMA and
// PathRMA the window is at address in the memory that the descriptor exports. On the other paths address is 0, and
// the descriptor names where to send to; see ConsumerIDs, Lanes and DecodeWorkers. It fails with ErrTooLarge if the
// message exceeds Limits.MaxMessage, and with ErrMalformed for an empty descriptor, a range that wraps around, or
// what those functions would refuse.
func (n *Session) Window(address uint64, descriptor []byte) ([]byte, error) {
	w := Window{Address: address, Length: n.plan.WindowLength(), Descriptor: descriptor}
	return n.send(nil, wire.Encode(nil, wire.TypeWindow, &w, (*Window).fields), func() error { return n.openWindow(w) })
}

// Beat is called on either side after Planned and appends the HEARTBEAT to send. It fails with ErrMalformed for less
// work than before in the same phase. The phases begin again with each transfer: on the sender by Transfer, on the
// receiver by Finished.
func (n *Session) Beat(dst []byte, b Beat) ([]byte, error) {
	return n.send(dst, AppendBeat(dst, b), func() error { return n.ownBeat.follow(b) })
}

// Abort gives up in any state and never fails. It returns the ABORT to send, or nil if the peer does not listen any
// more. text gives the reason to the peer's user. On a sender whose receiver may be committing entries the state is
// then Cancelling: their results are still received, and a second call ends the session at once.
func (n *Session) Abort(code wire.AbortCode, text string) []byte {
	if n.machine.State == Failed {
		return nil
	}
	reason := &wire.Error{State: n.machine.State, Err: wire.ErrAborted}
	notice := n.notice(code, text)
	switch {
	case !n.awaitsResults():
		n.machine.Fail(reason)
	case n.machine.State == Cancelling:
		n.machine.Fail(&wire.Error{Err: wire.ErrOutcomeUnknown})
	default:
		n.aborting, n.machine.State = reason, Cancelling
	}
	return notice
}

// awaitsResults reports whether the peer may be committing entries.
func (n *Session) awaitsResults() bool {
	return n.planned() && n.sends() && n.entries.unconfirmed > 0
}

// Disconnected reports the end of the connection. It returns nil between two transfers, otherwise ErrPeerLost,
// ErrOutcomeUnknown, or the error with which the session had failed.
func (n *Session) Disconnected() error {
	switch {
	case n.machine.State == Failed:
		return n.machine.Failure
	case n.machine.State == Done:
		return nil
	case n.machine.State == Ready && n.transfers > 0:
		n.machine.State = Done
		return nil
	case n.awaitsResults():
		return n.machine.Fail(&wire.Error{Err: wire.ErrOutcomeUnknown})
	case n.machine.State == Cancelling:
		return n.endCancelling()
	}
	return n.machine.Fail(&wire.Error{Err: wire.ErrPeerLost})
}

func (n *Session) sends() bool { return n.plan.Sender == n.side }

// planned reports whether both HELLOs are known.
func (n *Session) planned() bool { return n.plan.Version != 0 }

// notice returns an ABORT, or nil if the peer does not listen or has been told.
func (n *Session) notice(code wire.AbortCode, text string) []byte {
	told := n.machine.State == Cancelling && n.sends()
	if told || n.machine.State == Done || n.machine.State == Failed || n.machine.State == HandedOver {
		return nil
	}
	return AppendAbort(nil, code, wire.TruncateText(text, min(wire.MaxAbortText,
		n.machine.Limits.MaxMessage-abortSize)))
}

func (n *Session) failWithNotice(err error) (Step, error) {
	failure := wire.AsError(err)
	failure.State = n.machine.State
	reply := n.notice(wire.AbortProtocol, failure.Error())
	return Step{Reply: reply}, n.machine.Fail(failure)
}

// endCancelling ends the session with the reason for which it was cancelled.
func (n *Session) endCancelling() error {
	return n.machine.End(n.aborting)
}
