/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many memcpy tasks in flight on one DMA context, in batches: one call submits a batch of copies, one call returns a
 * batch of completions. Nothing is allocated in between, and C never calls Go.
 *
 * Threads: one at a time.
 */
#ifndef DMA_COPY_ENGINE_H
#define DMA_COPY_ENGINE_H

#include "progress.h"

/* A task copies several ranges of one memory into one range of the target, in their order. */
struct engine_copy {
	struct doca_mmap *source_map;
	struct doca_mmap *target_map;
	uint64_t source; /* the first range; addresses are in the address space of the memory's owner */
	uint64_t target;
	uint64_t len;  /* bytes of the first range, at least 1; of all, up to the device's maximum */
	uint64_t tag;  /* returned in the completion */
	uint64_t more; /* number of further ranges */
};

struct engine_range {
	uint64_t source;
	uint64_t len; /* bytes, at least 1 */
};

struct engine_completion {
	uint64_t tag;
	int32_t status; /* a doca_error_t */
	int32_t reserved;
};

struct engine {
	struct progress progress;
	struct doca_dma *dma;
	struct doca_buf_inventory *inventory;
	uint32_t depth;
	uint32_t sources;                       /* ranges of all copies in flight */
	uint32_t inflight;                      /* submitted and not yet completed */
	uint32_t completed;                     /* entries of completions that this poll has filled */
	struct engine_completion completions[]; /* depth of them */
};

/*
 * Opens a running DMA context for up to depth copies in flight, which together have up to sources ranges, at least
 * depth. On failure *engine is unchanged.
 */
struct outcome engine_open(const struct doca_ops *ops, struct doca_dev *dev, uint32_t depth, uint32_t sources,
			   struct engine **engine);

/* Returns the maximum number of copies in flight of one context of this device. */
struct outcome engine_max_depth(const struct doca_ops *ops, struct doca_dev *dev, uint32_t *depth);

/* Returned by value: a pointer from Go would cost an allocation for every batch. */
struct engine_submission {
	struct outcome outcome;
	uint32_t submitted;
};

/*
 * Submits copies in order until one is refused; submitted is the number accepted. more has the further ranges of the
 * first copy, then the ranges of the second one, and so on; without any it may be NULL. The memory of accepted copies
 * must not be used until their completion. AGAIN: poll completions first.
 */
struct engine_submission engine_submit(struct engine *engine, const struct engine_copy *copies, uint32_t count,
				       const struct engine_range *more);

/* Progresses until max completions have arrived or nothing moves; the result is in completions[0..returned). */
uint32_t engine_poll(struct engine *engine, uint32_t max);

/* Frees an idle engine. On failure (something is still running) it frees nothing and can be called again. */
struct outcome engine_close(struct engine *engine);

#endif
