// Package native transfers one file in the protocol that two dma-copy speak: through a window of slots on the host,
// with digests, resume and a two-phase commit. It starts where the reference protocol has found out that both sides
// speak it, and returns to it, by Result.Reference, where the peer does not after all. It must not know how the peers
// met, nor what a message looks like: that is negotiate's.
//
//	Run ─ HELLO ─ plan ─┬─ role ─┬─ sender    file ─► lanes ─► slots ─► [engine ─►] window
//	                    │        └─ receiver  window ─► [engine ─►] buffers ─► lanes ─► target
//	                    └─ window: exposed by the host, opened by the DPU
//
//	sender:   AwaitReady ─► Sending ─► AwaitPrepared ─► Deciding ─► AwaitDone ─► Done
//	receiver: Preparing ─► Receiving ─► Verifying ─► AwaitCommit ─► Committing ─► AwaitDisconnect ─► Done
//
// The state of negotiate.NativeSession is the only state machine. The transfer owns the session and runs the loop; a
// role does what the session's events ask for, and knows of the transfer only its link. What takes long, or may hang,
// runs in jobs and lanes, which report to the loop.
package native
