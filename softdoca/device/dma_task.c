/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a memcpy task, its copy, and its completion. */
#include "dma.h"

#include "buf.h"
#include "copy.h"
#include "dev.h"
#include "error.h"
#include "fault.h"
#include "limit.h"
#include "mmap.h"
#include "now.h"
#include "remote.h"
#include "schedule.h"

/* ---- What a task may copy ---- */

static bool writable(const struct doca_mmap *mmap)
{
	uint32_t needed = DOCA_ACCESS_FLAG_PCI_READ_WRITE;
	if (mmap->import == NULL)
		needed |= DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
	return (mmap->permissions & needed) != 0;
}

/* Returns NULL and sets *total to the sum of the data segments if all of them can be read. */
static const char *source_error(const struct doca_buf *src, const struct doca_dev *dev, size_t *total)
{
	const struct soft_limits *limits = soft_limits();
	size_t sum = 0, count = 0;
	for (; src != NULL; src = src->next) {
		const char *reason = soft_buf_usage_error(src, dev);
		if (reason != NULL)
			return reason;
		if (++count > limits->max_buf_list_len)
			return "the source list has more buffers than max_buf_list_len";
		if (src->data_len > limits->max_buf_size - sum)
			return "the source has more bytes than max_buf_size";
		sum += src->data_len;
	}
	*total = sum;
	return sum == 0 ? "the source has no data" : NULL;
}

static const char *destination_error(const struct doca_buf *dst, const struct doca_dev *dev, size_t total)
{
	const char *reason = soft_buf_usage_error(dst, dev);
	if (reason != NULL)
		return reason;
	if (dst->next != NULL || dst->first != dst)
		return "the destination is part of a list";
	if (total > soft_buf_tailroom(dst))
		return "the destination has too little space behind its data";
	if (!writable(dst->mmap))
		return "the permissions of the destination's memory map do not allow writing";
	return NULL;
}

static bool overlaps(const struct doca_buf *src, const struct doca_buf *dst, size_t total)
{
	uintptr_t to = (uintptr_t)dst->data + dst->data_len, from = (uintptr_t)src->data;
	return src->data_len > 0 && from < to + total && to < from + src->data_len;
}

/* Compares only local buffers: addresses of an import are another process's. */
static const char *pair_error(const struct doca_buf *src, const struct doca_buf *dst, size_t total)
{
	for (; src != NULL; src = src->next) {
		if (src->mmap->import != NULL && dst->mmap->import != NULL)
			return "source and destination are both imported";
		if (src->mmap->import == NULL && dst->mmap->import == NULL && overlaps(src, dst, total))
			return "source and destination overlap";
	}
	return NULL;
}

/* Returns NULL and sets *total if the task can be executed, otherwise the reason why not. */
static const char *task_error(const struct doca_dma_task_memcpy *task, size_t *total)
{
	const struct doca_dev *dev = task->base.ctx->dev;
	if (task->src == NULL || task->dst == NULL)
		return "the task has no source or no destination";
	const char *reason = source_error(task->src, dev, total);
	if (reason == NULL)
		reason = destination_error(task->dst, dev, *total);
	if (reason == NULL)
		reason = pair_error(task->src, task->dst, *total);
	return reason;
}

/* ---- Execution ---- */

static doca_error_t copy_run(const struct doca_buf *src, const struct doca_buf *dst, uint8_t *to, size_t at, size_t len)
{
	if (len == 0)
		return DOCA_SUCCESS;
	if (src->mmap->import != NULL)
		return soft_import_read(src->mmap->import, to + at, src->data + at, len);
	if (dst->mmap->import != NULL)
		return soft_import_write(dst->mmap->import, to + at, src->data + at, len);
	return soft_copy_local(to + at, src->data + at, len);
}

/* Writes the source's byte with one bit changed. */
static doca_error_t flip_bit(const struct doca_buf *src, const struct doca_buf *dst, uint8_t *to, size_t at)
{
	uint8_t byte;
	doca_error_t result = src->mmap->import != NULL ? soft_import_read(src->mmap->import, &byte, src->data + at, 1)
							: soft_copy_local(&byte, src->data + at, 1);
	if (result != DOCA_SUCCESS)
		return result;
	byte ^= 1 << at % 8;
	return dst->mmap->import != NULL ? soft_import_write(dst->mmap->import, to + at, &byte, 1)
					 : soft_copy_local(to + at, &byte, 1);
}

/* Writes bytes [at, at + run) of the source again, behind their place. */
static doca_error_t duplicate_run(const struct doca_buf *src, const struct doca_buf *dst, uint8_t *to, size_t at,
				  size_t run)
{
	size_t rest = src->data_len - at - run;
	return copy_run(src, dst, to + run, at, run < rest ? run : rest);
}

static doca_error_t copy_buf(const struct doca_buf *src, const struct doca_buf *dst, uint8_t *to)
{
	size_t at, run, len = src->data_len;
	enum soft_copy_fault fault = soft_fault_copy(len, &at, &run);
	if (fault == SOFT_COPY_DROP) {
		doca_error_t before = copy_run(src, dst, to, 0, at);
		return before == DOCA_SUCCESS ? copy_run(src, dst, to, at + run, len - at - run) : before;
	}
	doca_error_t result = copy_run(src, dst, to, 0, len);
	if (result == DOCA_SUCCESS && fault == SOFT_COPY_FLIP)
		result = flip_bit(src, dst, to, at);
	if (result == DOCA_SUCCESS && fault == SOFT_COPY_DUPLICATE)
		result = duplicate_run(src, dst, to, at, run);
	return result;
}

doca_error_t soft_dma_check(const struct doca_dma_task_memcpy *task, size_t *total)
{
	const char *reason = task_error(task, total);
	if (reason == NULL)
		return DOCA_SUCCESS;
	soft_detail("memcpy task refused: %s", reason);
	return DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t copy_bufs(const struct doca_dma_task_memcpy *task)
{
	uint8_t *to = task->dst->data + task->dst->data_len;
	for (const struct doca_buf *src = task->src; src != NULL; src = src->next) {
		if (src->data_len > 0 && copy_buf(src, task->dst, to) != DOCA_SUCCESS)
			return DOCA_ERROR_IO_FAILED;
		to += src->data_len;
	}
	return DOCA_SUCCESS;
}

void soft_dma_execute(struct doca_dma_task_memcpy *task)
{
	task->result = soft_fault_memcpy();
	if (task->result != DOCA_SUCCESS)
		return;
	size_t total;
	if (soft_dma_check(task, &total) != DOCA_SUCCESS) {
		task->result = DOCA_ERROR_IO_FAILED;
		return;
	}
	task->data_len = task->dst->data_len + total;
	if (soft_limits()->move_bytes != 0)
		task->result = copy_bufs(task);
}

/* ---- when a task is done ---- */

/* A task that cannot be executed takes no bandwidth. */
static struct soft_move move_of(const struct doca_dma_task_memcpy *task, uint64_t now)
{
	struct soft_move move = {.at_ns = now, .optimized = task->base.optimized};
	size_t total;
	if (task_error(task, &total) != NULL)
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

void soft_dma_leave_clock(struct doca_dma_task_memcpy *task)
{
	if (task->clocked)
		soft_clock_leave(&task->base.ctx->dev->clock);
	task->clocked = false;
}
