//go:build race

package dmaxfer

// fewSeeds is how many seeds a run of all tests tries: few under the race detector, which makes them slow.
const fewSeeds = 60

// sweepStep is how far apart the calls are that a sweep lets fail. The sweeps without the race detector try each.
const sweepStep = 3
