/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a memcpy task does (dma_copy.c) and when it is done (dma_time.c), for the contexts that have them (dma.c).
 */
#ifndef DMA_COPY_SOFT_DMA_H
#define DMA_COPY_SOFT_DMA_H

#include "core.h"

struct doca_dma_task_memcpy {
	struct doca_task base;
	const struct doca_buf *src;
	struct doca_buf *dst;
	uint64_t due_at;
	bool clocked; /* it has entered the device's clock */
};

_Static_assert(offsetof(struct doca_dma_task_memcpy, base) == 0, "a task is cast to its memcpy");

/* NULL, and the number of bytes, if the task can be executed; else the reason. */
const char *soft_dma_task_error(const struct doca_dma_task_memcpy *task, size_t *total);

/* The same as a result: INVALID_VALUE, with the reason as its detail. */
doca_error_t soft_dma_check(const struct doca_dma_task_memcpy *task, size_t *total);

/* Bytes go behind the destination's data, which grows only when all of them have arrived. With move_bytes=0 it grows, and
 * none has. IO_FAILED, or what a fault wants. */
doca_error_t soft_dma_execute(struct doca_dma_task_memcpy *task);

/* When a task that is being submitted is done, CLOCK_MONOTONIC nanoseconds; 0: at once, and nobody has to look at the
 * clock. A task that is clocked must leave its device's clock again, at soft_dma_over. */
uint64_t soft_dma_due_at(struct doca_dma_task_memcpy *task);

/* The task has completed, or was flushed. */
void soft_dma_over(struct doca_dma_task_memcpy *task);

#endif
