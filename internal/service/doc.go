// Package service is the daemon of dma-copy and the commands that use it: several connections, each with requests one
// after another, over an authenticated channel.
//
//	Daemon ─ meets ─► Server ─► session ─► request ─┬─ copy ── stream ─► dmaxfer.RunLinked
//	                    │                           ├─ list, remove ──► share
//	                    ├─ trusted keys, shares     └─ ping
//	                    └─ limits ─► permits, rates, memory
//	Dial ──────────► Client ─ Push, Pull, List, Remove, RoundTrip
//
// The package decides who may do what, and when. It must not know how a key is stored, how a path is kept below its
// share, or how bytes are copied.
package service
