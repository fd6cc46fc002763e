/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that may be registered with a device, and what stands behind it. Real hardware needs only the addresses; the
 * software device also wants a file descriptor by which another process can reach the same pages.
 */
#ifndef DMA_COPY_MEMORY_H
#define DMA_COPY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_kind {
	MEMORY_ANONYMOUS, /* a sealed memfd: can be mapped by another process, never shrinks */
	MEMORY_PRIVATE,   /* of this process alone, in huge pages where the system has them; never shrinks */
	MEMORY_FILE,      /* a shared mapping of a file on disk: may shrink, so access it by pread and pwrite */
};

struct memory_backing {
	enum memory_kind kind;
	int fd;          /* owned by the allocation; duplicate it to keep it. -1: private */
	uint64_t offset; /* of the looked-up address within fd */
};

/*
 * Reports whether RLIMIT_FSIZE allows a memfd of len bytes. The kernel treats it as a file, and a larger one raises
 * SIGXFSZ. Any thread may call.
 */
bool memory_may_be_file(size_t len);

/*
 * Maps len bytes of zeroed memory, page-aligned. Use private memory for what is not exported: it can have huge pages,
 * whose first use is faster. Where RLIMIT_FSIZE forbids a memfd of that length, memory_alloc returns private memory
 * too, which a peer on the software device copies through the kernel. Returns NULL with errno set. Any thread may call.
 */
void *memory_alloc(size_t len);
void *memory_alloc_private(size_t len);

/* Maps the first len bytes of the file fd, shared; fd stays the caller's. NULL with errno set. Any thread may call. */
void *memory_map_file(int fd, size_t len, bool writable);

/* Unmaps what one of these has mapped. addr and len are the allocation's. Any thread may call. */
void memory_free(void *addr, size_t len);

/* Finds the allocation that holds all of [addr, addr + len). False if there is none. Any thread may call. */
bool memory_find(const void *addr, size_t len, struct memory_backing *backing);

#endif
