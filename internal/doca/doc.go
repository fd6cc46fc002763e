// Package doca is the device layer: NVIDIA's DOCA as Go objects, over DOCA's own libraries or over the software device
// that is part of this program.
//
//	Driver ── Device ─┬─ Region ── export descriptor ···► Remote   memory, here and on the other side
//	                  ├─ Engine                                    copies, many in flight
//	                  ├─ Server ── Connection                      control channel, DPU
//	                  └─ Client ── Connection ─┬─ Consumer         control channel, host; fast path
//	                                           └─ Producer
//
// Every object has one owner, who closes it; closing twice is harmless. What was opened from an object is closed before
// the object. An Engine, Consumer or Producer belongs to the goroutine that uses it; Servers, Clients and Connections may be used from any
// goroutine, because each Server and Client has a goroutine of its own that alone touches DOCA.
//
// A Close that cannot be sure that the device has let go of memory returns an error and keeps the memory: a leak is
// better than a device that writes into something else.
package doca
