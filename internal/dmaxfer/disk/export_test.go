package disk

import "testing"

// OldKernel makes the following calls of OS behave as on a kernel without openat2(2), and without the permission to
// name a file by its descriptor alone.
func OldKernel(t *testing.T) {
	noOpenat2.Store(true)
	linksByPath.Store(true)
	t.Cleanup(func() {
		noOpenat2.Store(false)
		linksByPath.Store(false)
	})
}
