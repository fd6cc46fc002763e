//go:build cgo

package cabi

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/dma-copy/dma-copy/softdoca/device"
)

func mmap(m Mmap) *C.struct_doca_mmap { return (*C.struct_doca_mmap)(m) }

func (n *native) MemoryAlloc(length int) (Memory, error) {
	memory, err := device.MemoryAlloc(length)
	return Memory(memory), err
}

func (n *native) MemoryAllocPrivate(length int) (Memory, error) {
	memory, err := device.MemoryAllocPrivate(length)
	return Memory(memory), err
}

func (n *native) MemoryMapFile(fd uintptr, length int, writable bool) (Memory, error) {
	memory, err := device.MemoryMapFile(fd, length, writable)
	return Memory(memory), err
}

func (n *native) MemoryFree(memory Memory, length int) {
	device.MemoryFree(unsafe.Pointer(memory), length)
}

func (n *native) MmapRegister(d Dev, memory Memory, length int, access Access) (Mmap, error) {
	var m *C.struct_doca_mmap
	if err := n.check("doca_mmap_create", C.call_doca_mmap_create(n.ops, &m)); err != nil {
		return nil, err
	}
	n.clearDetail()
	if err := n.setUpMmap(m, dev(d), memory, length, access); err != nil {
		err = n.explain(err)
		C.call_doca_mmap_destroy(n.ops, m)
		return nil, err
	}
	return Mmap(m), nil
}

func (n *native) setUpMmap(
	m *C.struct_doca_mmap, d *C.struct_doca_dev, memory Memory, length int, access Access,
) error {
	status := C.call_doca_mmap_set_memrange(n.ops, m, unsafe.Pointer(memory), C.size_t(length))
	if err := n.check("doca_mmap_set_memrange", status); err != nil {
		return err
	}
	if err := n.check("doca_mmap_add_dev", C.call_doca_mmap_add_dev(n.ops, m, d)); err != nil {
		return err
	}
	status = C.call_doca_mmap_set_permissions(n.ops, m, C.uint32_t(access))
	if err := n.check("doca_mmap_set_permissions", status); err != nil {
		return err
	}
	return n.check("doca_mmap_start", C.call_doca_mmap_start(n.ops, m))
}

func (n *native) MmapExport(m Mmap, d Dev) ([]byte, error) {
	var descriptor unsafe.Pointer
	var length C.size_t
	n.clearDetail()
	status := C.call_doca_mmap_export_pci(n.ops, mmap(m), dev(d), &descriptor, &length)
	if err := n.check("doca_mmap_export_pci", status); err != nil {
		return nil, n.explain(err)
	}
	return C.GoBytes(descriptor, C.int(length)), nil
}

func (n *native) MmapImport(descriptor []byte, d Dev) (Mmap, error) {
	var m *C.struct_doca_mmap
	bytes := unsafe.Pointer(unsafe.SliceData(descriptor))
	n.clearDetail()
	status := C.call_doca_mmap_create_from_export(n.ops, nil, bytes, C.size_t(len(descriptor)), dev(d), &m)
	return Mmap(m), n.explain(n.check("doca_mmap_create_from_export", status))
}

func (n *native) MmapRange(m Mmap) (addr, length uint64, err error) {
	var start unsafe.Pointer
	var size C.size_t
	err = n.check("doca_mmap_get_memrange", C.call_doca_mmap_get_memrange(n.ops, mmap(m), &start, &size))
	return uint64(uintptr(start)), uint64(size), err
}

func (n *native) MmapDestroy(m Mmap) error {
	return n.check("doca_mmap_destroy", C.call_doca_mmap_destroy(n.ops, mmap(m)))
}
