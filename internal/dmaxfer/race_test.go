//go:build race

package dmaxfer

// What a run of all tests does less of under the race detector, which makes it slow: without it the same is done in
// full, and it finds races of a kind of call, whichever of them fails.
const (
	fewSeeds       = 60  // how many seeds the simulations try
	fewCorruptions = 240 // how many chunks are corrupted
	sweepStep      = 5   // how far apart the calls are that a sweep lets fail
)
