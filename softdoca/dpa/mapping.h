/* SPDX-License-Identifier: Apache-2.0 */
/* Memory maps as code of a DPA uses them. */
#ifndef DMA_COPY_SOFT_DPA_MAPPING_H
#define DMA_COPY_SOFT_DPA_MAPPING_H

#include "dpa.h"

/* Memory as its owner knows it. */
struct soft_place {
	doca_dpa_dev_mmap_t mmap;
	uint64_t addr;
};

/*
 * Returns where code of the DPA finds len bytes, also of imported memory: mapped, or as a window. NULL: the place is
 * not within a started memory map of the DPA's device, or cannot be accessed. Called with the lock held.
 */
void *soft_mapping_pointer(const struct doca_dpa *dpa, struct soft_place place, size_t len);

/*
 * Copies len bytes between memory maps of the DPA's device. Returns NULL, or why it failed; the destination may then
 * have changed. Called with the lock held.
 */
const char *soft_mapping_copy(const struct doca_dpa *dpa, struct soft_place to, struct soft_place from, size_t len);

#endif
