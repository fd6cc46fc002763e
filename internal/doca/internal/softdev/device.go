//go:build cgo

package softdev

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

	_ "github.com/dma-copy/dma-copy/internal/doca/internal/abi" // its headers
)

// Configure sets up the software device of this process and returns a doca_error_t; where it is not DOCA_SUCCESS,
// nothing has changed, and reason is one sentence. Any goroutine may call.
func Configure(settings Settings) (code int32, reason string) {
	var free []func()
	text := func(s string) *C.char {
		c, release := optionalString(s)
		free = append(free, release)
		return c
	}
	c := C.struct_soft_settings{
		dir: text(settings.Dir), limits: text(settings.Limits), quirks: text(settings.Quirks), faults: text(settings.Faults),
		functions: text(settings.Functions),
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

// Ops is the device as configured so far: a const struct doca_ops *, of ops.h. Any goroutine may call.
func Ops() unsafe.Pointer { return unsafe.Pointer(C.soft_ops()) }

// Directory is the runtime directory that Configure would use for dir; nothing is made or looked at.
func Directory(dir string) (string, error) {
	cDir, freeDir := optionalString(dir)
	defer freeDir()
	var path [C.PATH_MAX]C.char
	if !C.soft_choose_dir(cDir, &path[0]) {
		return "", fmt.Errorf("runtime directory: %w", syscall.ENAMETOOLONG)
	}
	return C.GoString(&path[0]), nil
}

// TrustsUser reports whether the software device takes a process of this user for a peer, as DMA_COPY_SOFT_USERS has
// it.
func TrustsUser(uid uint32) bool { return bool(C.soft_would_trust_user(C.uint32_t(uid))) }

// ServerFile is the name, in the runtime directory, of the socket of the Comch server called name that the device at
// one PCI address offers to the host function at another. Both addresses are in their long form.
func ServerFile(hostFunction, device, name string) string {
	texts := [...]*C.char{C.CString(hostFunction), C.CString(device), C.CString(name)}
	var address C.struct_soft_comch_address
	C.soft_comch_address_make(&address, texts[0], texts[1], texts[2])
	for _, text := range texts {
		C.free(unsafe.Pointer(text))
	}
	return C.GoString(&address.file[0])
}

// Model is the time model in force, in one line; empty without one. movesBytes is false where tasks complete without a
// byte being copied.
func Model() (text string, movesBytes bool) {
	var line [256]C.char
	moves := C.soft_describe_model(&line[0], C.size_t(len(line)))
	return C.GoString(&line[0]), bool(moves)
}

// LastDetail is why the last failure of this process failed, in one sentence; empty if its code says it all.
func LastDetail() string {
	var text [512]C.char
	C.soft_copy_last_detail(&text[0], C.size_t(len(text)))
	return C.GoString(&text[0])
}

// ClearDetail empties what LastDetail returns, so that what is there after the next failure belongs to that.
func ClearDetail() { C.soft_clear_detail() }

// ClientRefusal is the doca_error_t that the last server answered that did not take in this struct doca_comch_client *
// since its start; DOCA_SUCCESS if none did. It is called where the client is used.
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
