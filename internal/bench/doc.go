// Package bench measures copies: real files through the whole program, against the tools that a user would pick instead, and the copy engine
// alone, from memory to memory. It times and reports; it tunes nothing.
//
// All candidates of a group take turns (rounds.go), so that a machine which becomes slower meanwhile becomes slower for all of them. What is
// done before and after a run (field.go) is the same for each and is not timed. A candidate that fails is reported, and the others go on.
package bench
