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

// Reference is the protocol of NVIDIA's doca_dma_copy.
const Reference Protocol = 1

// String is the protocol's name in messages to the operator.
func (p Protocol) String() string {
	if p == Reference {
		return "reference"
	}
	return fmt.Sprintf("protocol %d", int(p))
}

// State is how far a session has come.
//
//	host: Idle ─► AwaitDirection ─► AwaitExport ─► AwaitStatus ─► Done
//	DPU:  Idle ─► AwaitDirection ─► AwaitExport ─► Copying ─► AwaitDisconnect ─► Done
//
// Failed is reached from all of them and never left.
type State int

// The states. What each input does in each is in docs/PROTOCOL.md.
const (
	Idle            State = iota + 1 // Start has not been called
	AwaitDirection                   // the peer's DIRECTION is due
	AwaitExport                      // agreed; due is the peer's EXPORT (DPU) or the call of Export (host)
	Copying                          // DPU: the call of Finish is due
	AwaitStatus                      // host: the DPU's verdict is due
	AwaitDisconnect                  // DPU: success reported; the host may still report that it could not save
	Done
	Failed
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

// The events.
const (
	None     Event = iota
	Agreed         // Step.Agreement is set: host prepares its memory and calls Export, DPU waits
	Exported       // Step.Export is set, on the DPU: copy, then call Finish
	Finished       // on the host: the DPU has copied; save if receiving, then disconnect
)

// String is the event's name in docs/PROTOCOL.md.
func (e Event) String() string {
	switch e {
	case None:
		return "none"
	case Agreed:
		return "agreed"
	case Exported:
		return "exported"
	case Finished:
		return "finished"
	}
	return fmt.Sprintf("event %d", int(e))
}
