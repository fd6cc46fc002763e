// Package doca is the device layer: NVIDIA's DOCA as Go objects, over DOCA's own libraries or over the software device
// that is part of this program.
//
//	Driver ── Device ─┬─ Region ── export descriptor ···► Remote   memory of this side and of the other
//	                  ├─ Engine                                    copies, many in flight
//	                  ├─ Server ── Connection                      control channel, DPU
//	                  └─ Client ── Connection ─┬─ Consumer         control channel, host; fast path
//	                                           └─ Producer
//
// Ownership: every object has one owner, which closes it; closing twice is harmless. Objects that were opened from
// another object must be closed before it.
//
// Concurrency: an Engine, Consumer or Producer is used by one goroutine at a time. Servers, Clients and Connections are
// safe for concurrent use, because only the endpoint below each Server and Client calls DOCA for it, one goroutine at a
// time.
//
// Goroutines:
//
//   - Each Server and Client starts one, endpoint.run, and its Close ends it and waits for it. It owns the state that
//     endpoint.running guards: the life, connections, sendQueue and each Connection's outbox. Calls reach it through
//     commands, whose lock guards only their queue and wakeups. It sends on the result channel of each call and send,
//     Connection.inbox, Server.arrivals and Client.attempts, each of which has space for what it sends, and closes
//     Connection.ended and endpoint.finished.
//   - With ChannelConfig.Polled, callers of Send and TryRecv work for it while it sleeps, under the same lock; see
//     pollers.
//   - A sleeping Consumer or Producer has one that watches for the end of the connection. It ends with the sleep, uses
//     channels only, and is not waited for.
//
// Memory: a Close that cannot be sure that the device has released memory returns an error and keeps the memory. A leak
// is better than a device that writes into memory that is reused.
//
// State machines are drawn where they are declared: endpoint and Connection in endpoint.go and connection.go, Engine in
// engine.go, Consumer and Producer (port) in port.go. They all follow the states of a DOCA context.
//
// The package must not know what is copied, log, or choose CPUs.
package doca
