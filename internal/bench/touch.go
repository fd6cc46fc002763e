package bench

import (
	"os"

	"golang.org/x/sys/unix"
)

// touchMemory touches a little more memory than a run of that size needs, and gives it back. Under a hypervisor that takes back what a guest has
// freed, the first touch of such memory costs a fault outside the guest; here nobody pays for it in a run. It is asked for in huge pages,
// because it is large free blocks that are taken back, and those who write in large pieces get their page cache in such. It tells whether it
// was done: not where that would take more than half of the memory that is available.
func touchMemory(size int64) bool {
	wanted := size + slack
	if wanted > availableMemory()/2 {
		return false
	}
	memory, err := unix.Mmap(-1, 0, int(wanted), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return false
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // small ones will have to do where there are no others
	for at := 0; at < len(memory); at += os.Getpagesize() {
		memory[at] = 1
	}
	return unix.Munmap(memory) == nil
}
