package contest

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/lab/bench"
)

// touchMemory touches slightly more memory than a run of that size needs, and releases it. If a hypervisor takes back
// memory that a guest has freed, the first access to it causes a fault outside the guest, which must not happen within
// a run. It uses huge pages, because it is large free blocks that are taken back, and large writes get their page cache
// in such blocks. It reports whether it did so, which it does not if that would take more than half of the available
// memory.
func touchMemory(size int64) bool {
	wanted := size + slack
	if wanted > bench.AvailableMemory()/2 {
		return false
	}
	memory, err := unix.Mmap(-1, 0, int(wanted), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return false
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // small pages otherwise
	for at := 0; at < len(memory); at += os.Getpagesize() {
		memory[at] = 1
	}
	return unix.Munmap(memory) == nil
}
