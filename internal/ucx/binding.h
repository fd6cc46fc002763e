/* SPDX-License-Identifier: Apache-2.0 */
/* What the Go code calls in place of functions with out parameters and of function pointers, which Go cannot call. */
#ifndef DMA_COPY_UCX_BINDING_H
#define DMA_COPY_UCX_BINDING_H

#include "endpoint.h"

static inline const char *library_version(const struct ucp_library *ucp)
{
	return ucp->ucp_get_version_string();
}
static inline const char *status_text(const struct ucp_library *ucp, int s)
{
	return ucp->ucs_status_string((ucs_status_t)s);
}
static inline void free_key(const struct ucp_library *ucp, void *key)
{
	ucp->ucp_rkey_buffer_release(key);
}
static inline void close_key(const struct ucp_library *ucp, ucp_rkey_h key)
{
	ucp->ucp_rkey_destroy(key);
}
static inline void free_address(const struct ucx_worker *w, void *a)
{
	w->ucp->ucp_worker_release_address(w->handle, a);
}

/* Results by value: a pointer from Go would cost an allocation for every call. */
struct ucx_bytes {
	ucs_status_t status;
	void *data;
	size_t length;
};
struct ucx_opened {
	ucs_status_t status;
	void *object;
};

static inline struct ucx_opened open_context(const struct ucp_library *ucp, const char *settings, uint64_t features)
{
	struct ucx_context *context = NULL;
	ucs_status_t status = ucx_context_open(ucp, settings, features, &context);
	return (struct ucx_opened){status, context};
}

static inline struct ucx_opened map_memory(const struct ucx_context *c, void *address, uint64_t length, uint32_t access)
{
	struct ucx_memory *memory = NULL;
	ucs_status_t status = ucx_memory_map(c, address, length, access, &memory);
	return (struct ucx_opened){status, memory};
}

static inline struct ucx_bytes pack_memory(const struct ucx_context *c, const struct ucx_memory *m)
{
	struct ucx_bytes b = {UCS_OK, NULL, 0};
	b.status = ucx_memory_pack(c, m, &b.data, &b.length);
	return b;
}

static inline struct ucx_opened open_worker(const struct ucx_context *c, uint32_t depth)
{
	struct ucx_worker *worker = NULL;
	ucs_status_t status = ucx_worker_open(c, depth, &worker);
	return (struct ucx_opened){status, worker};
}

static inline struct ucx_bytes worker_address(const struct ucx_worker *w)
{
	struct ucx_bytes b = {UCS_OK, NULL, 0};
	ucp_address_t *address = NULL;
	b.status = ucx_worker_address(w, &address, &b.length);
	b.data = address;
	return b;
}

static inline ucs_status_t set_slots(struct ucx_worker *w, struct ucx_slots slots)
{
	return ucx_worker_receive(w, &slots);
}

static inline struct ucx_opened open_endpoint(struct ucx_worker *w, const void *address, uint64_t tag)
{
	struct ucx_endpoint *endpoint = NULL;
	ucs_status_t status = ucx_endpoint_open(w, address, tag, &endpoint);
	return (struct ucx_opened){status, endpoint};
}

static inline struct ucx_opened unpack_key(const struct ucx_endpoint *e, const void *packed)
{
	ucp_rkey_h key = NULL;
	ucs_status_t status = ucx_endpoint_unpack(e, packed, &key);
	return (struct ucx_opened){status, key};
}

static inline struct ucx_opened map_key(const struct ucp_library *ucp, ucp_rkey_h key, uint64_t address)
{
	void *mapped = NULL;
	ucs_status_t status = ucp->ucp_rkey_ptr(key, address, &mapped);
	return (struct ucx_opened){status, mapped};
}

#endif
