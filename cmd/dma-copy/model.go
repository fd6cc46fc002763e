package main

import (
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
)

// What the software device's time model means for who uses the program (docs/SOFTDEVICE.md).

const (
	noBytesMoved = "NO BYTES ARE MOVED by this device: with move_bytes=0 every task succeeds without copying"
	unsetModel   = "unset DMA_COPY_SOFT_LIMITS, or remove the model from it, for the machine's own speed"
	moveBytes    = "remove move_bytes=0 from DMA_COPY_SOFT_LIMITS"
)

// errMovesNothing keeps a forgotten setting from becoming a file of zeros: not every copy is verified.
var errMovesNothing error = exit.Errorf(exit.Usage, moveBytes,
	"the software device is set to move no bytes, so nothing would be copied")

// checkTimeModel has something to say only where the software device has a model, or moves nothing.
func checkTimeModel(driver driverRecord) []finding {
	var findings []finding
	if driver.TimeModel != "" {
		findings = append(findings, warn(unsetModel, "time model: tasks of the software device take the time of %s", driver.TimeModel))
	}
	if driver.MovesNothing {
		findings = append(findings, fail(moveBytes, "%s", noBytesMoved).exitingWith(exit.Usage))
	}
	return findings
}
