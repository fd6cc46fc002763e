package negotiate

// State is the state of a session. The package comment draws both state machines; docs/PROTOCOL.md defines the effect
// of every input in every state.
type State uint8

// The states of a Session.
const (
	Idle            State = iota + 1 // before the call of Start
	AwaitDirection                   // until the peer's DIRECTION
	AwaitExport                      // agreed; until the peer's EXPORT (DPU) or the call of Export (host)
	Copying                          // DPU: until the call of Finish
	AwaitStatus                      // host: until the DPU's STATUS
	AwaitDisconnect                  // success reported; the peer may still report a failure
	Done
	Failed
	HandedOver // another session continues
)

// The states of a NativeSession, in addition to Idle, Done, Failed and HandedOver.
const (
	AwaitHello   State = iota + HandedOver + 1 // until the peer's HELLO
	Ready                                      // planned, between two transfers
	Transferring                               // until the sender's FINISH
	Finishing                                  // until the receiver's FINISHED
	Cancelling                                 // the sender has aborted; until the outcome of all entries is known
)

// The states of a Service, in addition to Idle, Ready, Copying, Done and Failed.
const (
	AwaitGreeting State = iota + Cancelling + 1 // until the peer's GREETING
	Preparing                                   // ITEMS were sent; until COPY
	Requested                                   // until the daemon's answer to COPY
	Closing                                     // this side's CLOSE was sent; until the peer's
	PeerClosing                                 // the peer's CLOSE has arrived; until this side's
	Listing                                     // until the daemon's LIST END
	Removing                                    // until the daemon's REMOVED
	Pinging                                     // until the daemon's PONG
	Making                                      // until the daemon's MADE
)

var stateNames = []string{
	Idle:            "idle",
	AwaitDirection:  "await-direction",
	AwaitExport:     "await-export",
	Copying:         "copying",
	AwaitStatus:     "await-status",
	AwaitDisconnect: "await-disconnect",
	Done:            "done",
	Failed:          "failed",
	HandedOver:      "handed-over",
	AwaitHello:      "await-hello",
	Ready:           "ready",
	Transferring:    "transferring",
	Finishing:       "finishing",
	Cancelling:      "cancelling",
	AwaitGreeting:   "await-greeting",
	Pinging:         "pinging",
	Preparing:       "preparing",
	Requested:       "requested",
	Closing:         "closing",
	PeerClosing:     "peer-closing",
	Listing:         "listing",
	Removing:        "removing",
	Making:          "making",
}

// String returns the state's name in docs/PROTOCOL.md.
func (s State) String() string { return nameOf(stateNames, s, "state") }

// Event is the meaning of a received message for the caller.
type Event int

// The events of a Session, in a Step.
const (
	None     Event = iota
	Agreed         // Step.Agreement is set: the host prepares its memory and calls Export, the DPU waits
	Exported       // Step.Export is set, on the DPU: copy, then call Finish
	Finished       // on the host: the DPU has copied; commit if receiving, then disconnect
	ToNative       // Step.Version is set: send the Reply, then start the native session and use it from now on
)

// The events of a NativeSession, in a NativeStep.
const (
	Planned          Event = iota + ToNative + 1 // Plan is set; the host creates the window
	WindowOpened                                 // Window is set, on the DPU
	TransferBegun                                // on the receiver
	EntriesAnnounced                             // Entries is set, on the receiver: call Answers, Results or Fail
	Answered                                     // Answers is set, on the sender
	PeerMetadata                                 // Entry and Metadata are set, on the receiver
	Announced                                    // Records is set, on the receiver: fetch, check, write, call Acks
	Packed                                       // Pack is set, on the receiver: as Announced, then call Results
	Acknowledged                                 // Acks is set, on the sender
	PeerEnded                                    // Entry, Size and Digest are set, on the receiver: call Results
	PeerSum                                      // Entry and Digest are set, on the receiver: answer again
	EntryFailed                                  // Failure is set
	Committed                                    // Results is set, on the sender
	PeerFinish                                   // Total and Missing are set, on the receiver: call Finished
	PeerFinished                                 // Durability and Counts are set, on the sender
	PeerBeat                                     // Beat is set
	PeerCancelled                                // on the sender in Cancelling: nothing more will be committed
	PeerAborting                                 // Failure is set, on the receiver: stop, then call Cancelled
	ToReference                                  // on the DPU: the host speaks the reference protocol
)

// The events of a Service, in a ServiceStep.
const (
	Greeted          Event = iota + ToReference + 1 // the session is Ready
	Pinged                                          // Ping is set, on the daemon: call Pong
	RoundTrip                                       // Ping is set, on the command: the answer
	Refused                                         // on the command: Refusal is set; the request has ended
	PeerItems                                       // Items is set, on the daemon
	CopyRequested                                   // Copy is set, on the daemon: call Accept or Refuse
	CopyAccepted                                    // Accepted is set, on the command: the native session begins
	PeerNative                                      // Native is set: a message for the native session
	PeerClosed                                      // the native session of the peer has ended: Close, unless Ready
	ListRequested                                   // List is set, on the daemon: call Listed and ListEnd, or Refuse
	PeerListed                                      // Listed is set, on the command
	PeerListEnd                                     // ListEnd is set, on the command
	RemoveRequested                                 // Remove is set, on the daemon: call Removed or Refuse
	PeerRemoved                                     // Removed is set, on the command
	PeerWorking                                     // Ahead is set, on the command
	MakeDirRequested                                // MakeDir is set, on the daemon: call Made or Refuse
	PeerMade                                        // on the command
	MeasureRequested                                // Measure is set, on the daemon: call Accept or Refuse
)

var eventNames = []string{
	None: "none", Agreed: "agreed", Exported: "exported", Finished: "finished", ToNative: "to-native",
	Planned: "planned", WindowOpened: "window-opened", TransferBegun: "transfer-begun",
	EntriesAnnounced: "entries-announced", Answered: "answered", PeerMetadata: "peer-metadata", Announced: "announced",
	Packed: "packed", Acknowledged: "acknowledged", PeerEnded: "peer-ended", PeerSum: "peer-sum",
	EntryFailed: "entry-failed", Committed: "committed", PeerFinish: "peer-finish", PeerFinished: "peer-finished",
	PeerBeat: "peer-beat", PeerCancelled: "peer-cancelled", PeerAborting: "peer-aborting", ToReference: "to-reference",
	Greeted: "greeted", Pinged: "pinged",
	RoundTrip: "round-trip",
	Refused:   "refused", PeerItems: "peer-items", CopyRequested: "copy-requested", CopyAccepted: "copy-accepted",
	PeerNative: "peer-native", PeerClosed: "peer-closed", ListRequested: "list-requested", PeerListed: "peer-listed",
	PeerListEnd: "peer-list-end", RemoveRequested: "remove-requested", PeerRemoved: "peer-removed",
	PeerWorking: "peer-working", MakeDirRequested: "make-dir-requested", PeerMade: "peer-made",
	MeasureRequested: "measure-requested",
}

// String returns the event's name in docs/PROTOCOL.md.
func (e Event) String() string { return nameOf(eventNames, e, "event") }
