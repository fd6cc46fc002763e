//go:build !cgo

package cabi

// OpenSoft needs cgo.
func OpenSoft(SoftSettings) (ABI, error) { return nil, ErrNoCgo }

// OpenVendor needs cgo.
func OpenVendor(directory string) (ABI, string, error) { return nil, "", ErrNoCgo }

// SoftDirectory needs cgo.
func SoftDirectory(dir string) (string, error) { return "", ErrNoCgo }

// SoftTrustsUser needs cgo.
func SoftTrustsUser(uid uint32) bool { return false }

// SoftServerFile needs cgo.
func SoftServerFile(hostFunction, device, name string) string { return "" }

// StreamClosedAtStart needs cgo.
func StreamClosedAtStart(fd int) bool { return false }
