package negotiate

import (
	"math"
)

// NativeStep is the result of a received message. Its slices are valid until the next call of Receive.
type NativeStep struct {
	Reply []byte // to be sent to the peer first, even together with an error; may be nil
	Event Event

	Plan       Plan       // with Planned
	Window     Window     // with WindowOpened
	Resume     uint64     // with PeerReady: number of bytes at the start of the file to claim
	Records    []Record   // with Announced
	Acks       []Ack      // with Acknowledged
	Beat       Beat       // with PeerBeat
	Metadata   Metadata   // with PeerMetadata
	Size       uint64     // with PeerEnded and PeerPrepared, bytes
	Digest     []byte     // with PeerEnded and PeerPrepared, of Plan.Digest; empty for DigestNone
	Durability Durability // with PeerDone: what the receiver really did

	// With ToReference: the session that continues, and its step: Exported, together with the Agreement.
	Reference     *Session
	ReferenceStep Step
}

// NativeSession is one side of one transfer in the native protocol. It is not safe for concurrent use.
//
// Call Start, pass every received message to Receive, and do what the NativeStep requires. All other methods except
// the accessors report this side's own progress and return the message to send. A call that the state or its
// arguments do not allow returns an *Error and changes nothing; a failed session returns the error that it failed
// with.
type NativeSession struct {
	side      Side
	own       Hello
	peer      Hello
	limits    Limits
	state     State
	reference *Session // continues with a reference host; nil if there was no Session before
	failure   *Error   // why the state is Failed

	plan     Plan
	window   bool // WINDOW has been sent or received
	ready    bool // READY has been sent or received
	resume   uint64
	slots    slotTable
	metadata assembly
	size     uint64 // bytes, by END

	ownBeat, peerBeat Beat

	// Reused by Receive.
	records []Record
	acks    []Ack
	octets  []byte
}

// NewNative returns a session in state Idle for one version of the protocol. own is this side's HELLO; its Version is
// ignored. It fails with ErrMalformed for a HELLO that a peer would refuse, and with ErrTooLarge if the channel's
// messages are too short.
func NewNative(side Side, version uint8, own Hello, limits Limits) (*NativeSession, error) {
	own.Version = version
	if err := own.check(); err != nil {
		return nil, err
	}
	if limits.MaxMessage < MaxHello {
		return nil, tooLarge(TypeHello, "the message may have", MaxHello, uint64(max(0, limits.MaxMessage)))
	}
	// A larger size would be negative as a file offset.
	limits.MaxFileSize = min(limits.MaxFileSize, math.MaxInt64)
	return &NativeSession{side: side, own: own, limits: limits, state: Idle}, nil
}

// State returns the session's state.
func (n *NativeSession) State() State { return n.state }

// Reached returns State, or of a failed session the state in which it failed.
func (n *NativeSession) Reached() State {
	if n.state == Failed {
		return n.failure.State
	}
	return n.state
}

// Resume returns how many bytes at the start of the file the receiver has by READY; before that, 0.
func (n *NativeSession) Resume() uint64 { return n.resume }

// Plan returns the plan; it is zero before Planned.
func (n *NativeSession) Plan() Plan { return n.plan }

// Peer returns the peer's HELLO; it is zero before Planned.
func (n *NativeSession) Peer() Hello { return n.peer }

// Outstanding returns the number of slots whose record is not acknowledged.
func (n *NativeSession) Outstanding() int { return n.slots.outstanding }

// Propose replaces the chunk size and depth in this side's HELLO, until it is sent: the DPU answers the host's. It
// fails with ErrMalformed for values that a peer would refuse.
func (n *NativeSession) Propose(chunk, depth uint32) error {
	own := n.own
	own.Chunk, own.Depth = chunk, depth
	if err := own.check(); err != nil {
		return err
	}
	n.own = own
	return nil
}

// Start begins the session. It returns the host's HELLO to send. On the DPU, which waits for it, and after the first
// call it returns nil.
func (n *NativeSession) Start() []byte {
	if n.state != Idle {
		return nil
	}
	n.state = AwaitHello
	if n.side == DPU {
		return nil
	}
	return AppendHello(nil, n.own)
}

// Abort gives up in any state and never fails. It returns the ABORT to send, or nil if the peer does not listen any
// more. text gives the reason to the peer's user.
func (n *NativeSession) Abort(code AbortCode, text string) []byte {
	if n.state == Failed {
		return nil
	}
	reason := &Error{Err: ErrAborted}
	if n.state == AwaitDone {
		reason.Err = ErrOutcomeUnknown
	}
	notice := n.notice(code, text)
	n.fail(reason)
	return notice
}

// Disconnected reports the end of the connection. It returns nil if the transfer was complete, otherwise ErrPeerLost,
// ErrOutcomeUnknown, or the error with which the session had failed.
func (n *NativeSession) Disconnected() error {
	switch n.state {
	case Failed:
		return n.failure
	case Done:
		return nil
	case AwaitDisconnect:
		n.state = Done
		return nil
	case AwaitDone:
		return n.fail(&Error{Err: ErrOutcomeUnknown})
	}
	return n.fail(&Error{Err: ErrPeerLost})
}

func (n *NativeSession) sends() bool { return n.plan.Sender == n.side }

// planned reports whether both HELLOs are known.
func (n *NativeSession) planned() bool { return n.plan.Version != 0 }

// notice returns an ABORT, or nil if the peer does not listen: a sender that is Done disconnects.
func (n *NativeSession) notice(code AbortCode, text string) []byte {
	gone := n.state == Done && !n.sends()
	if gone || n.state == Failed || n.state == HandedOver {
		return nil
	}
	return AppendAbort(nil, code, truncateText(text, min(MaxAbortText, n.limits.MaxMessage-abortSize)))
}

func (n *NativeSession) failWithNotice(err error) (NativeStep, error) {
	failure := asError(err)
	failure.State = n.state
	reply := n.notice(AbortProtocol, failure.Error())
	return NativeStep{Reply: reply}, n.fail(failure)
}

func (n *NativeSession) fail(failure *Error) error {
	failure.State = n.state
	n.failure = failure
	n.state = Failed
	return failure
}

// refuse returns the error for a call that is not possible. Nothing was sent, so the state stays.
func (n *NativeSession) refuse(err error) error {
	if n.state == Failed {
		return n.failure
	}
	misuse := asError(err)
	misuse.State = n.state
	return misuse
}

func outOfOrder(t Type) *Error { return &Error{Message: t, Err: ErrOutOfOrder} }
