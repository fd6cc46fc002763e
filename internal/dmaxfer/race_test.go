//go:build race

package dmaxfer

// Less than without the race detector, which makes it slow: it finds races of a kind of call, whichever of them fails.
const (
	fewSeeds       = 60
	fewCorruptions = 240
	sweepStep      = 5
)
