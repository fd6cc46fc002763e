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
	MEMORY_FILE, /* a shared mapping of a file on disk: may shrink under us, so access it by pread and pwrite */
};

struct memory_backing {
	enum memory_kind kind;
	int fd;          /* owned by the allocation; duplicate it to keep it. -1: private */
	uint64_t offset; /* of the looked-up address within fd */
};

/*
 * Reports whether RLIMIT_FSIZE allows a memfd of len bytes: to the kernel it is a file, and to ask for too large a one
 * raises SIGXFSZ. Any thread may call.
 */
bool memory_may_be_file(size_t len);

/*
 * Maps len bytes of zeroed memory, page-aligned. What is not to be exported is better private: in huge pages it is
 * touched for the first time in a fraction of the time that shared memory takes, which has none. Where RLIMIT_FSIZE
 * forbids a memfd of that length, memory_alloc returns private memory too, which a peer on the software device copies
 * through the kernel. Returns NULL with errno set. Any thread may call.
 */
void *memory_alloc(size_t len);
void *memory_alloc_private(size_t len);

/* Maps the first len bytes of the file fd (which stays the caller's), shared. NULL with errno set. Any thread. */
void *memory_map_file(int fd, size_t len, bool writable);

/* Undoes any of these. addr and len are those of the allocation. Any thread. */
void memory_free(void *addr, size_t len);

/* Finds the allocation that holds all of [addr, addr + len). False if it is not ours. Any thread. */
bool memory_find(const void *addr, size_t len, struct memory_backing *backing);

#endif
