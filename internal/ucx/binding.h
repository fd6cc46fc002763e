/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that Go calls instead of functions with out parameters and function pointers, which it cannot call. */
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

static inline ucs_status_t arm_worker(const struct ucx_worker *w)
{
	return w->ucp->ucp_worker_arm(w->handle);
}
static inline ucs_status_t signal_worker(const struct ucx_worker *w)
{
	return w->ucp->ucp_worker_signal(w->handle);
}

struct ucx_bytes {
	ucs_status_t status;
	void *data;
	size_t length;
};

/* The caller frees the key with free_key. */
static inline struct ucx_bytes pack_memory(const struct ucx_context *c, const struct ucx_memory *m)
{
	struct ucx_bytes b = {UCS_OK, NULL, 0};
	b.status = c->ucp->ucp_rkey_pack(c->handle, m->handle, &b.data, &b.length);
	return b;
}

/* The caller frees the address with free_address. */
static inline struct ucx_bytes worker_address(const struct ucx_worker *w)
{
	struct ucx_bytes b = {UCS_OK, NULL, 0};
	ucp_address_t *address = NULL;
	b.status = w->ucp->ucp_worker_get_address(w->handle, &address, &b.length);
	b.data = address;
	return b;
}

static inline struct ucx_opened unpack_key(const struct ucx_endpoint *e, const void *packed)
{
	ucp_rkey_h key = NULL;
	ucs_status_t status = e->worker->ucp->ucp_ep_rkey_unpack(e->handle, packed, &key);
	return (struct ucx_opened){status, key};
}

static inline struct ucx_opened map_key(const struct ucp_library *ucp, ucp_rkey_h key, uint64_t address)
{
	void *mapped = NULL;
	ucs_status_t status = ucp->ucp_rkey_ptr(key, address, &mapped);
	return (struct ucx_opened){status, mapped};
}

#endif
