package reference

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// State is the state of a Session. protocol/reference.md defines the effect of every input in every state.
type State uint8

// The states.
const (
	Idle            State = 1 // before the call of Start
	AwaitDirection  State = 2 // until the peer's DIRECTION
	AwaitExport     State = 3 // agreed; until the peer's EXPORT (DPU) or the call of Export (host)
	Copying         State = 4 // DPU: until the call of Finish
	AwaitStatus     State = 5 // host: until the DPU's STATUS
	AwaitDisconnect State = 6 // success reported; the peer may still report a failure
	Done            State = 7
	Failed          State = 8
	HandedOver      State = 9 // the native session continues
)

var stateNames = []string{
	Idle: "idle", AwaitDirection: "await-direction", AwaitExport: "await-export", Copying: "copying",
	AwaitStatus: "await-status", AwaitDisconnect: "await-disconnect", Done: "done", Failed: "failed",
	HandedOver: "handed-over",
}

// String returns the state's name in docs/internals/protocol/reference.md.
func (s State) String() string { return wire.NameOf(stateNames, s, "state") }

type machine = wire.Machine[State]

// Event is the meaning of a received message for the caller.
type Event int

// The events, in a Step.
const (
	None     Event = 0
	Agreed   Event = 1 // Step.Agreement is set: the host prepares its memory and calls Export, the DPU waits
	Exported Event = 2 // Step.Export is set, on the DPU: copy, then call Finish
	Finished Event = 3 // on the host: the DPU has copied; commit if receiving, then disconnect
	ToNative Event = 4 // Step.Version is set: send the Reply, then start the native session and use it from now on
)

var eventNames = []string{
	None: "none", Agreed: "agreed", Exported: "exported", Finished: "finished", ToNative: "to-native",
}

// String returns the event's name in docs/internals/protocol/reference.md.
func (e Event) String() string { return wire.NameOf(eventNames, e, "event") }
