/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of a memcpy task and its completion (dma_task.c), for DMA contexts (dma.c). */
#ifndef DMA_COPY_SOFT_DMA_H
#define DMA_COPY_SOFT_DMA_H

#include "ctx.h"

struct doca_dma_task_memcpy {
	struct doca_task base;
	const struct doca_buf *src;
	struct doca_buf *dst;
	uint64_t due_at;
	bool clocked;        /* counted by the device's clock */
	doca_error_t result; /* from submission on, until the task is due */
	size_t data_len;     /* of the destination's data then */
};

_Static_assert(offsetof(struct doca_dma_task_memcpy, base) == 0, "a task is cast to its memcpy");

/* Checks whether the task can be executed and sets *total, in bytes. INVALID_VALUE, with the reason as its detail. */
doca_error_t soft_dma_check(const struct doca_dma_task_memcpy *task, size_t *total);

/*
 * Copies the source's bytes behind the destination's data, whose length grows when the task completes, and sets the
 * result and that length. With move_bytes=0 nothing is copied. IO_FAILED, or the code of an injected fault.
 */
void soft_dma_execute(struct doca_dma_task_memcpy *task);

/*
 * Returns when a task that is being submitted completes, in CLOCK_MONOTONIC nanoseconds; 0: at once, without reading
 * the clock. A clocked task must leave its device's clock again, by soft_dma_leave_clock.
 */
uint64_t soft_dma_due_at(struct doca_dma_task_memcpy *task);

/* The task has completed or was flushed. */
void soft_dma_leave_clock(struct doca_dma_task_memcpy *task);

#endif
