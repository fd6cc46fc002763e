// Package dmaxfer transfers one file to or from the other side: it finds out what this side has, meets the peer, and
// has the transfer done in the protocol that both sides speak. It knows no message of a protocol.
//
//	Run ─ local file ─ meet the peer ─ transfer ─► reference ─┬─ the copy in NVIDIA's protocol
//	                                      │  ▲                └─ the peer speaks the native one
//	                                      ▼  └ it does not after all
//	                                    native ─┬─ sender
//	                                            └─ receiver
//
// RunLocal runs both sides of the native protocol in one process instead, over a connection in memory.
//
// The packages below do not import this one, and native and reference do not import each other: what both need is in
// job, files are disk's, chunks on their way are pump's, digests are digest's. A side acts on the events
// of its session, not from whether it is the host or the DPU.
package dmaxfer
