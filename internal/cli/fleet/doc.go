// Package fleet reads the list of peers that a command copies to, and schedules the copies. It must not know how a peer
// is reached, how a copy is made, or what is reported about it.
package fleet
