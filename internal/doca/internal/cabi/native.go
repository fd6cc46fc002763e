// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package cabi

/*
#cgo linux LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "calls.h"
#include "channel.h"
#include "engine.h"
#include "memory.h"
#include "soft.h"
#include "vendor.h"
*/
import "C"

import (
	"errors"
	"strings"
	"unsafe"
)

// The Go declarations of what both languages read and write must have C's sizes.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Copy{})-unsafe.Sizeof(C.struct_engine_copy{})]
	_ = [1]struct{}{}[unsafe.Sizeof(Completion{})-unsafe.Sizeof(C.struct_engine_completion{})]
	_ = [1]struct{}{}[unsafe.Sizeof(Event{})-unsafe.Sizeof(C.struct_channel_event{})]
)

// native is a filled table of DOCA functions and the way to be rid of it.
type native struct {
	ops    *C.struct_doca_ops
	detail func() string // what the provider knows beyond the code of the last failure on this thread
	close  func()
}

var _ ABI = (*native)(nil)

// OpenSoft opens the software device. dir is its runtime directory and limits its "name=value,..." settings; empty
// strings take the environment's values or the defaults.
func OpenSoft(dir, limits string) (ABI, error) {
	cDir, freeDir := optionalString(dir)
	defer freeDir()
	cLimits, freeLimits := optionalString(limits)
	defer freeLimits()
	var text [512]C.char
	if C.soft_configure(cDir, cLimits, &text[0], C.size_t(len(text))) != C.DOCA_SUCCESS {
		return nil, errors.New(C.GoString(&text[0]))
	}
	detail := func() string { return C.GoString(C.soft_last_detail()) }
	return &native{ops: C.soft_ops(), detail: detail, close: func() {}}, nil
}

// OpenVendor loads DOCA's libraries from directory, or from where they are usually installed if it is empty, and says
// from where. Its failure is a *LoadError.
func OpenVendor(directory string) (ABI, string, error) {
	cDir, freeDir := optionalString(directory)
	defer freeDir()
	var text, tried [4096]C.char
	vendor := C.vendor_open(cDir, &text[0], C.size_t(len(text)), &tried[0], C.size_t(len(tried)))
	if vendor == nil {
		return nil, "", &LoadError{Reason: C.GoString(&text[0]), Tried: lines(C.GoString(&tried[0]))}
	}
	noDetail := func() string { return "" }
	abi := &native{ops: &vendor.ops, detail: noDetail, close: func() { C.vendor_close(vendor) }}
	return abi, C.GoString(&vendor.directory[0]), nil
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

func optionalString(s string) (*C.char, func()) {
	if s == "" {
		return nil, func() {}
	}
	c := C.CString(s)
	return c, func() { C.free(unsafe.Pointer(c)) }
}

func (n *native) Close() { n.close() }

func (n *native) LastDetail() string { return n.detail() }

// check turns a status into an error that names the DOCA function.
func (n *native) check(op string, status C.doca_error_t) error {
	if status == C.DOCA_SUCCESS {
		return nil
	}
	return &Error{Op: op, Code: Status(status), Detail: n.detail()}
}

// outcome does the same for the C parts that call several DOCA functions. In progress is success there.
func (n *native) outcome(o C.struct_outcome) error {
	if o.status == C.DOCA_SUCCESS || o.status == C.DOCA_ERROR_IN_PROGRESS {
		return nil
	}
	return n.check(C.GoString(o.op), o.status)
}

func (n *native) Version() string {
	if !C.has_doca_version_runtime(n.ops) {
		return "unknown"
	}
	return C.GoString(C.call_doca_version_runtime(n.ops))
}
