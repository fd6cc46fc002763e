// Package doca is the device layer: NVIDIA's DOCA as Go objects, over DOCA's own libraries or over the software device
// that is part of this program.
//
//	Driver ── Device ─┬─ Region ── export descriptor ···► Remote   memory of this side and of the other
//	                  ├─ Engine                                    copies, many in flight
//	                  ├─ Server ── Connection                      control channel, DPU
//	                  └─ Client ── Connection ─┬─ Consumer         control channel, host; fast path
//	                                           └─ Producer
//
// Ownership: every object has one owner, which closes it; closing twice is harmless. What was opened from an object
// must be closed before the object.
//
// Concurrency: an Engine, Consumer or Producer is used by one goroutine at a time. Servers, Clients and Connections are
// safe for concurrent use, because only the endpoint below each Server and Client calls DOCA for it, one goroutine at a
// time.
//
// Memory: a Close that cannot be sure that the device has released memory returns an error and keeps the memory. A leak
// is better than a device that writes into memory that is reused.
//
// State machines are drawn where they are declared: endpoint and Connection in endpoint.go and connection.go, Engine in
// engine.go, Consumer and Producer (port) in port.go. They all follow the states of a DOCA context.
//
// The package must not know what is copied, log, or choose CPUs.
package doca
