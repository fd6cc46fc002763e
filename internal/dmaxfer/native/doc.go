// Package native is a session in the protocol that two dma-copy speak, and the transfer in it: of a file, a stream or a
// directory, through a window of slots, with digests and resume. It starts where the reference protocol has
// found out that both sides speak it, and returns to it, by Result.Reference, where the peer does not after all. It
// must not know how the peers met, nor what a message looks like: that is negotiate's.
//
//	Run ─ HELLO ─ plan ─┬─ role ─┬─ sender    source ─► entries ─► feed ─► lanes ─► slots ─► [engine ─►] window
//	                    │        └─ receiver  entries ─► planner; window ─► [engine ─►] buffers ─► lanes ─► target
//	                    └─ window: exposed by its owner, opened by the peer
//
// The state of negotiate.NativeSession is the only state of the session. The life of an entry:
//
//	sender    source ─► waiting ─► announced ─┬─ unchanged ────────────────────► decided
//	                                          └─ needed ─► feed ─► lanes ─ end ─► decided, by the result
//	receiver  registered ─► planned ─┬─ created, or unchanged ─────────────────► decided
//	                                 └─ needed ─► stored ─► finished ─ renamed ─► decided
//
// The transfer owns the session and runs the loop; a role does what the session's events ask for, and knows of the
// transfer only its link. What takes long, or may hang, runs in jobs and lanes, which report to the loop. The parts of
// a role refer to each other in one direction:
//
//	sender ─► announcer ─► finder
//	sender ─► announcer, transmitter ─► sentEntries ─► settling
//	sender ─► feed, digestQueue
//	receiver ─► digestComparison ─► planner ─► chunkStore
//	receiver ─► planner, chunkStore, packStore, conclusion ─► outcomes ─► openEntries, directories, replies
package native
