/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints of a worker and their operations. Threads: the worker's. */
#ifndef DMA_COPY_UCX_ENDPOINT_H
#define DMA_COPY_UCX_ENDPOINT_H

#include "worker.h"

/* Not a status of UCX: depth operations are in flight. */
enum { UCX_QUEUE_FULL = 2 };

/*
 * Connects a struct ucx_endpoint to the worker with this address, without waiting. The address must be followed by
 * bytes that end its parsing.
 */
struct ucx_opened ucx_endpoint_open(struct ucx_worker *worker, const void *address, uint64_t tag);

/* The text that UCX prints about the endpoint. NULL: out of memory, or closed; otherwise the caller frees it. */
char *ucx_endpoint_describe(const struct ucx_endpoint *endpoint);

/*
 * Messages of fewer bytes are flushed, which is a round trip. For longer ones UCX itself reports the end only when the
 * receiver has taken them.
 */
enum { FLUSHED_BELOW = 256 << 10 };

/* length bytes at address of registered memory. */
struct ucx_transfer {
	struct ucx_memory *memory;
	void *address;
	uint64_t length;
	uint64_t tag;
};

/*
 * Both add an event, COMPLETED, unless they return an error or UCX_QUEUE_FULL: when the bytes are here, or the message
 * has been sent.
 */
int32_t ucx_endpoint_get(struct ucx_endpoint *endpoint, struct ucx_transfer transfer, uint64_t remote, ucp_rkey_h key);
int32_t ucx_endpoint_send(struct ucx_endpoint *endpoint, struct ucx_transfer transfer, uint64_t token, uint32_t slot);

/*
 * Begins to close the endpoint: by a flush, or by force, also when a flush is running. UCS_ERR_UNSUPPORTED: it cannot
 * be forced. After that ucx_endpoint_advance is called between polls until it returns true.
 */
ucs_status_t ucx_endpoint_close(struct ucx_endpoint *endpoint, int force);
int ucx_endpoint_advance(struct ucx_endpoint *endpoint);

#endif
