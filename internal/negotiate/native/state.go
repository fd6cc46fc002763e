package native

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// State is the state of a Session. docs/internals/protocol/native.md defines the effect of every input in every state.
type State uint8

// The states.
const (
	Idle         State = 1 // before the call of Start
	AwaitHello   State = 2 // until the peer's HELLO
	Ready        State = 3 // planned, between two transfers
	Transferring State = 4 // until the sender's FINISH
	Finishing    State = 5 // until the receiver's FINISHED
	Cancelling   State = 6 // the sender has aborted; until the outcome of all entries is known
	Done         State = 7
	Failed       State = 8
	HandedOver   State = 9 // the reference session continues
)

var stateNames = []string{
	Idle: "idle", AwaitHello: "await-hello", Ready: "ready", Transferring: "transferring", Finishing: "finishing",
	Cancelling: "cancelling", Done: "done", Failed: "failed", HandedOver: "handed-over",
}

// String returns the state's name in docs/internals/protocol/native.md.
func (s State) String() string { return wire.NameOf(stateNames, s, "state") }

type machine = wire.Machine[State]

// Event is the meaning of a received message for the caller.
type Event int

// The events, in a Step.
const (
	None             Event = 0
	Planned          Event = 1  // Plan is set; the host creates the window
	WindowOpened     Event = 2  // Window is set, on the DPU
	TransferBegun    Event = 3  // on the receiver
	EntriesAnnounced Event = 4  // Entries is set, on the receiver: call Answers, Results or Fail
	Answered         Event = 5  // Answers is set, on the sender
	PeerMetadata     Event = 6  // Entry and Metadata are set, on the receiver
	Announced        Event = 7  // Records is set, on the receiver: fetch, check, write, call Acks
	Packed           Event = 8  // Pack is set, on the receiver: as Announced, then call Results
	Acknowledged     Event = 9  // Acks is set, on the sender
	PeerEnded        Event = 10 // Entry, Size and Digest are set, on the receiver: call Results
	PeerSum          Event = 11 // Entry and Digest are set, on the receiver: answer again
	EntryFailed      Event = 12 // Failure is set
	Committed        Event = 13 // Results is set, on the sender
	PeerFinish       Event = 14 // Total and Missing are set, on the receiver: call Finished
	PeerFinished     Event = 15 // Durability and Counts are set, on the sender
	PeerBeat         Event = 16 // Beat is set
	PeerCancelled    Event = 17 // on the sender in Cancelling: nothing more will be committed
	PeerAborting     Event = 18 // Failure is set, on the receiver: stop, then call Cancelled
	ToReference      Event = 19 // on the DPU: the host speaks the reference protocol
)

var eventNames = []string{
	None: "none", Planned: "planned", WindowOpened: "window-opened", TransferBegun: "transfer-begun",
	EntriesAnnounced: "entries-announced", Answered: "answered", PeerMetadata: "peer-metadata", Announced: "announced",
	Packed: "packed", Acknowledged: "acknowledged", PeerEnded: "peer-ended", PeerSum: "peer-sum",
	EntryFailed: "entry-failed", Committed: "committed", PeerFinish: "peer-finish", PeerFinished: "peer-finished",
	PeerBeat: "peer-beat", PeerCancelled: "peer-cancelled", PeerAborting: "peer-aborting", ToReference: "to-reference",
}

// String returns the event's name in docs/internals/protocol/native.md.
func (e Event) String() string { return wire.NameOf(eventNames, e, "event") }
