/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct allocation {
	struct allocation *next;
	uint8_t *addr;
	size_t len;
	enum memory_kind kind;
	int fd;
};

/* A process has few allocations, so a list behind a lock is enough. */
static pthread_mutex_t allocations_lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;

static void close_keeping_errno(int fd)
{
	int err = errno;
	if (fd >= 0)
		close(fd);
	errno = err;
}

/* Takes ownership of fd. */
static void *map_and_record(int fd, size_t len, int protection, enum memory_kind kind)
{
	int sharing = kind == MEMORY_PRIVATE ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	struct allocation *a = malloc(sizeof(*a));
	if (a == NULL)
		goto close_fd;
	void *addr = mmap(NULL, len, protection, sharing, fd, 0);
	if (addr == MAP_FAILED)
		goto free_record;
	*a = (struct allocation){.addr = addr, .len = len, .kind = kind, .fd = fd};
	pthread_mutex_lock(&allocations_lock);
	a->next = allocations;
	allocations = a;
	pthread_mutex_unlock(&allocations_lock);
	return addr;

free_record:
	free(a);
close_fd:
	close_keeping_errno(fd);
	return NULL;
}

/* The seal allows an importer to map the pages without risking SIGBUS. */
static int sealed_memfd(size_t len)
{
	int fd = memfd_create("dma-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)len) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		return fd;
	close_keeping_errno(fd);
	return -1;
}

bool memory_may_be_file(size_t len)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || len <= limit.rlim_cur;
}

void *memory_alloc(size_t len)
{
	if (!memory_may_be_file(len))
		return memory_alloc_private(len);
	int fd = sealed_memfd(len);
	return fd < 0 ? NULL : map_and_record(fd, len, PROT_READ | PROT_WRITE, MEMORY_ANONYMOUS);
}

void *memory_alloc_private(size_t len)
{
	void *addr = map_and_record(-1, len, PROT_READ | PROT_WRITE, MEMORY_PRIVATE);
	if (addr != NULL)
		(void)madvise(addr, len, MADV_HUGEPAGE); /* small pages are sufficient */
	return addr;
}

void *memory_map_file(int fd, size_t len, bool writable)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	return own < 0 ? NULL : map_and_record(own, len, protection, MEMORY_FILE);
}

static struct allocation *unlink_allocation(const void *addr)
{
	pthread_mutex_lock(&allocations_lock);
	struct allocation **link = &allocations;
	while (*link != NULL && (*link)->addr != addr)
		link = &(*link)->next;
	struct allocation *a = *link;
	if (a != NULL)
		*link = a->next;
	pthread_mutex_unlock(&allocations_lock);
	return a;
}

void memory_free(void *addr, size_t len)
{
	struct allocation *a = unlink_allocation(addr);
	munmap(addr, len);
	if (a == NULL)
		return;
	close_keeping_errno(a->fd);
	free(a);
}

bool memory_find(const void *addr, size_t len, struct memory_backing *backing)
{
	bool found = false;
	uintptr_t start = (uintptr_t)addr;
	pthread_mutex_lock(&allocations_lock);
	for (const struct allocation *a = allocations; a != NULL && !found; a = a->next) {
		uintptr_t base = (uintptr_t)a->addr;
		if (start < base || start - base > a->len || len > a->len - (start - base))
			continue;
		*backing = (struct memory_backing){.kind = a->kind, .fd = a->fd, .offset = start - base};
		found = true;
	}
	pthread_mutex_unlock(&allocations_lock);
	return found;
}
