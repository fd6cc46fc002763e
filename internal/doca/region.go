package doca

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Access is the set of permitted accesses to registered memory. Source: doca_access_flag.
type Access = cabi.Access

// The accesses that a copy needs. Local reading is always permitted.
const (
	LocalRead    = cabi.LocalReadOnly  // this side's engine reads it
	LocalWrite   = cabi.LocalReadWrite // this side's engine writes it
	RemoteRead   = cabi.PCIReadOnly    // the other side's engine reads it
	RemoteWrite  = cabi.PCIReadWrite   // the other side's engine writes it
	regionLimit  = 1 << 46             // bytes; less than any user address space
	unmappedText = "memory of %d bytes cannot be mapped: %w"
)

// Memory is the source or target of a copy: a Region of this process or a Remote of another.
type Memory interface {
	// Len returns the size in bytes.
	Len() int64
	mapping() (mmap cabi.Mmap, base uint64)
}

// Region is registered memory of this process: page-aligned, never Go heap, and not shared unless the other side may
// access it. It is safe for concurrent use, except that the caller must synchronize access to the bytes.
type Region struct {
	device *Device
	memory cabi.Memory
	length int
	mmap   cabi.Mmap
}

// Alloc registers length bytes of new, zeroed memory, in huge pages if possible and if the other side has no access.
// length is 1 to 2^46. Implements: doca_mmap_create, doca_mmap_start.
func (d *Device) Alloc(length int64, access Access) (*Region, error) {
	return d.register(length, access, func() (cabi.Memory, error) {
		if access&(RemoteRead|RemoteWrite) == 0 {
			return d.abi.MemoryAllocPrivate(int(length))
		}
		return d.abi.MemoryAlloc(int(length))
	})
}

// MapFile registers the first length bytes of file as a shared mapping. The file may be closed afterwards; if it
// shrinks, copies fail with CodeIOFailed. A driver may refuse to pin such memory: CodeDriver, CodeNotSupported or
// CodeNoMemory.
func (d *Device) MapFile(file *os.File, length int64, access Access) (*Region, error) {
	writable := access&(LocalWrite|RemoteWrite) != 0
	return d.register(length, access, func() (cabi.Memory, error) {
		return d.abi.MemoryMapFile(file.Fd(), int(length), writable)
	})
}

func (d *Device) register(length int64, access Access, allocate func() (cabi.Memory, error)) (*Region, error) {
	if d.dev == nil {
		return nil, ErrClosed
	}
	if length < 1 || length > regionLimit {
		return nil, fmt.Errorf(unmappedText, length, CodeInvalidValue)
	}
	memory, err := allocate()
	if err != nil {
		return nil, fmt.Errorf(unmappedText, length, err)
	}
	mmap, err := d.abi.MmapRegister(d.dev, memory, int(length), access)
	if err != nil {
		d.abi.MemoryFree(memory, int(length))
		return nil, err
	}
	region := &Region{device: d, memory: memory, length: int(length), mmap: mmap}
	trackOpen(region)
	return region, nil
}

// Len returns the size in bytes.
func (r *Region) Len() int64 { return int64(r.length) }

// Address returns the address of the memory in this process, by which the other side addresses it.
func (r *Region) Address() uint64 { return uint64(uintptr(r.memory)) }

// Bytes returns the memory. It must not be accessed after Close, nor while a copy uses it. Accessing a mapped file that
// has shrunk raises SIGBUS: use file calls for those.
func (r *Region) Bytes() []byte { return unsafe.Slice((*byte)(r.memory), r.length) }

func (r *Region) mapping() (cabi.Mmap, uint64) { return r.mmap, r.Address() }

// Export returns the descriptor by which the other side accesses the memory. It is a secret: until Close, a process
// that has it, on the right device, has the access with which the Region was registered. Implements:
// doca_mmap_export_pci.
func (r *Region) Export() ([]byte, error) {
	if r.mmap == nil {
		return nil, ErrClosed
	}
	return r.device.abi.MmapExport(r.mmap, r.device.dev)
}

// Close ends the registration, which revokes all exports, and then frees the memory. CodeNotPermitted while a copy uses
// it; then nothing is freed. Implements: doca_mmap_destroy.
func (r *Region) Close() error {
	if r.mmap == nil {
		return nil
	}
	if err := r.device.abi.MmapDestroy(r.mmap); err != nil {
		return err
	}
	r.device.abi.MemoryFree(r.memory, r.length)
	r.mmap = nil
	trackClose(r)
	return nil
}

// Remote is memory of the other side, known by its export descriptor. It can only be copied from and to. It is safe for
// concurrent use.
type Remote struct {
	device *Device
	mmap   cabi.Mmap
	base   uint64
	length uint64
}

// Import opens the length bytes at address in the exporter's process, to which the descriptor gives access. All three
// come from the peer and may be invalid: CodeInvalidValue or CodeDriver for an invalid descriptor, or a range that it
// does not cover. Implements: doca_mmap_create_from_export.
func (d *Device) Import(descriptor []byte, address uint64, length int64) (*Remote, error) {
	if d.dev == nil {
		return nil, ErrClosed
	}
	mmap, err := d.abi.MmapImport(descriptor, d.dev)
	if err != nil {
		return nil, err
	}
	if err := d.checkCovered(mmap, address, length); err != nil {
		_ = d.abi.MmapDestroy(mmap)
		return nil, err
	}
	remote := &Remote{device: d, mmap: mmap, base: address, length: uint64(length)}
	trackOpen(remote)
	return remote, nil
}

// checkCovered detects an invalid range before the first copy does. If the driver does not report the range of an
// import, the device checks each copy.
func (d *Device) checkCovered(mmap cabi.Mmap, address uint64, length int64) error {
	base, size, err := d.abi.MmapRange(mmap)
	if err != nil {
		return nil
	}
	if length < 1 || address < base || address-base > size || uint64(length) > size-(address-base) {
		return &Error{Op: "doca_mmap_create_from_export", Code: CodeInvalidValue,
			Detail: "the exported memory does not cover the announced range"}
	}
	return nil
}

// Len returns the size in bytes.
func (r *Remote) Len() int64 { return int64(r.length) }

// Address returns the address of the memory in the exporter's process.
func (r *Remote) Address() uint64 { return r.base }

func (r *Remote) mapping() (cabi.Mmap, uint64) { return r.mmap, r.base }

// Close ends the import. CodeNotPermitted while a copy uses it. Implements: doca_mmap_destroy.
func (r *Remote) Close() error {
	if r.mmap == nil {
		return nil
	}
	if err := r.device.abi.MmapDestroy(r.mmap); err != nil {
		return err
	}
	r.mmap = nil
	trackClose(r)
	return nil
}
