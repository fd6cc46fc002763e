/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DMA contexts and their memcpy tasks. Submission executes a task; progress completes the oldest one if it is due. A
 * failed task stops its context, as on hardware: the tasks behind it are not executed, and flushed to the error
 * callback. With a time model the device's clock decides when a task is due; a task that is due before an older one
 * waits for it.
 */
#include "dma.h"

#include <stdlib.h>

#include "buf.h"
#include "config.h"
#include "ctx.h"
#include "error.h"
#include "fault.h"
#include "now.h"
#include "quirk.h"
#include "soft.h"

struct doca_dma {
	struct doca_ctx ctx;
	doca_dma_task_memcpy_completion_cb_t completion_cb, error_cb;
	uint32_t num_tasks;
	struct doca_dma_task_memcpy *pool; /* num_tasks of them, while not IDLE */
	struct doca_task *free;
	struct doca_task *oldest, *newest; /* submitted, in order */
	bool failed;                       /* a task has failed: no more are executed */
	char detail[SOFT_DETAIL_SIZE];     /* why, until that task completes; else empty */
};

_Static_assert(offsetof(struct doca_dma, ctx) == 0, "a context is cast to its DMA");

static struct doca_dma *dma_of(struct doca_ctx *ctx)
{
	return (struct doca_dma *)ctx;
}

/* ---- The class of DMA contexts ---- */

static doca_error_t dma_start(struct doca_ctx *ctx)
{
	struct doca_dma *dma = dma_of(ctx);
	if (dma->num_tasks == 0) {
		soft_detail("a DMA context needs doca_dma_task_memcpy_set_conf before it starts");
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (soft_limits()->move_bytes == 0)
		soft_log(DOCA_LOG_LEVEL_WARNING,
			 "NO BYTES ARE MOVED: move_bytes=0 has every copy succeed and do nothing");
	dma->failed = false;
	dma->detail[0] = '\0';
	dma->pool = calloc(dma->num_tasks, sizeof(*dma->pool));
	if (dma->pool == NULL)
		return DOCA_ERROR_INITIALIZATION;
	for (uint32_t i = dma->num_tasks; i-- > 0;) {
		dma->pool[i].base.next = dma->free;
		dma->free = &dma->pool[i].base;
	}
	return DOCA_SUCCESS;
}

/* From now on progress flushes the tasks. */
static void dma_stopping(struct doca_ctx *ctx)
{
	(void)ctx;
}

static bool dma_quiet(const struct doca_ctx *ctx)
{
	(void)ctx;
	return true;
}

static void dma_idle(struct doca_ctx *ctx)
{
	struct doca_dma *dma = dma_of(ctx);
	free(dma->pool);
	dma->pool = NULL;
	dma->free = NULL;
}

static uint32_t queue_len(const struct doca_dma *dma)
{
	uint32_t len = 0;
	for (const struct doca_task *task = dma->oldest; task != NULL; task = task->next)
		len++;
	return len;
}

/* Takes the oldest task, unless a fault asks for another order. */
static struct doca_dma_task_memcpy *pop_next(struct doca_dma *dma)
{
	struct doca_task **link = &dma->oldest, *before = NULL;
	uint32_t skipped = soft_faults() == NULL ? 0 : soft_fault_order(queue_len(dma));
	for (; skipped > 0; skipped--) {
		before = *link;
		link = &before->next;
	}
	struct doca_task *task = *link;
	*link = task->next;
	if (dma->newest == task)
		dma->newest = before;
	task->next = NULL;
	return (struct doca_dma_task_memcpy *)task;
}

/* The callback is called last: it may free the task, submit it again, or stop the context. */
static void dma_ended(struct doca_task *task)
{
	struct doca_dma *dma = dma_of(task->ctx);
	if (task->status != DOCA_SUCCESS)
		soft_ctx_fail(&dma->ctx);
	doca_dma_task_memcpy_completion_cb_t callback =
		task->status == DOCA_SUCCESS ? dma->completion_cb : dma->error_cb;
	callback((struct doca_dma_task_memcpy *)task, task->user_data, dma->ctx.user_data);
}

/* On hardware the last completions may not be reported until a task without the flag follows. */
static bool stalls(const struct doca_dma *dma)
{
	return dma->newest->optimized && soft_has_quirk(SOFT_OPTIMIZED_REPORTS_STALL);
}

static uint64_t dma_ready_at(const struct doca_ctx *ctx)
{
	const struct doca_dma *dma = (const struct doca_dma *)ctx;
	if (dma->oldest == NULL || (ctx->state == DOCA_CTX_STATE_RUNNING && stalls(dma)))
		return UINT64_MAX;
	return ctx->state == DOCA_CTX_STATE_RUNNING ? ((struct doca_dma_task_memcpy *)dma->oldest)->due_at : 0;
}

static void restore_detail(struct doca_dma *dma)
{
	soft_restore_detail(dma->detail);
	dma->detail[0] = '\0';
}

static bool dma_progress(struct doca_ctx *ctx)
{
	struct doca_dma *dma = dma_of(ctx);
	uint64_t at = dma_ready_at(ctx);
	if (at == UINT64_MAX || (at != 0 && soft_now_ns() < at))
		return false;
	struct doca_dma_task_memcpy *task = pop_next(dma);
	soft_dma_leave_clock(task);
	doca_error_t status = ctx->state == DOCA_CTX_STATE_RUNNING ? task->result : DOCA_ERROR_IO_FAILED;
	if (status == DOCA_SUCCESS)
		task->dst->data_len = task->data_len;
	else if (dma->detail[0] != '\0')
		restore_detail(dma);
	soft_task_complete(&task->base, status);
	return true;
}

static doca_error_t dma_validate(const struct doca_task *task)
{
	size_t total;
	return soft_dma_check((const struct doca_dma_task_memcpy *)task, &total);
}

/* The program reads the detail of a failure when it sees the completion. */
static void execute(struct doca_dma_task_memcpy *task)
{
	struct doca_dma *dma = dma_of(task->base.ctx);
	task->result = DOCA_ERROR_IO_FAILED;
	if (dma->failed)
		return;
	soft_dma_execute(task);
	dma->failed = task->result != DOCA_SUCCESS;
	if (dma->failed)
		soft_copy_last_detail(dma->detail, sizeof(dma->detail));
}

/* The queue is as deep as the pool, so it cannot be full. */
static doca_error_t dma_submit(struct doca_task *task)
{
	struct doca_dma *dma = dma_of(task->ctx);
	struct doca_dma_task_memcpy *memcpy_task = (struct doca_dma_task_memcpy *)task;
	memcpy_task->due_at = soft_dma_due_at(memcpy_task);
	execute(memcpy_task);
	task->next = NULL;
	if (dma->oldest == NULL)
		dma->oldest = task;
	else
		dma->newest->next = task;
	dma->newest = task;
	return DOCA_SUCCESS;
}

static void dma_release(struct doca_task *task)
{
	struct doca_dma *dma = dma_of(task->ctx);
	task->next = dma->free;
	dma->free = task;
}

static const struct soft_ctx_class dma_class = {
	.name = "DMA",
	.start = dma_start,
	.stopping = dma_stopping,
	.quiet = dma_quiet,
	.idle = dma_idle,
	.progress = dma_progress,
	.ready_at = dma_ready_at,
	.validate = dma_validate,
	.submit = dma_submit,
	.ended = dma_ended,
	.release = dma_release,
};

/* ---- doca_dma ---- */

doca_error_t soft_doca_dma_create(struct doca_dev *dev, struct doca_dma **dma)
{
	if (dev == NULL || dma == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_dma *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	soft_ctx_init(&created->ctx, &dma_class, dev);
	*dma = created;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dma_destroy(struct doca_dma *dma)
{
	if (dma == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_fini(&dma->ctx);
	if (result == DOCA_SUCCESS)
		free(dma);
	return result;
}

struct doca_ctx *soft_doca_dma_as_ctx(struct doca_dma *dma)
{
	return dma == NULL ? NULL : &dma->ctx;
}

/* Both sides have DMA engines; they differ in the memory they can reach. */
doca_error_t soft_doca_dma_cap_task_memcpy_is_supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t soft_doca_dma_cap_get_max_num_tasks(struct doca_dma *dma, uint32_t *max_num_tasks)
{
	if (dma == NULL || max_num_tasks == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_tasks = (uint32_t)soft_limits()->max_dma_tasks;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dma_cap_task_memcpy_get_max_buf_list_len(const struct doca_devinfo *devinfo,
								uint32_t *max_buf_list_len)
{
	if (devinfo == NULL || max_buf_list_len == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*max_buf_list_len = (uint32_t)soft_limits()->max_buf_list_len;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dma_cap_task_memcpy_get_max_buf_size(const struct doca_devinfo *devinfo, uint64_t *buf_size)
{
	if (devinfo == NULL || buf_size == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*buf_size = soft_limits()->max_buf_size;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dma_task_memcpy_set_conf(struct doca_dma *dma,
						doca_dma_task_memcpy_completion_cb_t task_completion_cb,
						doca_dma_task_memcpy_completion_cb_t task_error_cb,
						uint32_t num_memcpy_tasks)
{
	if (dma == NULL || task_completion_cb == NULL || task_error_cb == NULL || num_memcpy_tasks == 0 ||
	    num_memcpy_tasks > soft_limits()->max_dma_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(&dma->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	dma->completion_cb = task_completion_cb;
	dma->error_cb = task_error_cb;
	dma->num_tasks = num_memcpy_tasks;
	return DOCA_SUCCESS;
}

/* ---- doca_dma_task_memcpy ---- */

doca_error_t soft_doca_dma_task_memcpy_alloc_init(struct doca_dma *dma, const struct doca_buf *src,
						  struct doca_buf *dst, union doca_data user_data,
						  struct doca_dma_task_memcpy **task)
{
	if (dma == NULL || task == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (dma->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	struct doca_task *taken = dma->free;
	if (taken == NULL)
		return DOCA_ERROR_NO_MEMORY;
	struct doca_task *rest = taken->next;
	doca_error_t result = soft_task_take(taken, &dma->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	dma->free = rest;
	taken->user_data = user_data;
	struct doca_dma_task_memcpy *memcpy_task = (struct doca_dma_task_memcpy *)taken;
	memcpy_task->src = src;
	memcpy_task->dst = dst;
	*task = memcpy_task;
	return DOCA_SUCCESS;
}

struct doca_task *soft_doca_dma_task_memcpy_as_task(struct doca_dma_task_memcpy *task)
{
	return task == NULL ? NULL : &task->base;
}

void soft_doca_dma_task_memcpy_set_src(struct doca_dma_task_memcpy *task, const struct doca_buf *src)
{
	if (task != NULL)
		task->src = src;
}

const struct doca_buf *soft_doca_dma_task_memcpy_get_src(const struct doca_dma_task_memcpy *task)
{
	return task == NULL ? NULL : task->src;
}

void soft_doca_dma_task_memcpy_set_dst(struct doca_dma_task_memcpy *task, struct doca_buf *dst)
{
	if (task != NULL)
		task->dst = dst;
}

struct doca_buf *soft_doca_dma_task_memcpy_get_dst(const struct doca_dma_task_memcpy *task)
{
	return task == NULL ? NULL : task->dst;
}
