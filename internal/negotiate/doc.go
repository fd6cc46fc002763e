// Package negotiate has the messages of both wire protocols between a host and its DPU, and their order: state machines
// that turn received bytes into bytes to send and events for the caller. It must not do I/O, start a goroutine, read a
// clock or share state, and it imports no other package of this module. docs/PROTOCOL.md specifies both protocols, with
// test vectors and the state tables that the tests of this package read.
//
// A Session speaks the reference protocol, that of NVIDIA's doca_dma_copy, to the byte and in both roles:
//
//	host: Idle ─► AwaitDirection ─► AwaitExport ─► AwaitStatus ─► Done
//	DPU:  Idle ─► AwaitDirection ─► AwaitExport ─► Copying ─► AwaitDisconnect ─► Done
//
// In AwaitDirection it finds out whether the peer also speaks the native protocol. Then its state is HandedOver, and a
// NativeSession continues:
//
//	sender:   Idle ─► AwaitHello ─► AwaitReady ─► Sending ─► AwaitPrepared ─► Deciding ─► AwaitDone ─► Done
//	receiver: Idle ─► AwaitHello ─► Preparing ─► Receiving ─► Verifying ─► AwaitCommit ─► Committing
//	               ─► AwaitDisconnect ─► Done
//
// The commit states of a transfer follow from these. A sender is cancellable up to Deciding, has the commit sent in
// AwaitDone, and is committed when Done. A receiver is cancellable up to AwaitCommit, committing in Committing, and
// committed from AwaitDisconnect on.
//
// Every state can change to Failed, which is final. A DPU in AwaitHello whose host turns out to speak the reference
// protocol returns to its Session: the NativeSession is HandedOver then.
package negotiate
