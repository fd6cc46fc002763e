/* SPDX-License-Identifier: Apache-2.0 */
/* Completion contexts of a DPA, for the operations that its code posts. */
#ifndef DMA_COPY_SOFT_DPA_COMPLETION_H
#define DMA_COPY_SOFT_DPA_COMPLETION_H

#include "dpa.h"
#include "kernel.h"
#include "ring.h"

struct soft_completion_element {
	doca_dpa_dev_completion_type_t type;
	uint32_t user_data;
};

struct doca_dpa_completion {
	struct soft_object object; /* from creation on, so that producers can name it */
	struct doca_dpa *dpa;
	struct doca_dpa_thread *thread; /* NULL: code of the DPA polls */
	uint32_t queue_size;

	/* Under the lock. */
	bool started;
	unsigned users; /* producers that are running */
	struct soft_ring ring;
	struct soft_completion_element *elements;
};

/* Adds an element. A full queue is an error of the kernel. Called with the lock held. */
void soft_completion_push(struct doca_dpa_completion *completion, struct soft_kernel *kernel,
			  doca_dpa_dev_completion_type_t type, uint32_t user_data);

#endif
