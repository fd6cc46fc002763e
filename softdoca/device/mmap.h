/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DMA_COPY_SOFT_MMAP_H
#define DMA_COPY_SOFT_MMAP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "doca_abi.h"
#include "sizes.h"

struct soft_export;
struct soft_import;

/* A memory map: memory of this process, which may be exported, or an import of another's. */
struct doca_mmap {
	bool started, was_started, has_range;
	void *addr;
	size_t len;
	uint32_t permissions;
	uint32_t max_devs, num_devs;
	struct doca_dev *devs[SOFT_MMAP_MAX_DEVS]; /* an import has exactly one */
	atomic_uint bufs;
	bool thread_safe;      /* buffers are not counted, and not waited for */
	atomic_uint consumers; /* that were created over it */
	atomic_uint shared;    /* by consumers, with producers that may write into it */
	union doca_data user_data;
	doca_mmap_memrange_free_cb_t *free_cb;
	void *free_cookie;
	struct soft_export *export; /* NULL until exported; closed at stop */
	struct soft_import *import; /* non-NULL: made by create_from_export */

	/* For a DPA; NULL without one. */
	const struct doca_dpa *dpa;                       /* whose memory it maps, instead of memory of the program */
	void (*revoke_dpa)(const struct doca_mmap *mmap); /* ends the DPA's access, at stop and destruction */
};

/* Reports whether dev was added to the map. */
bool soft_mmap_has_dev(const struct doca_mmap *mmap, const struct doca_dev *dev);

#endif
