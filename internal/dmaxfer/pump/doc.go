// Package pump moves the chunks of a file between the file and the window through which the two sides of a copy exchange
// them. It knows slots, buffers, engines and checks; it knows no protocol state, no file name and no device.
//
//	Sender    file ─read─► slot ─check─► [engine ─► window] ─► announce … acknowledged ─► slot is vacant
//	Receiver  announced ─► [engine: window ─► buffer] ─check─► file ─► acknowledge
//
// A slot is a place in the window. It belongs to the sender until it is announced, to the receiver until it is acknowledged.
// On the host the window is memory of its own: a sending host reads straight into it and needs no engine, a receiving host
// copies out of it first, because the peer could still write there. The DPU has buffers of its own and an Engine between them
// and the window.
//
// The work is done by lanes: goroutines that share nothing but the file, the ledger of what has been moved, and the batches
// of messages to the peer. A lane has its own slots, buffers and engine; while its engine copies some chunks, it reads, checks
// or writes others. Chunks come and go in any order, unless a digest or a stream needs them in sequence: then there is one lane.
// In the steady state nothing is allocated.
//
// Lanes say and hear themselves what the two sides have to say to each other, through a Poller, and sleep only where that takes long. Where
// processors are few each lane has a seat: a processor that it shares with one of the peer's lanes, to which it gives way when it has to wait.
package pump
