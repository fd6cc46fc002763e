// Package native is the protocol between two dma-copy. A Session has the same states for both roles:
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
// Every state can change to Failed, which is final. A DPU in AwaitHello whose host turns out to speak the reference
// protocol returns to the reference session: the state is HandedOver then.
package native
