/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of UCX and their registered memory.
 *
 * Threads: one at a time for each context, except for the count of users of a memory.
 */
#ifndef DMA_COPY_UCX_CONTEXT_H
#define DMA_COPY_UCX_CONTEXT_H

#include <stdint.h>

#include "library.h"

struct ucx_context {
	const struct ucp_library *ucp;
	ucp_context_h handle;
	uint64_t features;
};

/*
 * Opens a struct ucx_context with settings, "NAME\0VALUE\0" each, and an empty name at the end. features is a set of
 * enum ucp_feature.
 */
struct ucx_opened ucx_context_open(const struct ucp_library *ucp, const char *settings, uint64_t features);
void ucx_context_close(struct ucx_context *context);

/* The text that UCX prints about the context. NULL: out of memory; otherwise the caller frees it. */
char *ucx_context_describe(const struct ucx_context *context);

struct ucx_memory {
	ucp_mem_h handle;
	void *address;
	uint32_t users;     /* operations and workers that use it; atomic */
	uint32_t abandoned; /* what used it did not end by itself, but with its worker; atomic */
};

/* Accesses to memory: the bits of Access in memory.go. */
enum { UCX_LOCAL_READ = 1, UCX_LOCAL_WRITE = 2, UCX_REMOTE_READ = 4 };

/*
 * Registers a struct ucx_memory. address is the caller's memory, or NULL: then UCX allocates some, which a peer on this
 * machine can map.
 */
struct ucx_opened ucx_memory_map(const struct ucx_context *context, void *address, uint64_t length, uint32_t access);

/* UCS_ERR_BUSY: it is in use, and nothing was done. */
ucs_status_t ucx_memory_unmap(const struct ucx_context *context, struct ucx_memory *memory);

void ucx_memory_use(struct ucx_memory *memory);
void ucx_memory_release(struct ucx_memory *memory);

/* Says that a peer may not know of the end of an operation that used the memory. */
void ucx_memory_abandon(struct ucx_memory *memory);

#endif
