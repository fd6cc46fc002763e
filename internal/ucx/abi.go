package ucx

import "unsafe"

// Handles of the C objects behind this package's types.
type (
	contextHandle  unsafe.Pointer
	memoryHandle   unsafe.Pointer
	workerHandle   unsafe.Pointer
	endpointHandle unsafe.Pointer
	keyHandle      unsafe.Pointer
)

// option is a name and a value of UCX's configuration, without the prefix UCX_.
type option struct{ name, value string }

// event is struct ucx_event of worker.h.
type event struct {
	tag    uint64
	length uint64
	status int32
	kind   uint32
}

// transfer is what Get and Send have in common: length bytes at offset of registered memory, and the tag of the
// completion.
type transfer struct {
	memory  memoryHandle
	address unsafe.Pointer
	length  uint64
	tag     uint64
}

// slots is struct ucx_slots of worker.h.
type slots struct {
	memory  memoryHandle
	address unsafe.Pointer
	size    uint64
	token   uint64
	first   uint32
	step    uint32
	count   uint32
}

// abi is libucp behind the C of this package. Only what is called poll and what is given to it is used by one goroutine
// at a time; statuses are UCX's, and 0 is success.
type abi interface {
	version() string
	statusText(Status) string

	contextOpen(options []byte, reads bool) (contextHandle, Status)
	contextClose(contextHandle)
	contextDescribe(contextHandle) string

	memoryMap(c contextHandle, address unsafe.Pointer, length uint64, access Access) (memoryHandle, Status)
	memoryAddress(memoryHandle) unsafe.Pointer
	memoryAbandoned(memoryHandle) bool
	memoryUnmap(contextHandle, memoryHandle) Status
	memoryPack(contextHandle, memoryHandle) ([]byte, Status)

	workerOpen(c contextHandle, depth int) (workerHandle, Status)
	workerDescriptor(workerHandle) int
	workerAddress(workerHandle) ([]byte, Status)
	workerPoll(w workerHandle, into []event) int
	workerUnfinished(workerHandle) bool // the last poll has ended before there was nothing left to do
	workerArm(workerHandle) Status      // busy: there may be events; poll
	workerSignal(workerHandle) Status
	workerInflight(workerHandle) int
	workerReceive(w workerHandle, s slots) Status
	workerPost(w workerHandle, slot uint32) Status
	workerClose(workerHandle) Status

	endpointOpen(w workerHandle, address []byte, tag uint64) (endpointHandle, Status)
	endpointDescribe(endpointHandle) string
	endpointKey(endpointHandle, []byte) (keyHandle, Status)
	endpointGet(e endpointHandle, t transfer, address uint64, key keyHandle) Status
	endpointSend(e endpointHandle, t transfer, token uint64, slot uint32) Status
	endpointClose(e endpointHandle, force bool) Status
	endpointClosed(endpointHandle) bool
	keyMap(k keyHandle, address uint64) (unsafe.Pointer, Status)
	keyClose(keyHandle)
}
