// Package dmaxfer copies one file to or from the other side: files, memory, engine, and the order in which they are used.
//
//	Run ─ inspect the file ─ meet the peer ─ negotiate ─┬─ receiver: temporary target ─────────────┐
//	                                                    ├─ host: map the file, export it           │
//	                                                    └─ DPU: import it, run the window engine   │
//	                                                       file ◄─ slots ─► engine ◄─► host memory │
//	      report, disconnect ◄──── STATUS ◄──── flush, close, rename, flush the directory ◄────────┘
//
// The two roles share one loop: what a side does follows from the events of its negotiate.Session, not from its name.
package dmaxfer
