//go:build cgo

package cabi

/*
#cgo CFLAGS: -I${SRCDIR}/../../../../softdoca/abi
#cgo linux LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "calls.h"
#include "channel.h"
#include "engine.h"
#include "port.h"
#include "vendor.h"
*/
import "C"

import (
	"unsafe"

	_ "github.com/dma-copy/dma-copy/softdoca/abi" // its headers
	"github.com/dma-copy/dma-copy/softdoca/device"
)

// The Go declarations of structures that both languages use must have the sizes of C's, and a Progress is where the
// object begins.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_engine{}.progress)]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_channel{}.progress)]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_port{}.progress)]
	_ = [1]struct{}{}[unsafe.Sizeof(Copy{})-unsafe.Sizeof(C.struct_engine_copy{})]
	_ = [1]struct{}{}[unsafe.Sizeof(Completion{})-unsafe.Sizeof(C.struct_engine_completion{})]
	_ = [1]struct{}{}[unsafe.Sizeof(Event{})-unsafe.Sizeof(C.struct_channel_event{})]
	_ = [1]struct{}{}[unsafe.Sizeof(PortTask{})-unsafe.Sizeof(C.struct_port_task{})]
	_ = [1]struct{}{}[unsafe.Sizeof(PortCompletion{})-unsafe.Sizeof(C.struct_port_completion{})]
)

// native implements ABI over a table of DOCA functions.
type native struct {
	ops         *C.struct_doca_ops
	libraries   []string
	soname      string
	hardware    bool
	detail      func() string // the provider's explanation of the last failure beyond its code
	clearDetail func()        // clears it
	refusal     func(*C.struct_doca_comch_client) Status
	model       func() (text string, movesBytes bool)
	close       func()
}

var _ ABI = (*native)(nil)

// OpenSoft opens the software device.
func OpenSoft(settings device.Settings) (ABI, error) {
	if code, reason := device.Configure(settings); code != C.DOCA_SUCCESS {
		return nil, &Error{Op: "soft_configure_all", Code: Status(code), Detail: reason}
	}
	refusal := func(c *C.struct_doca_comch_client) Status { return Status(device.ClientRefusal(unsafe.Pointer(c))) }
	return &native{
		ops: (*C.struct_doca_ops)(device.Ops()), model: device.Model, refusal: refusal,
		detail: device.LastDetail, clearDetail: device.ClearDetail, close: func() {},
	}, nil
}

// OpenVendor loads DOCA's libraries from directory, or from the usual directories if it is empty, and returns the
// directory used. Its error is a *LoadError.
func OpenVendor(directory string) (ABI, string, error) {
	cDir, freeDir := optionalString(directory)
	defer freeDir()
	var text [4096]C.char
	vendor := C.vendor_open(cDir, &text[0], C.size_t(len(text)))
	if vendor == nil {
		return nil, "", &LoadError{Reason: C.GoString(&text[0])}
	}
	noDetail := func() string { return "" }
	noRefusal := func(*C.struct_doca_comch_client) Status { return Success }
	model := func() (string, bool) {
		var line [256]C.char
		moves := C.vendor_describe_model(vendor, &line[0], C.size_t(len(line)))
		return C.GoString(&line[0]), bool(moves)
	}
	return &native{
		ops: &vendor.ops, libraries: libraryFiles(vendor), soname: "libdoca_common" + C.GoString(&vendor.suffix[0]),
		hardware: !bool(vendor.stand_in), model: model,
		detail: noDetail, clearDetail: func() {}, refusal: noRefusal, close: func() { C.vendor_close(vendor) },
	}, C.GoString(&vendor.directory[0]), nil
}

func libraryFiles(vendor *C.struct_vendor) []string {
	var files []string
	for i := range vendor.files {
		if file := C.GoString(&vendor.files[i][0]); file != "" {
			files = append(files, file)
		}
	}
	return files
}

func optionalString(s string) (*C.char, func()) {
	if s == "" {
		return nil, func() {}
	}
	c := C.CString(s)
	return c, func() { C.free(unsafe.Pointer(c)) }
}

func (n *native) Close() { n.close() }

func (n *native) Hardware() bool { return n.hardware }

func (n *native) TimeModel() (text string, movesBytes bool) { return n.model() }

func (n *native) LastDetail() string { return n.detail() }

// check returns nil, or an error that names the DOCA function.
func (n *native) check(op string, status C.doca_error_t) error {
	if status == C.DOCA_SUCCESS {
		return nil
	}
	return &Error{Op: op, Code: Status(status)}
}

// explain adds the provider's explanation to the error of a call. It is used, with clearDetail before the call, where a
// call can fail for reasons beyond its arguments.
func (n *native) explain(err error) error {
	if failure, is := err.(*Error); is {
		failure.Detail = n.detail()
	}
	return err
}

// outcome is check for C functions that call several DOCA functions. There, in progress is success.
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

func (n *native) Libraries() []string { return n.libraries }

func (n *native) Soname() string { return n.soname }

func (n *native) LogTo(fd, level int) error {
	if !C.has_doca_log_backend_create_with_fd_sdk(n.ops) || !C.has_doca_log_level_set_global_sdk_limit(n.ops) {
		return nil
	}
	var backend *C.struct_doca_log_backend
	status := C.call_doca_log_backend_create_with_fd_sdk(n.ops, C.int(fd), &backend)
	if err := n.check("doca_log_backend_create_with_fd_sdk", status); err != nil {
		return err
	}
	status = C.call_doca_log_level_set_global_sdk_limit(n.ops, C.uint32_t(level))
	return n.check("doca_log_level_set_global_sdk_limit", status)
}

func progress(p Progress) *C.struct_progress { return (*C.struct_progress)(p) }

func (n *native) Handle(p Progress) int { return int(progress(p).fd) }

func (n *native) Arm(p Progress) error { return n.outcome(C.progress_arm(progress(p))) }

func (n *native) Clear(p Progress) error { return n.outcome(C.progress_clear(progress(p))) }

func (n *native) State(p Progress) ContextState { return ContextState(C.progress_state(progress(p))) }

func (n *native) Stop(p Progress) error { return n.outcome(C.progress_stop(progress(p))) }
