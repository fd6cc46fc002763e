//go:build ucx && cgo

package ucx

/*
#cgo linux LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "binding.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// The Go declarations of structures that both languages use must have the sizes of C's, and of statuses their values.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(event{})-unsafe.Sizeof(C.struct_ucx_event{})]
	_ = [1]struct{}{}[statusBusy-C.UCS_ERR_BUSY]
	_ = [1]struct{}{}[statusQueueFull-C.UCX_QUEUE_FULL]
	_ = [1]struct{}{}[StatusNoResource-C.UCS_ERR_NO_RESOURCE]
	_ = [1]struct{}{}[StatusNoMemory-C.UCS_ERR_NO_MEMORY]
	_ = [1]struct{}{}[StatusNoDevice-C.UCS_ERR_NO_DEVICE]
)

// native implements abi over libucp.
type native struct{ ucp *C.struct_ucp_library }

var _ abi = native{}

// loadLibrary loads UCX from a file, or from a name on the loader's search path.
func loadLibrary(file string) (abi, error) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	var reason [1024]C.char
	ucp := C.library_open(name, &reason[0], C.size_t(len(reason)))
	if ucp == nil {
		return nil, fmt.Errorf("%w: %s (install UCX %d.%d or later: package libucx0 or ucx)", ErrUnavailable,
			C.GoString(&reason[0]), C.UCP_API_MAJOR, C.UCP_API_MINOR)
	}
	return native{ucp}, nil
}

func (n native) version() string { return C.GoString(C.library_version(n.ucp)) }

func (n native) statusText(s Status) string { return C.GoString(C.status_text(n.ucp, C.int(s))) }

func asContext(c contextHandle) *C.struct_ucx_context    { return (*C.struct_ucx_context)(c) }
func asMemory(m memoryHandle) *C.struct_ucx_memory       { return (*C.struct_ucx_memory)(m) }
func asWorker(w workerHandle) *C.struct_ucx_worker       { return (*C.struct_ucx_worker)(w) }
func asEndpoint(e endpointHandle) *C.struct_ucx_endpoint { return (*C.struct_ucx_endpoint)(e) }

// taken returns text that C has allocated, and frees it.
func taken(text *C.char) string {
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

func (n native) contextOpen(options []byte, reads bool) (contextHandle, Status) {
	features := C.uint64_t(C.UCP_FEATURE_WAKEUP | C.UCP_FEATURE_AM)
	if reads {
		features = C.UCP_FEATURE_WAKEUP | C.UCP_FEATURE_RMA
	}
	o := C.ucx_context_open(n.ucp, (*C.char)(unsafe.Pointer(unsafe.SliceData(options))), features)
	return contextHandle(o.object), Status(o.status)
}

func (n native) contextClose(c contextHandle) { C.ucx_context_close(asContext(c)) }

func (n native) contextDescribe(c contextHandle) string {
	return taken(C.ucx_context_describe(asContext(c)))
}

func (n native) memoryMap(
	c contextHandle, address unsafe.Pointer, length uint64, access Access,
) (memoryHandle, Status) {
	o := C.ucx_memory_map(asContext(c), address, C.uint64_t(length), C.uint32_t(access))
	return memoryHandle(o.object), Status(o.status)
}

func (n native) memoryAddress(m memoryHandle) unsafe.Pointer { return asMemory(m).address }

func (n native) memoryAbandoned(m memoryHandle) bool { return asMemory(m).abandoned != 0 }

func (n native) memoryUnmap(c contextHandle, m memoryHandle) Status {
	return Status(C.ucx_memory_unmap(asContext(c), asMemory(m)))
}

func (n native) memoryPack(c contextHandle, m memoryHandle) ([]byte, Status) {
	packed := C.pack_memory(asContext(c), asMemory(m))
	if packed.status != C.UCS_OK {
		return nil, Status(packed.status)
	}
	defer C.free_key(n.ucp, packed.data)
	return C.GoBytes(packed.data, C.int(packed.length)), StatusOK
}

func (n native) workerOpen(c contextHandle, depth int) (workerHandle, Status) {
	o := C.ucx_worker_open(asContext(c), C.uint32_t(depth))
	return workerHandle(o.object), Status(o.status)
}

func (n native) workerDescriptor(w workerHandle) int { return int(asWorker(w).descriptor) }

func (n native) workerAddress(w workerHandle) ([]byte, Status) {
	address := C.worker_address(asWorker(w))
	if address.status != C.UCS_OK {
		return nil, Status(address.status)
	}
	defer C.free_address(asWorker(w), address.data)
	return C.GoBytes(address.data, C.int(address.length)), StatusOK
}

func (n native) workerPoll(w workerHandle, into []event) int {
	first := (*C.struct_ucx_event)(unsafe.Pointer(unsafe.SliceData(into)))
	return int(C.ucx_worker_poll(asWorker(w), first, C.uint32_t(len(into))))
}

func (n native) workerUnfinished(w workerHandle) bool { return asWorker(w).unfinished != 0 }

func (n native) workerArm(w workerHandle) Status { return Status(C.arm_worker(asWorker(w))) }

func (n native) workerSignal(w workerHandle) Status { return Status(C.signal_worker(asWorker(w))) }

func (n native) workerInflight(w workerHandle) int { return int(asWorker(w).inflight) }

func (n native) workerReceive(w workerHandle, s slots) Status {
	return Status(C.ucx_worker_receive(asWorker(w), C.struct_ucx_slots{
		memory: asMemory(s.memory), address: (*C.uint8_t)(s.address), size: C.uint64_t(s.size),
		token: C.uint64_t(s.token), first: C.uint32_t(s.first), step: C.uint32_t(s.step), count: C.uint32_t(s.count),
	}))
}

func (n native) workerPost(w workerHandle, slot uint32) Status {
	return Status(C.ucx_worker_post(asWorker(w), C.uint32_t(slot)))
}

func (n native) workerClose(w workerHandle) Status { return Status(C.ucx_worker_close(asWorker(w))) }

func (n native) endpointOpen(w workerHandle, address []byte, tag uint64) (endpointHandle, Status) {
	o := C.ucx_endpoint_open(asWorker(w), unsafe.Pointer(unsafe.SliceData(address)), C.uint64_t(tag))
	return endpointHandle(o.object), Status(o.status)
}

func (n native) endpointDescribe(e endpointHandle) string {
	return taken(C.ucx_endpoint_describe(asEndpoint(e)))
}

func (n native) endpointKey(e endpointHandle, packed []byte) (keyHandle, Status) {
	o := C.unpack_key(asEndpoint(e), unsafe.Pointer(unsafe.SliceData(packed)))
	return keyHandle(o.object), Status(o.status)
}

func asTransfer(t transfer) C.struct_ucx_transfer {
	return C.struct_ucx_transfer{
		memory: asMemory(t.memory), address: t.address, length: C.uint64_t(t.length), tag: C.uint64_t(t.tag),
	}
}

func (n native) endpointGet(e endpointHandle, t transfer, address uint64, key keyHandle) Status {
	return Status(C.ucx_endpoint_get(asEndpoint(e), asTransfer(t), C.uint64_t(address), C.ucp_rkey_h(key)))
}

func (n native) endpointSend(e endpointHandle, t transfer, token uint64, slot uint32) Status {
	return Status(C.ucx_endpoint_send(asEndpoint(e), asTransfer(t), C.uint64_t(token), C.uint32_t(slot)))
}

func (n native) endpointClose(e endpointHandle, force bool) Status {
	flag := C.int(0)
	if force {
		flag = 1
	}
	return Status(C.ucx_endpoint_close(asEndpoint(e), flag))
}

func (n native) endpointClosed(e endpointHandle) bool {
	return C.ucx_endpoint_advance(asEndpoint(e)) != 0
}

func (n native) keyMap(key keyHandle, address uint64) (unsafe.Pointer, Status) {
	o := C.map_key(n.ucp, C.ucp_rkey_h(key), C.uint64_t(address))
	return o.object, Status(o.status)
}

func (n native) keyClose(key keyHandle) { C.close_key(n.ucp, C.ucp_rkey_h(key)) }
