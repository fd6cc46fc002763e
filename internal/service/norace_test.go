//go:build !race

package service

// fewSeeds is how many seeds a run of all tests tries.
const fewSeeds = 40
