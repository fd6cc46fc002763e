//go:build !race

package dmaxfer

// fewSeeds is how many seeds a run of all tests tries.
const fewSeeds = 1000
