// Package ucx binds UCX's protocol layer (libucp) as Go objects: registered memory, remote reads and active messages
// between machines.
//
//	Open ── Context ─┬─ Memory ── RemoteKey (packed) ···► Endpoint.ImportKey   memory of this side and of the other
//	                 └─ Worker ─┬─ Address ···► Connect                        one lane's operations, many in flight
//	                            ├─ Endpoint: Get, Send                         to one worker of a peer
//	                            └─ Receive                                     where active messages are written
//
// The types come from the headers of libucx-dev, so the package is built with the tag ucx where they are installed;
// without the tag, without cgo, or without libucp.so.0 at run time, Open returns an error that says what to install.
// The functions are looked up at run time, so that the program has no link dependency and starts without UCX.
//
// Ownership: every object has one owner, which closes it; closing twice is harmless. Objects that were opened from
// another object must be closed before the object; a Worker closes its endpoints, an Endpoint its imported keys.
//
// Concurrency: a Context is safe for concurrent use. A Worker and its endpoints are used by one goroutine at a time,
// except for Post. A Memory is safe for concurrent use, but the caller must synchronize access to its bytes.
//
// Memory: nothing is freed while an operation may still use it. A Close that cannot be sure returns ErrStillRunning and
// keeps everything; it can be called again.
//
// Process-wide effects, from the first Open on: variables of the environment that begin with UCX_ are set (see
// library.c), since UCX reads them when it is loaded; UCX starts a thread of its own. It installs no signal handlers
// and replaces no memory functions.
//
// UCX does not protect against:
//
//   - Its ports speak a protocol without authentication, and what arrives there was not written for hostile senders.
//     They are open while a Worker exists, on the devices of Settings.NetDevices.
//   - UCX trusts worker addresses and keys of memory. This package checks their form and their numbers, and pads
//     them, so that a malformed one neither ends the process nor is read beyond its buffer (see address.go). It does
//     not know the addresses of the transports in them: over shared memory a wrong one can end the process. So both
//     must come from an authenticated peer.
//   - Of a worker with Settings.Reads, whoever can connect may be able to read and write all memory of the process.
//   - Over shared memory the peer names the process whose memory is read. The transports "posix", "sysv", "cma", "knem"
//     and "xpmem" are only for a peer that runs as the same user on the same machine. Memory with RemoteRead is then
//     mapped by the peer, which could also write to it, and keeps it as long as it wants.
package ucx
