/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between dpa_dma_copy's code for the CPU and for the DPA. */
#ifndef EXAMPLES_DPA_DMA_COPY_H
#define EXAMPLES_DPA_DMA_COPY_H

#include <stdint.h>

/* Memory of the CPU: a memory map's handle and an address. */
struct range {
	uint64_t addr;
	uint32_t mmap;
};

#endif
