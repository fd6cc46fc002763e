//go:build cgo

package device

/*
#cgo CFLAGS: -I${SRCDIR}/../abi
#cgo linux LDFLAGS: -lpthread
#include <stdlib.h>
#include "comch_wire.h"
#include "soft.h"
*/
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"

	_ "github.com/dma-copy/dma-copy/softdoca/abi" // its headers
)

// Configure configures the software device of this process and returns a doca_error_t. If that is not DOCA_SUCCESS,
// nothing has changed and reason is one sentence. It is safe for concurrent use.
func Configure(settings Settings) (code int32, reason string) {
	var free []func()
	text := func(s string) *C.char {
		c, release := optionalString(s)
		free = append(free, release)
		return c
	}
	c := C.struct_soft_settings{
		dir: text(settings.Dir), limits: text(settings.Limits), quirks: text(settings.Quirks),
		faults: text(settings.Faults), functions: text(settings.Functions),
	}
	defer func() {
		for _, release := range free {
			release()
		}
	}()
	var sentence [512]C.char
	if code := C.soft_configure_all(&c, &sentence[0], C.size_t(len(sentence))); code != C.DOCA_SUCCESS {
		return int32(code), C.GoString(&sentence[0])
	}
	return C.DOCA_SUCCESS, ""
}

// Ops returns the device as configured so far: a const struct doca_ops * (ops.h). It is safe for concurrent use.
func Ops() unsafe.Pointer { return unsafe.Pointer(C.soft_ops()) }

// Directory returns the runtime directory that Configure would use for dir, without accessing it.
func Directory(dir string) (string, error) {
	cDir, freeDir := optionalString(dir)
	defer freeDir()
	var path [C.PATH_MAX]C.char
	if !C.soft_choose_dir(cDir, &path[0]) {
		return "", fmt.Errorf("runtime directory: %w", syscall.ENAMETOOLONG)
	}
	return C.GoString(&path[0]), nil
}

// TrustsUser reports whether the software device accepts a process of this user as a peer, according to
// DMA_COPY_SOFT_USERS.
func TrustsUser(uid uint32) bool { return bool(C.soft_would_trust_user(C.uint32_t(uid))) }

// FunctionKey returns the name that a function has in the names of sockets: its PCI address, or of an SF, which shares
// its PF's address, another text of the same length. The function is named by its PCI address in the long form, its
// RDMA or network device, or the VUID or network device of its representor. It returns "" if there is none.
func FunctionKey(name string) string {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.GoString(C.soft_comch_key(text))
}

// ServerFile returns the name, in the runtime directory, of the socket of the Comch server called name that a device
// offers to a host function. Both are given by their FunctionKey.
func ServerFile(hostFunction, device, name string) string {
	texts := [...]*C.char{C.CString(hostFunction), C.CString(device), C.CString(name)}
	var address C.struct_soft_comch_address
	C.soft_comch_address_make(&address, texts[0], texts[1], texts[2])
	for _, text := range texts {
		C.free(unsafe.Pointer(text))
	}
	return C.GoString(&address.file[0])
}

// Model returns the time model in force, in one line; empty without one. movesBytes reports whether tasks copy their
// bytes.
func Model() (text string, movesBytes bool) {
	var line [256]C.char
	moves := C.soft_describe_model(&line[0], C.size_t(len(line)))
	return C.GoString(&line[0]), bool(moves)
}

// LastDetail returns why the last call of this process failed, in one sentence; empty if its code says it all.
func LastDetail() string {
	var text [512]C.char
	C.soft_copy_last_detail(&text[0], C.size_t(len(text)))
	return C.GoString(&text[0])
}

// ClearDetail clears the detail, so that one found after the next failure belongs to it.
func ClearDetail() { C.soft_clear_detail() }

// ClientRefusal returns the doca_error_t with which the last server refused this struct doca_comch_client * since its
// start; DOCA_SUCCESS if none did. It must be called on the client's thread.
func ClientRefusal(client unsafe.Pointer) int32 {
	return int32(C.soft_comch_client_refusal((*C.struct_doca_comch_client)(client)))
}

func optionalString(s string) (*C.char, func()) {
	if s == "" {
		return nil, func() {}
	}
	c := C.CString(s)
	return c, func() { C.free(unsafe.Pointer(c)) }
}
