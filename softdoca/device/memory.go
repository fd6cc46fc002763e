//go:build cgo

package device

// #include "memory.h"
import "C"

import "unsafe"

// MemoryAlloc maps length bytes of zeroed memory that can be exported to another process. This and the following
// functions are safe for concurrent use.
func MemoryAlloc(length int) (unsafe.Pointer, error) {
	memory, err := C.memory_alloc(C.size_t(length))
	return allocated(memory, err)
}

// MemoryAllocPrivate maps length bytes of zeroed memory that is private to this process, in huge pages if possible.
func MemoryAllocPrivate(length int) (unsafe.Pointer, error) {
	memory, err := C.memory_alloc_private(C.size_t(length))
	return allocated(memory, err)
}

// MemoryMapFile maps the first length bytes of the file fd as shared memory; fd stays the caller's.
func MemoryMapFile(fd uintptr, length int, writable bool) (unsafe.Pointer, error) {
	memory, err := C.memory_map_file(C.int(fd), C.size_t(length), C.bool(writable))
	return allocated(memory, err)
}

// allocated returns err only without memory, because errno may also be set by a call that succeeds.
func allocated(memory unsafe.Pointer, err error) (unsafe.Pointer, error) {
	if memory == nil {
		return nil, err
	}
	return memory, nil
}

// MemoryFree unmaps what one of the others has mapped, with the same length.
func MemoryFree(memory unsafe.Pointer, length int) { C.memory_free(memory, C.size_t(length)) }
