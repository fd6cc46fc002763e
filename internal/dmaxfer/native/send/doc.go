// Package send is the role of the side that has the file or the tree.
//
//	source ─► announcer ─► answers ─┬─ need ─► feed ─► lanes ─► transmitter ─► results
//	                                ├─ sum  ─► digest in a job ─► another answer
//	                                └─ have
//
// file.go handles a file from its answer to its result, pack.go a small file that is sent together with others, and
// directories.go a directory. The states of an entry are drawn in entry.go.
//
// Goroutines: the owner of the transfer calls everything that is not said to be called by others. A job walks the
// source and passes on its entries through announcer.batches. Jobs compute digests, one at a time. The lanes of
// pump.Sender call feed, whose lock guards the queue; they and the owner share an entry by its lock.
package send
