// Package fleet decides how a command copies to many peers: it reads the list of peers, and it schedules their copies.
//
// A Planner has the order and the bounds and does no I/O, so that the simulation of a thousand peers schedules with the
// code that the command uses. Run starts what the Planner permits and waits for it. This package must not know how a
// peer is reached, how a copy is made, or what is reported about it.
package fleet
