/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalidation of caches, as a context. A task is executed when it is submitted; progress delivers its completion. A
 * task that fails stops the context, as with DMA: the tasks behind it are not executed, and fail.
 */
#include "doca_mmap_advise.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "buf.h"
#include "config.h"
#include "ctx.h"
#include "error.h"

#define MAX_TASKS 65536

struct doca_mmap_advise_task_invalidate_cache {
	struct doca_task base; /* first */
	struct doca_buf *buf;
	doca_error_t result; /* of its execution */
};

struct doca_mmap_advise {
	struct doca_ctx ctx; /* first */
	doca_mmap_advise_task_invalidate_cache_completion_cb_t completion, error;
	uint32_t num_tasks;
	bool failed;                                         /* a task has failed: no more are executed */
	struct doca_mmap_advise_task_invalidate_cache *pool; /* while not IDLE */
	struct doca_task *free, *oldest, *newest;            /* free ones; executed ones, in order */
};

static struct doca_mmap_advise *advise_of(struct doca_ctx *ctx)
{
	return (struct doca_mmap_advise *)ctx;
}

/* ---- the context ---- */

static doca_error_t advise_start(struct doca_ctx *ctx)
{
	struct doca_mmap_advise *advise = advise_of(ctx);
	if (advise->num_tasks == 0)
		return DOCA_ERROR_INVALID_VALUE;
	advise->pool = calloc(advise->num_tasks, sizeof(*advise->pool));
	if (advise->pool == NULL)
		return DOCA_ERROR_NO_MEMORY;
	advise->failed = false;
	advise->free = NULL;
	for (uint32_t i = advise->num_tasks; i-- > 0;) {
		advise->pool[i].base.next = advise->free;
		advise->free = &advise->pool[i].base;
	}
	return DOCA_SUCCESS;
}

static void advise_stopping(struct doca_ctx *ctx)
{
	(void)ctx;
}

static bool advise_quiet(const struct doca_ctx *ctx)
{
	(void)ctx;
	return true;
}

static void advise_idle(struct doca_ctx *ctx)
{
	free(advise_of(ctx)->pool);
	advise_of(ctx)->pool = NULL;
}

static doca_error_t execute(const struct doca_mmap_advise_task_invalidate_cache *task)
{
	const struct doca_dev *dev = task->base.ctx->dev;
	const char *reason = task->buf == NULL ? "it has no buffer" : soft_buf_usage_error(task->buf, dev);
	if (reason == NULL && task->buf->len > soft_limits()->max_buf_size)
		reason = "its buffer has more bytes than max_buf_size";
	if (reason == NULL) {
		atomic_thread_fence(memory_order_seq_cst);
		return DOCA_SUCCESS;
	}
	soft_detail("invalidation of a cache failed: %s", reason);
	return DOCA_ERROR_IO_FAILED;
}

static doca_error_t advise_validate(const struct doca_task *base)
{
	const struct doca_mmap_advise_task_invalidate_cache *task =
		(const struct doca_mmap_advise_task_invalidate_cache *)base;
	return execute(task) == DOCA_SUCCESS ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t advise_submit(struct doca_task *base)
{
	struct doca_mmap_advise *advise = advise_of(base->ctx);
	struct doca_mmap_advise_task_invalidate_cache *task = (struct doca_mmap_advise_task_invalidate_cache *)base;
	task->result = advise->failed ? DOCA_ERROR_IO_FAILED : execute(task);
	advise->failed = task->result != DOCA_SUCCESS;
	base->next = NULL;
	if (advise->oldest == NULL)
		advise->oldest = base;
	else
		advise->newest->next = base;
	advise->newest = base;
	return DOCA_SUCCESS;
}

static bool advise_progress(struct doca_ctx *ctx)
{
	struct doca_mmap_advise *advise = advise_of(ctx);
	struct doca_task *task = advise->oldest;
	if (task == NULL)
		return false;
	advise->oldest = task->next;
	task->next = NULL;
	soft_task_complete(task, ((struct doca_mmap_advise_task_invalidate_cache *)task)->result);
	return true;
}

static uint64_t advise_ready_at(const struct doca_ctx *ctx)
{
	return ((const struct doca_mmap_advise *)ctx)->oldest == NULL ? UINT64_MAX : 0;
}

/* The callback is called last: it may free the task, submit it again, or stop the context. */
static void advise_ended(struct doca_task *base)
{
	struct doca_mmap_advise *advise = advise_of(base->ctx);
	bool failed = base->status != DOCA_SUCCESS;
	if (failed)
		soft_ctx_fail(&advise->ctx);
	(failed ? advise->error : advise->completion)((struct doca_mmap_advise_task_invalidate_cache *)base,
						      base->user_data, advise->ctx.user_data);
}

static void advise_release(struct doca_task *base)
{
	base->next = advise_of(base->ctx)->free;
	advise_of(base->ctx)->free = base;
}

static const struct soft_ctx_class advise_class = {
	.name = "memory advice",
	.start = advise_start,
	.stopping = advise_stopping,
	.quiet = advise_quiet,
	.idle = advise_idle,
	.progress = advise_progress,
	.ready_at = advise_ready_at,
	.validate = advise_validate,
	.submit = advise_submit,
	.ended = advise_ended,
	.release = advise_release,
};

/* ---- functions of DOCA ---- */

doca_error_t doca_mmap_advise_create(struct doca_dev *dev, struct doca_mmap_advise **mmap_advise)
{
	if (dev == NULL || mmap_advise == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_mmap_advise *advise = calloc(1, sizeof(*advise));
	if (advise == NULL)
		return DOCA_ERROR_NO_MEMORY;
	soft_ctx_init(&advise->ctx, &advise_class, dev);
	*mmap_advise = advise;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_advise_destroy(struct doca_mmap_advise *mmap_advise)
{
	if (mmap_advise == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_fini(&mmap_advise->ctx);
	if (result == DOCA_SUCCESS)
		free(mmap_advise);
	return result;
}

struct doca_ctx *doca_mmap_advise_as_ctx(struct doca_mmap_advise *mmap_advise)
{
	return mmap_advise == NULL ? NULL : &mmap_advise->ctx;
}

doca_error_t doca_mmap_advise_cap_task_cache_invalidate_is_supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t doca_mmap_advise_task_cache_invalidate_get_max_buf_size(const struct doca_devinfo *devinfo,
								     uint64_t *buf_size)
{
	if (devinfo == NULL || buf_size == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*buf_size = soft_limits()->max_buf_size;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_advise_task_invalidate_cache_set_conf(
	struct doca_mmap_advise *mmap_advise, doca_mmap_advise_task_invalidate_cache_completion_cb_t completion_cb,
	doca_mmap_advise_task_invalidate_cache_completion_cb_t error_cb, uint32_t num_tasks)
{
	if (mmap_advise == NULL || completion_cb == NULL || error_cb == NULL || num_tasks == 0 || num_tasks > MAX_TASKS)
		return DOCA_ERROR_INVALID_VALUE;
	if (soft_ctx_configurable(&mmap_advise->ctx) != DOCA_SUCCESS)
		return DOCA_ERROR_NOT_PERMITTED;
	mmap_advise->completion = completion_cb;
	mmap_advise->error = error_cb;
	mmap_advise->num_tasks = num_tasks;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_advise_task_invalidate_cache_alloc_init(struct doca_mmap_advise *mmap_advise,
							       struct doca_buf *buf, union doca_data user_data,
							       struct doca_mmap_advise_task_invalidate_cache **task)
{
	if (mmap_advise == NULL || task == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap_advise->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	struct doca_task *taken = mmap_advise->free;
	if (taken == NULL)
		return DOCA_ERROR_NO_MEMORY;
	mmap_advise->free = taken->next;
	doca_error_t result = soft_task_take(taken, &mmap_advise->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	taken->user_data = user_data;
	*task = (struct doca_mmap_advise_task_invalidate_cache *)taken;
	(*task)->buf = buf;
	return DOCA_SUCCESS;
}

struct doca_task *
doca_mmap_advise_task_invalidate_cache_as_doca_task(struct doca_mmap_advise_task_invalidate_cache *task)
{
	return task == NULL ? NULL : &task->base;
}

void doca_mmap_advise_task_invalidate_cache_set_buf(struct doca_mmap_advise_task_invalidate_cache *task,
						    struct doca_buf *buf)
{
	if (task != NULL)
		task->buf = buf;
}

struct doca_buf *
doca_mmap_advise_task_invalidate_cache_get_buf(const struct doca_mmap_advise_task_invalidate_cache *task)
{
	return task == NULL ? NULL : task->buf;
}
