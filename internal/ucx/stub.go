//go:build !ucx || !cgo

package ucx

import "fmt"

// loadLibrary reports that this program was built without UCX.
func loadLibrary(string) (abi, error) {
	return nil, fmt.Errorf("%w: this dma-copy was built without it (install libucx-dev and a C compiler, and rebuild "+
		"with make build)", ErrUnavailable)
}
