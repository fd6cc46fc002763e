//go:build !race

package dmaxfer

// fewSeeds is how many seeds a run of all tests tries.
const fewSeeds = 600

// fewCorruptions is how many chunks a run of all tests corrupts.
const fewCorruptions = 600

// sweepStep is how far apart the calls are that a sweep lets fail.
const sweepStep = 1
