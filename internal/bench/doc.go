// Package bench measures copies: real files and directory trees with the whole program, compared with tools that do the
// same work, and the copy engine alone, from memory to memory. It measures and reports; it tunes nothing.
//
// All candidates of a group run interleaved (rounds.go), so that a machine that becomes slower affects all of them.
// What is done before and after a run (workspace.go) is the same for each and is not timed. A candidate that fails is
// reported, and the others continue.
package bench
