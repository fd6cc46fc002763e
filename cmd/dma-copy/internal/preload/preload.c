/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* of Linux 5.14; before that the kernel refuses it, and nothing is lost */
#endif

/* Called for the program first, of which it maps what the program cannot write. Libraries are smaller than the rest. */
static int map_segments(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	uintptr_t within_page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0)
			continue;
		uintptr_t start = (uintptr_t)(object->dlpi_addr + segment->p_vaddr);
		uintptr_t end = start + segment->p_memsz;
		start &= ~within_page;
		(void)madvise((void *)start, end - start, MADV_POPULATE_READ);
	}
	return 1; /* no library */
}

__attribute__((constructor)) static void preload(void)
{
	(void)dl_iterate_phdr(map_segments, NULL);
}
