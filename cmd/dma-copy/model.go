package main

import "errors"

// What the software device's time model means for who uses the program (docs/SOFTDEVICE.md).

const (
	noBytesMoved = "NO BYTES ARE MOVED by this device: move_bytes=0 has every task succeed and do nothing"
	unsetModel   = "unset DMA_COPY_SOFT_LIMITS, or take the model out of it, for the machine's own speed"
	moveBytes    = "take move_bytes=0 out of DMA_COPY_SOFT_LIMITS"
)

// errMovesNothing keeps a forgotten setting from becoming a file of zeros: not every copy is verified.
var errMovesNothing = errors.New("the software device was told to move no bytes, so nothing would be copied")

// checkTimeModel has something to say only where the software device has a model, or moves nothing.
func checkTimeModel(driver driverRecord) []finding {
	var findings []finding
	if driver.TimeModel != "" {
		findings = append(findings, warn(unsetModel, "time model: tasks of the software device take the time of %s", driver.TimeModel))
	}
	if driver.MovesNothing {
		findings = append(findings, fail(moveBytes, "%s", noBytesMoved).exitingWith(exitUsage))
	}
	return findings
}
