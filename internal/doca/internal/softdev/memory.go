//go:build cgo

package softdev

// #include "memory.h"
import "C"

import "unsafe"

// MemoryAlloc maps length bytes of zeroed memory that another process can be given access to. Any goroutine may call
// this and the three below.
func MemoryAlloc(length int) (unsafe.Pointer, error) {
	memory, err := C.memory_alloc(C.size_t(length))
	return allocated(memory, err)
}

// MemoryAllocPrivate maps length bytes of zeroed memory of this process alone, in huge pages where there are any.
func MemoryAllocPrivate(length int) (unsafe.Pointer, error) {
	memory, err := C.memory_alloc_private(C.size_t(length))
	return allocated(memory, err)
}

// MemoryMapFile maps the first length bytes of the file fd, which stays the caller's, shared.
func MemoryMapFile(fd uintptr, length int, writable bool) (unsafe.Pointer, error) {
	memory, err := C.memory_map_file(C.int(fd), C.size_t(length), C.bool(writable))
	return allocated(memory, err)
}

// errno may be set although the call has succeeded.
func allocated(memory unsafe.Pointer, err error) (unsafe.Pointer, error) {
	if memory == nil {
		return nil, err
	}
	return memory, nil
}

// MemoryFree undoes any of the others; length is theirs.
func MemoryFree(memory unsafe.Pointer, length int) { C.memory_free(memory, C.size_t(length)) }
