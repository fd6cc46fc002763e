// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package cabi

// OpenSoft needs cgo.
func OpenSoft(SoftSettings) (ABI, error) { return nil, ErrNoCgo }

// OpenVendor needs cgo.
func OpenVendor(directory string) (ABI, string, error) { return nil, "", ErrNoCgo }
