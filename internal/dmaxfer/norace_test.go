//go:build !race

package dmaxfer

// What a run of all tests does of simulations and sweeps: a sample that begins anywhere. `make test-long` repeats them
// until all has been tried many times.
const (
	fewSeeds       = 200 // how many seeds the simulations try
	fewCorruptions = 300 // how many chunks are corrupted
	sweepStep      = 3   // how far apart the calls are that a sweep lets fail
)
