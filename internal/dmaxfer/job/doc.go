// Package job holds what both protocols need to transfer one file: the local file, progress, events, errors, the
// summary, limits on waiting for the peer, and calls that may hang. It knows no protocol: it sends no message and moves
// no byte.
//
//	dmaxfer ─► native, reference ─► job ─► disk, pump, negotiate, comch, doca
package job
