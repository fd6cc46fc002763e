package e2e

import "syscall"

// The exit codes that the tests expect, as the help of dma-copy documents them.
const (
	exitOK            = 0
	exitFailure       = 1
	exitUsage         = 3
	exitSource        = 4
	exitTarget        = 5
	exitDevice        = 6
	exitPeer          = 7
	exitRefused       = 8
	exitDigest        = 9
	exitSourceChanged = 10
	exitProtocol      = 11
	exitSomeFailed    = 12
	exitLimit         = 14
	exitSignal        = 128 // plus the signal's number

	exitHangup     = exitSignal + int(syscall.SIGHUP)
	exitInterrupt  = exitSignal + int(syscall.SIGINT)
	exitKilled     = exitSignal + int(syscall.SIGKILL)
	exitBrokenPipe = exitSignal + int(syscall.SIGPIPE)
	exitTerminated = exitSignal + int(syscall.SIGTERM)
)
