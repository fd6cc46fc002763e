// Package contest measures copies: real files and directory trees with the whole program, compared with tools that do
// the same work.
//
// All candidates of a group run interleaved (bench.Rounds), so that a machine that becomes slower affects all of them.
// What is done before and after a run (workspace.go) is the same for each and is not timed. A candidate that fails is
// reported, and the others continue.
package contest
