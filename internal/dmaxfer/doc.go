// Package dmaxfer copies one file to or from the other side. It decides in which order things happen and when they have gone
// wrong; what it uses for that is in packages of their own: disk (files), pump (pieces on their way), digest.
//
//	Run ─ inspect the file ─ meet the peer ─ transfer: which protocol? ─┬─ native ─┬─ sending     reader ─► slots ─► engine ─► window
//	                                                                    │          └─ receiving   window ─► engine ─► buffers ─► sink
//	                                                                    └─ the reference's: the whole file as memory, and a window engine
//
// In both protocols the two sides share their code: what a side does follows from the events of its session, not from its name.
package dmaxfer
