//go:build !cgo

package cabi

import (
	"github.com/dma-copy/dma-copy/softdoca/abi"
	"github.com/dma-copy/dma-copy/softdoca/device"
)

// OpenSoft needs cgo.
func OpenSoft(device.Settings) (ABI, error) { return nil, abi.ErrNoCgo }

// OpenVendor needs cgo.
func OpenVendor(directory string) (ABI, string, error) { return nil, "", abi.ErrNoCgo }

// StreamClosedAtStart needs cgo.
func StreamClosedAtStart(fd int) bool { return false }
