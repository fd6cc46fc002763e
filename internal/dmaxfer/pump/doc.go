// Package pump moves content between files and the window, the registered memory through which the two sides of a
// transfer exchange it. A slot of the window carries a unit: a chunk of one file, or several whole files. It must not
// know a protocol state, a file name or a device: files, engines and the
// way to the peer are interfaces.
//
//	Sender    feed ─read─► slot ─checksum─► [engine ─► window] ─► announce ... acknowledged ─► slot is vacant
//	Receiver  announced ─► [engine: window ─► buffer] ─checksum─► file ─► acknowledge
//
// The slots of the window have these states, which the session of package negotiate enforces:
//
//	                 announce                    acknowledge: good
//	vacant (sender) ──────────► announced (receiver) ──────────────► vacant
//	                    ▲             │ acknowledge: bad
//	                    └─ retransmit ┘
//
// On the host the window is private memory. A sending host reads straight into it and needs no Engine. A receiving
// host first copies out of it (Copier), because the peer can still write there. The DPU has buffers of its own, and an
// Engine between them and the window. If it is a Gatherer, a receiver's lane has it fetch several announced units with
// one move, as many as there are and as fit into one buffer.
//
// The work is done by lanes, one goroutine each. They share only the file, the ledger of processed chunks and the Batch
// of messages to the peer; slots, buffers and the engine belong to one lane. While its engine copies some chunks, a
// lane reads, checks or writes others. Chunks may be processed in any order unless a digest or a stream needs them in
// order; then there is one lane. In the steady state nothing is allocated.
//
// A lane exchanges messages with the peer itself through a Poller, and sleeps only if that takes long. Where CPUs are
// few, each lane can be pinned to a CPU that it shares with a lane of the peer, and yields to it when it has to wait.
package pump
