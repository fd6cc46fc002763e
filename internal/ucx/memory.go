package ucx

import (
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Access is the set of permitted accesses to registered memory.
type Access uint32

// Accesses. Nobody else ever writes: a sender's window is read by the receiver. UCX 1.13 passes them to the transports,
// some of which ignore them: over shared memory the peer could write to a window, too.
const (
	LocalRead  Access = 1 << iota // this side's Send reads it
	LocalWrite                    // this side's Get writes it, and active messages
	RemoteRead                    // the other side's Get reads it
)

// memoryLimit is in bytes; less than any user address space.
const memoryLimit = 1 << 46

// Memory is registered memory of this process: page-aligned, zeroed, never Go heap.
type Memory struct {
	context *Context
	bytes   []byte
	mapped  bool // by this package, not by UCX

	mu     sync.Mutex
	handle memoryHandle
}

// Alloc registers length bytes of new memory, 1 to 2^46. Implements: ucp_mem_map.
//
// Memory that is read by a peer over shared memory is allocated by UCX, so that the peer maps and reads it without this
// process: other memory would come in messages that this process has to copy.
func (c *Context) Alloc(length int64, access Access) (*Memory, error) {
	if length < 1 || length > memoryLimit {
		return nil, fmt.Errorf("memory of %d bytes: %w", length, ErrInvalid)
	}
	if access&RemoteRead != 0 && c.hasSharedMemory() {
		return c.allocShared(length, access)
	}
	bytes, err := unix.Mmap(-1, 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes cannot be mapped: %w", length, err)
	}
	_ = unix.Madvise(bytes, unix.MADV_HUGEPAGE) // only faster
	m := &Memory{context: c, bytes: bytes, mapped: true}
	if err := m.register(access); err != nil {
		_ = unix.Munmap(bytes)
		return nil, fmt.Errorf("memory of %d bytes cannot be registered: %w", length, err)
	}
	return m, nil
}

func (m *Memory) register(access Access) error {
	c := m.context
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == nil {
		return ErrClosed
	}
	handle, status := c.abi.memoryMap(c.handle, m.at(0), uint64(len(m.bytes)), access)
	m.handle = handle
	return failed(c.abi, "ucp_mem_map", status)
}

// allocShared returns memory of UCX. Implements: ucp_mem_map, ucp_mem_query.
func (c *Context) allocShared(length int64, access Access) (*Memory, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == nil {
		return nil, ErrClosed
	}
	handle, status := c.abi.memoryMap(c.handle, nil, uint64(length), access)
	if status != StatusOK {
		err := failed(c.abi, "ucp_mem_map", status)
		return nil, fmt.Errorf("memory of %d bytes cannot be allocated: %w", length, err)
	}
	m := &Memory{context: c, bytes: unsafe.Slice((*byte)(c.abi.memoryAddress(handle)), length), handle: handle}
	_ = unix.Madvise(m.bytes, unix.MADV_POPULATE_WRITE) // only faster
	clear(m.bytes)                                      // where UCX has taken it from its heap
	return m, nil
}

// Len returns the size in bytes.
func (m *Memory) Len() int64 { return int64(len(m.bytes)) }

// Address returns the address of the memory in this process, by which the other side addresses it.
func (m *Memory) Address() uint64 { return uint64(uintptr(m.at(0))) }

// Bytes returns the memory. It must not be accessed after Close, nor while an operation uses it.
func (m *Memory) Bytes() []byte { return m.bytes }

func (m *Memory) at(offset int64) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.bytes)), offset)
}

// RemoteKey returns the packed key by which the other side reads the memory. It is a secret until Close. Implements:
// ucp_rkey_pack.
func (m *Memory) RemoteKey() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == nil {
		return nil, ErrClosed
	}
	m.context.mu.Lock()
	defer m.context.mu.Unlock()
	key, status := m.context.abi.memoryPack(m.context.handle, m.handle)
	return key, failed(m.context.abi, "ucp_rkey_pack", status)
}

// Close ends the registration, which revokes all keys, and then frees the memory. The operations that use it must have
// ended, and the workers with slots in it be closed: ErrStillRunning, and nothing is freed. Implements: ucp_mem_unmap.
//
// Over shared memory the peer reads and writes by address, without a registration, and does not learn that this side
// has given up. Where it may do so later, the memory is freed but its addresses are never used again.
func (m *Memory) Close() error {
	shared := m.context.hasSharedMemory()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == nil {
		return nil
	}
	m.context.mu.Lock()
	defer m.context.mu.Unlock()
	reserve := shared && m.context.abi.memoryAbandoned(m.handle)
	switch status := m.context.abi.memoryUnmap(m.context.handle, m.handle); status {
	case StatusOK:
	case statusBusy:
		return fmt.Errorf("memory of %d bytes: %w", m.Len(), ErrStillRunning)
	default:
		return failed(m.context.abi, "ucp_mem_unmap", status)
	}
	m.handle = nil
	switch {
	case !m.mapped:
		return nil
	case reserve:
		return m.reserve()
	}
	return unix.Munmap(m.bytes)
}

// reserve frees the memory, and keeps everything else from its addresses.
func (m *Memory) reserve() error {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_FIXED
	if _, err := unix.MmapPtr(-1, 0, m.at(0), uintptr(len(m.bytes)), unix.PROT_NONE, flags); err != nil {
		return fmt.Errorf("memory of %d bytes cannot be freed: %w", len(m.bytes), err)
	}
	return nil
}

// transfer checks a range of the memory.
func (m *Memory) transfer(offset, length int64, tag uint64) (transfer, error) {
	if m.handle == nil {
		return transfer{}, ErrClosed
	}
	if offset < 0 || length < 1 || offset > m.Len() || length > m.Len()-offset {
		return transfer{}, fmt.Errorf("%d bytes at %d of memory of %d: %w", length, offset, m.Len(), ErrInvalid)
	}
	return transfer{memory: m.handle, address: m.at(offset), length: uint64(length), tag: tag}, nil
}
