// Package native is a session in the protocol that two dma-copy speak, and the transfer in it: of a file, a stream or a
// directory, through a window of slots, with digests and resume. It starts where the reference protocol has
// found out that both sides speak it, and returns to it, by Result.Reference, where the peer does not after all. It
// must not know how the peers met, nor what a message looks like: that is negotiate's.
//
//	Run ─ HELLO ─ plan ─┬─ role ─┬─ send     source ─► entries ─► feed ─► lanes ─► slots ─► [engine ─►] window
//	                    │        └─ receive  entries ─► planner; window ─► [engine ─►] buffers ─► lanes ─► target
//	                    └─ window: exposed by its owner, opened by the peer
//
// The state of protocol.Session is the only state of the session. It also keeps what a role knows of each entry;
// packages send and receive draw the states of their entries.
//
// This package has the loop. It owns the session, and does not know what an entry is; a role does what the session's
// events ask for, and knows of the transfer only its role.Link.
//
// Goroutines: Run leads the transfer, in its caller's goroutine, and owns the session and the role while it holds
// transfer.owner. While it waits, a lane of the role can be the owner for messages and batches. Work that takes long,
// or may hang, runs in jobs, each a goroutine that Run waits for; lanes and jobs post calls for the owner to the
// mailbox, which has a lock of its own. windUp releases what the transfer held in one more goroutine, which remains if
// a call hangs.
package native
