package doca

import "github.com/dma-copy/dma-copy/internal/doca/internal/cabi"

// StreamClosedAtStart reports whether a standard stream (descriptor 0, 1 or 2) was closed when the process started.
// Go's runtime replaces such a stream by /dev/null, so only C code that runs before it can tell. It is always false
// without cgo, and safe for concurrent use.
func StreamClosedAtStart(fd int) bool { return cabi.StreamClosedAtStart(fd) }
