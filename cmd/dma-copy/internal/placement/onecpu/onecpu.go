// Package onecpu has Go use one CPU while the program starts. A start is one goroutine after another, and each further
// CPU that one of them happens to run on costs some hundred page faults: Go has a cache of the heap for each.
//
// It is enough to import the package. It imports nothing but the runtime, so it is initialised before the packages that
// cost something. Package placement then decides how many CPUs a command uses.
package onecpu

import "runtime"

// CPUs is the GOMAXPROCS with which the process started: that of the environment, or what the machine and a container's
// limit leave.
var CPUs = runtime.GOMAXPROCS(1)
