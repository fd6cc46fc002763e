package doca

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Access says what may be done to registered memory, and by whom. Source: doca_access_flag.
type Access = cabi.Access

// What a copy needs. Local reading is always allowed.
const (
	LocalRead    = cabi.LocalReadOnly  // this side's engine reads it
	LocalWrite   = cabi.LocalReadWrite // this side's engine writes it
	RemoteRead   = cabi.PCIReadOnly    // the other side's engine reads it
	RemoteWrite  = cabi.PCIReadWrite   // the other side's engine writes it
	regionLimit  = 1 << 46             // bytes: below any user address space
	unmappedText = "memory of %d bytes cannot be mapped: %w"
)

// Memory is what a copy reads or writes: a Region of this process or a Remote of another.
type Memory interface {
	// Len is the size in bytes.
	Len() int64
	mapping() (mmap cabi.Mmap, base uint64)
}

// Region is memory of this process together with its registration: page-aligned, never Go heap, and shared with
// nobody unless the other side may reach it. Safe for concurrent use; the bytes are as safe as their users make them.
type Region struct {
	device *Device
	memory cabi.Memory
	length int
	mmap   cabi.Mmap
}

// Alloc registers length bytes of new, zeroed memory, in huge pages where the system has them and the other side is not to reach it. length
// is 1 to 2^46. Implements: doca_mmap_create, doca_mmap_start.
func (d *Device) Alloc(length int64, access Access) (*Region, error) {
	if d.dev == nil {
		return nil, ErrClosed
	}
	if length < 1 || length > regionLimit {
		return nil, fmt.Errorf(unmappedText, length, CodeInvalidValue)
	}
	memory, err := d.allocate(int(length), access)
	if err != nil {
		return nil, fmt.Errorf(unmappedText, length, err)
	}
	return d.register(memory, int(length), access)
}

func (d *Device) allocate(length int, access Access) (cabi.Memory, error) {
	if access&(RemoteRead|RemoteWrite) == 0 {
		return d.abi.MemoryAllocPrivate(length)
	}
	return d.abi.MemoryAlloc(length)
}

// MapFile registers the first length bytes of file, mapped and shared. The file may be closed afterwards; if it shrinks,
// copies fail with CodeIOFailed. A real driver may refuse to pin such memory: CodeDriver, CodeNotSupported or
// CodeNoMemory.
func (d *Device) MapFile(file *os.File, length int64, access Access) (*Region, error) {
	if d.dev == nil {
		return nil, ErrClosed
	}
	if length < 1 || length > regionLimit {
		return nil, fmt.Errorf(unmappedText, length, CodeInvalidValue)
	}
	writable := access&(LocalWrite|RemoteWrite) != 0
	memory, err := d.abi.MemoryMapFile(file.Fd(), int(length), writable)
	if err != nil {
		return nil, fmt.Errorf(unmappedText, length, err)
	}
	return d.register(memory, int(length), access)
}

func (d *Device) register(memory cabi.Memory, length int, access Access) (*Region, error) {
	mmap, err := d.abi.MmapRegister(d.dev, memory, length, access)
	if err != nil {
		d.abi.MemoryFree(memory, length)
		return nil, err
	}
	region := &Region{device: d, memory: memory, length: length, mmap: mmap}
	trackOpen(region)
	return region, nil
}

// Len is the size in bytes.
func (r *Region) Len() int64 { return int64(r.length) }

// Address is where the memory lies in this process, which is how the other side addresses it.
func (r *Region) Address() uint64 { return uint64(uintptr(r.memory)) }

// Bytes is the memory. It must not be touched after Close, nor while a copy uses it. Touching a mapped file that has
// shrunk kills the process: use file calls for those.
func (r *Region) Bytes() []byte { return unsafe.Slice((*byte)(r.memory), r.length) }

func (r *Region) mapping() (cabi.Mmap, uint64) { return r.mmap, r.Address() }

// Export returns the descriptor by which the other side reaches the memory. It is a secret: whoever has it, on the right
// device, has the access that the Region was registered with, until Close. Implements: doca_mmap_export_pci.
func (r *Region) Export() ([]byte, error) {
	if r.mmap == nil {
		return nil, ErrClosed
	}
	return r.device.abi.MmapExport(r.mmap, r.device.dev)
}

// Close ends the registration, which revokes every export of it, and then frees the memory. CodeNotPermitted while a copy
// uses it; then nothing is freed. Implements: doca_mmap_destroy.
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

// Remote is memory of the other side, known by its export descriptor. It cannot be touched, only copied from and to.
// Safe for concurrent use.
type Remote struct {
	device *Device
	mmap   cabi.Mmap
	base   uint64
	length uint64
}

// Import opens the length bytes at address in the exporter's process, which the descriptor makes reachable. All three
// are the peer's word and may be anything: CodeInvalidValue or CodeDriver for a descriptor that is not good, or a range
// that it does not cover. Implements: doca_mmap_create_from_export.
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

// checkCovered finds a lie before the first copy does. A driver that does not tell an import's range leaves it to the
// copies, which the device checks one by one.
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

// Len is the size in bytes.
func (r *Remote) Len() int64 { return int64(r.length) }

// Address is where the memory lies in the exporter's process.
func (r *Remote) Address() uint64 { return r.base }

func (r *Remote) mapping() (cabi.Mmap, uint64) { return r.mmap, r.base }

// Close forgets the other side's memory. CodeNotPermitted while a copy uses it. Implements: doca_mmap_destroy.
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
