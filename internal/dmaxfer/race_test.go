//go:build race

package dmaxfer

// fewSeeds is how many seeds a run of all tests tries: few under the race detector, which makes them slow.
const fewSeeds = 100
