/* SPDX-License-Identifier: Apache-2.0 */
/* When a memcpy task is done: by the time model, the least latency and the delay that were asked for. */
#include "dma.h"
#include "fault.h"
#include "model.h"

/* A task that cannot be executed takes no bandwidth. */
static struct soft_move move_of(const struct doca_dma_task_memcpy *task, uint64_t now)
{
	struct soft_move move = {.at_ns = now, .optimized = task->base.optimized};
	size_t total;
	if (soft_dma_why_not(task, &total) != NULL)
		return move;
	move.bytes = total;
	move.direction = task->dst->mmap->import != NULL ? SOFT_WRITE : SOFT_READ;
	return move;
}

uint64_t soft_dma_due_at(struct doca_dma_task_memcpy *task)
{
	const struct soft_limits *limits = soft_limits();
	uint64_t delay_ns = soft_fault_delay(), latency_ns = limits->task_latency_us * 1000;
	task->clocked = soft_model_on(limits);
	if (!task->clocked && latency_ns + delay_ns == 0)
		return 0;
	uint64_t now = soft_now_ns(), at = now + latency_ns;
	if (task->clocked) {
		struct soft_move move = move_of(task, now);
		uint64_t done_at = soft_clock_enter(&task->base.ctx->dev->clock, limits, &move);
		at = done_at > at ? done_at : at;
	}
	return at + delay_ns;
}

void soft_dma_over(struct doca_dma_task_memcpy *task)
{
	if (task->clocked)
		soft_clock_leave(&task->base.ctx->dev->clock);
	task->clocked = false;
}
