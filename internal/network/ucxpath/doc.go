// Package ucxpath has the data paths of a network connection over UCX: am, active messages, and rma, remote memory
// access.
//
//	am:   sender ── Send ──► slots of the receiver's workers ── copy ──► buffers of the receiver's lane
//	rma:  sender's window ◄── Get ── receiver's lane, into its buffers; or ◄── copy ──, if it can map the window
//
// A side that starts operations progresses its worker in the lane that waits for them. A side that only serves its
// peer, the receiver on am and the sender on rma, has a goroutine for each worker, which sleeps in Go's netpoller.
//
// UCX opens ports as soon as there is a worker, and their protocol has no authentication. So there is a worker only
// from the time when a transfer needs it until the memory of the connection is closed. On am a message needs a token
// that the peer learns over the control connection. On rma UCX serves reads in software where the transport cannot,
// of any memory of this process and for anybody, so the transport tcp is not used. Shared memory is used only with a
// process of the same user.
package ucxpath
