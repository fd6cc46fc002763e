package main

import (
	"os"
	"runtime"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// shareCores leaves half of the processors to the other side where that runs on this machine, too, as it does with the software device:
// two processes that both try to use all of them spend much of their time on waking each other. GOMAXPROCS in the environment decides
// otherwise.
func shareCores(driver *doca.Driver) {
	if driver.Hardware() || os.Getenv("GOMAXPROCS") != "" {
		return
	}
	runtime.GOMAXPROCS(max(1, runtime.NumCPU()/2))
}
