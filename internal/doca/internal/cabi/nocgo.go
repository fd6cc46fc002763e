//go:build !cgo

package cabi

// OpenSoft needs cgo.
func OpenSoft(dir, limits string) (ABI, error) { return nil, ErrNoCgo }

// OpenVendor needs cgo.
func OpenVendor(directory string) (ABI, string, error) { return nil, "", ErrNoCgo }
