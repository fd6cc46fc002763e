package service

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// State is the state of a Session. docs/internals/protocol/service.md defines the effect of every input in every state.
type State uint8

// The states.
const (
	Idle          State = 1  // before the call of Start
	AwaitGreeting State = 2  // until the peer's GREETING
	Ready         State = 3  // between two requests
	Preparing     State = 4  // ITEMS were sent; until COPY
	Requested     State = 5  // until the daemon's answer to COPY
	Copying       State = 6  // a native session is running
	Closing       State = 7  // this side's CLOSE was sent; until the peer's
	PeerClosing   State = 8  // the peer's CLOSE has arrived; until this side's
	Listing       State = 9  // until the daemon's LIST END
	Removing      State = 10 // until the daemon's REMOVED
	Pinging       State = 11 // until the daemon's PONG
	Making        State = 12 // until the daemon's MADE
	Done          State = 13
	Failed        State = 14
)

var stateNames = []string{
	Idle: "idle", AwaitGreeting: "await-greeting", Ready: "ready", Preparing: "preparing", Requested: "requested",
	Copying: "copying", Closing: "closing", PeerClosing: "peer-closing", Listing: "listing", Removing: "removing",
	Pinging: "pinging", Making: "making", Done: "done", Failed: "failed",
}

// String returns the state's name in docs/internals/protocol/service.md.
func (s State) String() string { return wire.NameOf(stateNames, s, "state") }

// Hint returns the user's next step after a violation by a peer that must be dma-copy; empty: the peer may be another.
func (s State) Hint() string {
	if s == AwaitGreeting || s == Pinging {
		return "run the same release of dma-copy on both sides"
	}
	return ""
}

type machine = wire.Machine[State]

// Event is the meaning of a received message for the caller.
type Event int

// The events, in a Step.
const (
	None             Event = 0
	Greeted          Event = 1  // the session is Ready
	Pinged           Event = 2  // Ping is set, on the daemon: call Pong
	RoundTrip        Event = 3  // Ping is set, on the command: the answer
	Refused          Event = 4  // on the command: Refusal is set; the request has ended
	PeerItems        Event = 5  // Items is set, on the daemon
	CopyRequested    Event = 6  // Copy is set, on the daemon: call Accept or Refuse
	CopyAccepted     Event = 7  // Accepted is set, on the command: the native session begins
	PeerNative       Event = 8  // Native is set: a message for the native session
	PeerClosed       Event = 9  // the native session of the peer has ended: Close, unless Ready
	ListRequested    Event = 10 // List is set, on the daemon: call Listed and ListEnd, or Refuse
	PeerListed       Event = 11 // Listed is set, on the command
	PeerListEnd      Event = 12 // ListEnd is set, on the command
	RemoveRequested  Event = 13 // Remove is set, on the daemon: call Removed or Refuse
	PeerRemoved      Event = 14 // Removed is set, on the command
	PeerWorking      Event = 15 // Ahead is set, on the command
	MakeDirRequested Event = 16 // MakeDir is set, on the daemon: call Made or Refuse
	PeerMade         Event = 17 // on the command
	MeasureRequested Event = 18 // Measure is set, on the daemon: call Accept or Refuse
)

var eventNames = []string{
	None: "none", Greeted: "greeted", Pinged: "pinged", RoundTrip: "round-trip", Refused: "refused",
	PeerItems: "peer-items", CopyRequested: "copy-requested", CopyAccepted: "copy-accepted", PeerNative: "peer-native",
	PeerClosed: "peer-closed", ListRequested: "list-requested", PeerListed: "peer-listed",
	PeerListEnd: "peer-list-end", RemoveRequested: "remove-requested", PeerRemoved: "peer-removed",
	PeerWorking: "peer-working", MakeDirRequested: "make-dir-requested", PeerMade: "peer-made",
	MeasureRequested: "measure-requested",
}

// String returns the event's name in docs/internals/protocol/service.md.
func (e Event) String() string { return wire.NameOf(eventNames, e, "event") }
