// Package negotiate has the messages of the wire protocols between a host and its DPU, and their order: state machines
// that turn received bytes into bytes to send and events for the caller. It must not do I/O, start a goroutine, read a
// clock or share state, and it imports no other package of this module. docs/PROTOCOL.md specifies them, with
// test vectors and the state tables that the tests of this package read.
//
// A Session speaks the reference protocol, that of NVIDIA's doca_dma_copy, to the byte and in both roles:
//
//	host: Idle ─► AwaitDirection ─► AwaitExport ─► AwaitStatus ─► Done
//	DPU:  Idle ─► AwaitDirection ─► AwaitExport ─► Copying ─► AwaitDisconnect ─► Done
//
// In AwaitDirection it finds out whether the peer also speaks the native protocol. Then its state is HandedOver, and a
// NativeSession continues, with the same states for both roles:
//
//	Idle ─► AwaitHello ─► Ready ─► Transferring ─► Finishing ─► Ready ─► ... ─► Done
//	                                        └───────────┴─► Cancelling ─► Failed
//
// TRANSFER begins a transfer, FINISH says that the sender has sent everything, FINISHED that the receiver has decided
// everything. In Cancelling the sender has aborted while the receiver may be committing entries.
//
// A transfer consists of entries. Each has a phase, which is the same on both sides as far as the messages have
// arrived, and says which role sends the next message about the entry:
//
//	file:     unanswered (receiver) ─need─► needed (sender) ─END or PACK─► ended (receiver) ─result─► decided
//	          unanswered ─sum─► asked (sender) ─SUM─► summed (receiver) ─need─► needed
//	          unanswered, summed ─have─► decided; ended ─the pack was bad─► needed
//	another:  unanswered (receiver) ─result, have─► decided
//
// A role whose turn it is may fail the entry; the receiver may do so at any time. The entry is decided when the other
// role has answered with a FAILURE of its own, so that no message about a decided entry is ever on its way. The commit
// states of an entry follow: it is cancellable until ended, then the commit is sent, and it is committed by the result.
//
// A Service has what a command and a daemon have over one connection: each copy in it is a NativeSession, whose
// messages pass through the Service unchanged.
//
// Every state can change to Failed, which is final. A DPU in AwaitHello whose host turns out to speak the reference
// protocol returns to its Session: the NativeSession is HandedOver then.
package negotiate
