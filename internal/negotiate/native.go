package negotiate

import (
	"math"
)

// NativeStep is what a received message asks of the caller. Slices in it are valid until the next call of Receive.
type NativeStep struct {
	Reply []byte // to be sent to the peer before anything else, even together with an error; nil if nothing is
	Event Event

	Plan       Plan       // with Planned
	Window     Window     // with WindowOpened
	Resume     uint64     // with PeerReady: the bytes at the start of the file to claim
	Records    []Record   // with Announced
	Acks       []Ack      // with Acknowledged
	Beat       Beat       // with PeerBeat
	Metadata   Metadata   // with PeerMetadata
	Size       uint64     // with PeerEnded and PeerPrepared, bytes
	Digest     []byte     // with PeerEnded and PeerPrepared, of Plan.Digest; empty for DigestNone
	Durability Durability // with PeerDone: what the receiver really did

	// With ToReference: the session that goes on, and what it asks for: Exported, with the Agreement beside it.
	Reference     *Session
	ReferenceStep Step
}

// NativeSession is one side of one copy in the native protocol. It is not safe for concurrent use.
//
// Start it, hand every received message to Receive, and do what the NativeStep says. All other methods but the
// accessors tell of this side's own progress and return the message to be sent. A call that the state or its own
// arguments do not allow returns an *Error and changes nothing; a failed session repeats the error that it failed with.
type NativeSession struct {
	side      Side
	own       Hello
	peer      Hello
	limits    Limits
	state     State
	reference *Session // may take a reference host back; nil if this session had no such beginning
	failure   *Error   // why the state is Failed

	plan     Plan
	window   bool // WINDOW has been sent or received
	ready    bool // so has READY
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

// NewNative returns a session in state Idle that speaks one version. own is what this side says of itself; its Version
// does not matter. ErrMalformed for a HELLO that a peer would refuse, ErrTooLarge for a channel that is too narrow.
func NewNative(side Side, version uint8, own Hello, limits Limits) (*NativeSession, error) {
	own.Version = version
	if err := own.check(); err != nil {
		return nil, err
	}
	if limits.MaxMessage < MaxHello {
		return nil, tooLarge(TypeHello, "the message may have", MaxHello, uint64(max(0, limits.MaxMessage)))
	}
	// A larger size would turn negative as a file offset.
	limits.MaxFileSize = min(limits.MaxFileSize, math.MaxInt64)
	return &NativeSession{side: side, own: own, limits: limits, state: Idle}, nil
}

// State is where the session stands.
func (n *NativeSession) State() State { return n.state }

// Plan is what Planned reported; before that, nothing.
func (n *NativeSession) Plan() Plan { return n.plan }

// Peer is the peer's HELLO; before Planned, nothing.
func (n *NativeSession) Peer() Hello { return n.peer }

// Outstanding is how many slots hold a record that has not been acknowledged.
func (n *NativeSession) Outstanding() int { return n.slots.outstanding }

// Propose replaces the slots that this side wishes for, until its HELLO is made: the DPU's is in answer to the host's. ErrMalformed for
// what a peer would refuse.
func (n *NativeSession) Propose(chunk, slots uint32) error {
	own := n.own
	own.Chunk, own.Slots = chunk, slots
	if err := own.check(); err != nil {
		return err
	}
	n.own = own
	return nil
}

// Start opens the session. The host gets its HELLO to send, the DPU, which waits for one, gets nil; so does every call
// but the first.
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

// Abort gives up in any state, and never fails: ABORT wherever the peer still listens, otherwise nil. The text says why,
// to the peer's operator.
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

// Disconnected takes the end of the connection: nil if the copy was complete, otherwise ErrPeerLost, ErrOutcomeUnknown,
// or the error that the session had failed with before.
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

// planned tells whether both HELLOs have been heard.
func (n *NativeSession) planned() bool { return n.plan.Version != 0 }

// notice is an ABORT, unless nobody listens: the sender hangs up once it is done, and the receiver knows that.
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

// refuse answers a call that cannot be obeyed. Nothing has been said to the peer, so the state stays.
func (n *NativeSession) refuse(err error) error {
	if n.state == Failed {
		return n.failure
	}
	misuse := asError(err)
	misuse.State = n.state
	return misuse
}

func outOfOrder(t Type) *Error { return &Error{Message: t, Err: ErrOutOfOrder} }
