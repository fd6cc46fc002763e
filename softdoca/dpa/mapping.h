/* SPDX-License-Identifier: Apache-2.0 */
/* Memory maps as code of a DPA uses them. */
#ifndef DMA_COPY_SOFT_DPA_MAPPING_H
#define DMA_COPY_SOFT_DPA_MAPPING_H

#include "dpa.h"

/* One end of a copy. */
struct soft_place {
	doca_dpa_dev_mmap_t mmap;
	uint64_t addr;
};

/*
 * Copies len bytes between memory maps of the DPA's device. Returns NULL, or why it failed; the destination may then
 * have changed. Called with the lock held.
 */
const char *soft_mapping_copy(const struct doca_dpa *dpa, struct soft_place to, struct soft_place from, size_t len);

#endif
