package e2e

// The exit codes of dma-copy that the tests expect, as its help and docs/ document them.
const (
	exitOK            = 0
	exitFailure       = 1
	exitUsage         = 3
	exitSource        = 4
	exitTarget        = 5
	exitPeer          = 7
	exitSourceChanged = 10
	exitLimit         = 14
	exitSignal        = 128 // plus the signal's number
)
