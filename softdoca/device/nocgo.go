//go:build !cgo

package device

import "github.com/dma-copy/dma-copy/softdoca/abi"

// Directory needs cgo.
func Directory(dir string) (string, error) { return "", abi.ErrNoCgo }

// TrustsUser needs cgo.
func TrustsUser(uid uint32) bool { return false }

// FunctionKey needs cgo.
func FunctionKey(name string) string { return "" }

// ServerFile needs cgo.
func ServerFile(hostFunction, device, name string) string { return "" }
