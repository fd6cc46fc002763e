package negotiate

import "fmt"

// Side is one end of the connection.
type Side int

// The host is the Comch client and owns the memory; the DPU is the server and moves the bytes.
const (
	Host Side = iota
	DPU
)

// String is "host" or "DPU".
func (s Side) String() string {
	if s == Host {
		return "host"
	}
	return "DPU"
}

// Other is the side at the far end.
func (s Side) Other() Side {
	if s == Host {
		return DPU
	}
	return Host
}

// Protocol is what both sides agreed to speak.
type Protocol int

// The protocols: Reference is that of NVIDIA's doca_dma_copy, Native the one that two programs of this project speak.
const (
	Reference Protocol = iota + 1
	Native
)

// String is the protocol's name in messages to the operator.
func (p Protocol) String() string {
	switch p {
	case Reference:
		return "reference"
	case Native:
		return "native"
	}
	return fmt.Sprintf("protocol %d", int(p))
}

// State is how far a session has come. In the reference protocol:
//
//	host: Idle ─► AwaitDirection ─► AwaitExport ─► AwaitStatus ─► Done
//	DPU:  Idle ─► AwaitDirection ─► AwaitExport ─► Copying ─► AwaitDisconnect ─► Done
//
// Two sides that agree on the native protocol leave AwaitDirection for HandedOver, and a NativeSession goes on:
//
//	sender:   Idle ─► AwaitHello ─► AwaitReady ─► Sending ─► AwaitPrepared ─► Deciding ─► AwaitDone ─► Done
//	receiver: Idle ─► AwaitHello ─► Preparing ─► Receiving ─► Verifying ─► AwaitCommit ─► Committing ─► AwaitDisconnect ─► Done
//
// Failed is reached from all of them and never left.
type State int

// The states of both protocols. What each input does in each is in docs/PROTOCOL.md.
const (
	Idle            State = iota + 1 // Start has not been called
	AwaitDirection                   // the peer's DIRECTION is due
	AwaitExport                      // agreed; due is the peer's EXPORT (DPU) or the call of Export (host)
	Copying                          // DPU: the call of Finish is due
	AwaitStatus                      // host: the DPU's verdict is due
	AwaitDisconnect                  // success reported; the peer may still report a failure of its own
	Done
	Failed
	HandedOver // the other protocol's session goes on in place of this one
)

// The states of a NativeSession, beside Idle, AwaitDisconnect, Done, Failed and HandedOver.
const (
	AwaitHello    State = iota + HandedOver + 1 // the peer's HELLO is due
	AwaitReady                                  // sender: due are WINDOW, the host's, and READY, the receiver's
	Sending                                     // sender: until the call of End
	AwaitPrepared                               // sender: the receiver's PREPARED is due
	Deciding                                    // sender: the call of Commit is due
	AwaitDone                                   // sender: the receiver's DONE is due
	Preparing                                   // receiver: due are WINDOW, the host's, and the call of Ready
	Receiving                                   // receiver: until the sender's END
	Verifying                                   // receiver: the call of Prepared is due
	AwaitCommit                                 // receiver: the sender's COMMIT is due
	Committing                                  // receiver: the call of Done is due
)

var stateNames = map[State]string{
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
	AwaitReady:      "await-ready",
	Sending:         "sending",
	AwaitPrepared:   "await-prepared",
	Deciding:        "deciding",
	AwaitDone:       "await-done",
	Preparing:       "preparing",
	Receiving:       "receiving",
	Verifying:       "verifying",
	AwaitCommit:     "await-commit",
	Committing:      "committing",
}

// String is the state's name in docs/PROTOCOL.md.
func (s State) String() string {
	if name, ok := stateNames[s]; ok {
		return name
	}
	return fmt.Sprintf("state %d", int(s))
}

// Event is what a received message means to the caller.
type Event int

// The events of a Session, in a Step.
const (
	None     Event = iota
	Agreed         // Step.Agreement is set: host prepares its memory and calls Export, DPU waits
	Exported       // Step.Export is set, on the DPU: copy, then call Finish
	Finished       // on the host: the DPU has copied; save if receiving, then disconnect
	ToNative       // Step.Version and Step.Native are set: start that, once the Reply is sent, and leave this session
)

// The events of a NativeSession, in a NativeStep.
const (
	Planned      Event = iota + ToNative + 1 // Plan is set; the host opens its window, the receiver gets ready
	WindowOpened                             // Window is set, on the DPU
	PeerReady                                // Resume is set, on the sender
	Announced                                // Records is set, on the receiver: fetch, check, write, then call Acks
	Acknowledged                             // Acks is set, on the sender
	PeerBeat                                 // Beat is set
	PeerMetadata                             // Metadata is set, on the receiver
	PeerEnded                                // Size and Digest are set, on the receiver: verify, then call Prepared
	PeerPrepared                             // Size and Digest are set, on the sender: compare, then call Commit
	PeerCommit                               // on the receiver: commit, then call Done
	PeerDone                                 // Durability is set, on the sender: disconnect
	ToReference                              // Reference is set, on the DPU: the host speaks the reference protocol after all
)

var eventNames = [...]string{
	None: "none", Agreed: "agreed", Exported: "exported", Finished: "finished", ToNative: "to-native",
	Planned: "planned", WindowOpened: "window-opened", PeerReady: "peer-ready", Announced: "announced",
	Acknowledged: "acknowledged", PeerBeat: "peer-beat", PeerMetadata: "peer-metadata", PeerEnded: "peer-ended",
	PeerPrepared: "peer-prepared", PeerCommit: "peer-commit", PeerDone: "peer-done", ToReference: "to-reference",
}

// String is the event's name in docs/PROTOCOL.md.
func (e Event) String() string {
	if e >= 0 && int(e) < len(eventNames) {
		return eventNames[e]
	}
	return fmt.Sprintf("event %d", int(e))
}
