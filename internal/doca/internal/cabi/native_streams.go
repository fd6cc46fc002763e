//go:build cgo

package cabi

// #include "streams.h"
import "C"

// StreamClosedAtStart reports whether descriptor 0, 1 or 2 was closed when the process started.
func StreamClosedAtStart(fd int) bool { return bool(C.streams_closed_at_start(C.int(fd))) }
