package network

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// slotMemory is this side's memory of a window: zeroed, private to this process, and in huge pages if possible. The
// first access to each small page can take as long as the rest of a short copy, above all in a virtual machine.
type slotMemory []byte

func newSlotMemory(length int64) (slotMemory, error) {
	memory, err := unix.Mmap(-1, 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes cannot be mapped: %w", length, err)
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // only faster
	return memory, nil
}

// Close frees the memory, which nothing uses any more.
func (m slotMemory) Close() error { return unix.Munmap(m) }
