/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UCX's library, loaded at run time. Every symbol is looked up here, so the program does not link against it and starts
 * without it. A library is never unloaded: UCX has threads and exit handlers of its own.
 */
#ifndef DMA_COPY_UCX_LIBRARY_H
#define DMA_COPY_UCX_LIBRARY_H

#include <stddef.h>
#include <ucp/api/ucp.h>

struct ucp_library {
#define UCP_FUNC(name) __typeof__(&name) name;
#include "ucp_functions.def"
};

/* Returned by value: a pointer from Go would cost an allocation for every call. */
struct ucx_opened {
	ucs_status_t status;
	void *object; /* NULL on failure */
};

/*
 * Sets the environment of UCX, and then loads the file: a path, or a name on the loader's search path. Returns NULL on
 * failure, with one sentence in error.
 */
const struct ucp_library *library_open(const char *file, char *error, size_t error_size);

#endif
