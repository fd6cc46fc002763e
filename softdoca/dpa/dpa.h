/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DPA of software: its code is ordinary code of this process, its threads are threads of this process, and its memory
 * is memory of this process, which its handles and addresses hide from the CPU's code as a real one does.
 */
#ifndef DMA_COPY_SOFT_DPA_H
#define DMA_COPY_SOFT_DPA_H

#include <stdbool.h>
#include <sys/queue.h>

#include "dev.h"
#include "doca_dpa_abi.h"
#include "object.h"

/* Memory that was allocated on the DPA. */
struct soft_block {
	LIST_ENTRY(soft_block) link;
	size_t size;
	uint8_t *bytes;
};

struct doca_dpa {
	struct soft_object object;
	struct doca_dev *dev;
	struct doca_dpa_app *app;

	/* Under the lock. */
	bool started;
	bool failed;    /* a kernel has made an error */
	unsigned users; /* threads, completion contexts and message queues; stop returns IN_USE while there are any */
	uint32_t thread_ids; /* given so far */
	doca_dpa_dev_log_level_t log_level;
	LIST_HEAD(, soft_block) blocks;
};

/* A BlueField-3 has 16 cores with 16 execution units each, and reserves two. */
#define SOFT_DPA_CORES 16
#define SOFT_DPA_EUS_PER_CORE 16
#define SOFT_DPA_EUS 254

/* Counts a user, or one less. */
void soft_dpa_use(struct doca_dpa *dpa);
void soft_dpa_unuse(struct doca_dpa *dpa);

/* Reports whether the DPA is started. Called without the lock. */
bool soft_dpa_is_started(const struct doca_dpa *dpa);

/* Returns the registration of a function of the app; NULL: it has none. */
const struct dpa_kit_function *soft_dpa_function(const struct doca_dpa *dpa, doca_dpa_func_t *func);

/* Reports whether [address, address + len) lies in one allocation. Called with the lock held. */
bool soft_dpa_has_memory(const struct doca_dpa *dpa, uint64_t address, size_t len);

/* Frees all memory of a DPA that is being destroyed. */
void soft_dpa_free_memory(struct doca_dpa *dpa);

/* Rounds the size of a queue up to a power of two. Returns 0 for sizes that no queue has. */
uint32_t soft_dpa_queue_size(uint32_t wanted);

#endif
