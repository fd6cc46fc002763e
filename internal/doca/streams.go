package doca

import "github.com/dma-copy/dma-copy/internal/doca/internal/cabi"

// StreamClosedAtStart reports whether a standard stream (descriptor 0, 1 or 2) was closed when the process started.
// Go's runtime opens /dev/null in the place of one, which cannot be told from a /dev/null that the caller wants, so
// only C code that runs before it knows. It is always false without cgo. Any goroutine may call it.
func StreamClosedAtStart(fd int) bool { return cabi.StreamClosedAtStart(fd) }
