/* SPDX-License-Identifier: Apache-2.0 */
#include "ctx.h"

#include <stdatomic.h>

#include "dev.h"
#include "fault.h"
#include "pe.h"
#include "soft.h"

/* ---- contexts ---- */

/* The callback sees the context in its new state, and may destroy it: do not use it afterwards. */
static void announce(struct doca_ctx *ctx, enum doca_ctx_states prev)
{
	if (ctx->pe != NULL)
		soft_pe_notify(ctx->pe);
	if (ctx->state_changed != NULL)
		ctx->state_changed(ctx->user_data, ctx, prev, ctx->state);
}

static void enter_state(struct doca_ctx *ctx, enum doca_ctx_states next)
{
	enum doca_ctx_states prev = ctx->state;
	ctx->state = next;
	announce(ctx, prev);
}

static void become_idle(struct doca_ctx *ctx)
{
	ctx->class->idle(ctx);
	enter_state(ctx, DOCA_CTX_STATE_IDLE);
}

static void begin_stopping(struct doca_ctx *ctx)
{
	enum doca_ctx_states prev = ctx->state;
	ctx->state = DOCA_CTX_STATE_STOPPING;
	ctx->class->stopping(ctx);
	announce(ctx, prev);
}

static bool nothing_outstanding(const struct doca_ctx *ctx)
{
	return ctx->allocated_tasks == 0 && ctx->class->quiet(ctx);
}

void soft_ctx_init(struct doca_ctx *ctx, const struct soft_ctx_class *class, struct doca_dev *dev)
{
	*ctx = (struct doca_ctx){.class = class, .dev = dev, .state = DOCA_CTX_STATE_IDLE};
	if (dev != NULL)
		atomic_fetch_add(&dev->users, 1);
}

doca_error_t soft_ctx_fini(struct doca_ctx *ctx)
{
	if (ctx->state != DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_IN_USE;
	soft_pe_disconnect(ctx);
	if (ctx->dev != NULL)
		atomic_fetch_sub(&ctx->dev->users, 1);
	return DOCA_SUCCESS;
}

void soft_ctx_running(struct doca_ctx *ctx)
{
	if (ctx->state != DOCA_CTX_STATE_STARTING)
		return;
	soft_pe_started(ctx->pe);
	enter_state(ctx, DOCA_CTX_STATE_RUNNING);
}

/* A failed start goes from STARTING to IDLE, which programs understand as "could not connect". */
void soft_ctx_fail(struct doca_ctx *ctx)
{
	if (ctx->state == DOCA_CTX_STATE_STARTING)
		become_idle(ctx);
	else if (ctx->state == DOCA_CTX_STATE_RUNNING)
		begin_stopping(ctx);
}

doca_error_t soft_ctx_configurable(const struct doca_ctx *ctx)
{
	return ctx->state == DOCA_CTX_STATE_IDLE ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

static bool only_waits_for_progress(const struct doca_ctx *ctx)
{
	return ctx->state == DOCA_CTX_STATE_STOPPING && nothing_outstanding(ctx);
}

bool soft_ctx_progress(struct doca_ctx *ctx)
{
	if (ctx->state == DOCA_CTX_STATE_IDLE)
		return false;
	if (!only_waits_for_progress(ctx))
		return ctx->class->progress(ctx);
	become_idle(ctx);
	return true;
}

uint64_t soft_ctx_ready_at(const struct doca_ctx *ctx)
{
	if (ctx->state == DOCA_CTX_STATE_IDLE)
		return UINT64_MAX;
	return only_waits_for_progress(ctx) ? 0 : ctx->class->ready_at(ctx);
}

doca_error_t soft_doca_ctx_start(struct doca_ctx *ctx)
{
	if (ctx == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->state != DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_BAD_STATE;
	if (ctx->pe == NULL && !ctx->class->needs_no_engine)
		return DOCA_ERROR_NOT_CONNECTED;
	doca_error_t result = ctx->class->start(ctx);
	if (result == DOCA_SUCCESS)
		enter_state(ctx, DOCA_CTX_STATE_RUNNING);
	else if (result == DOCA_ERROR_IN_PROGRESS)
		enter_state(ctx, DOCA_CTX_STATE_STARTING);
	return result;
}

/*
 * Stopping an IDLE context succeeds: programs whose callback stops a context stop it again when they clean up. From
 * inside a callback a stop is never immediate, because the caller of the callback still uses the context; the next
 * progress completes it.
 */
doca_error_t soft_doca_ctx_stop(struct doca_ctx *ctx)
{
	if (ctx == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->state == DOCA_CTX_STATE_IDLE)
		return DOCA_SUCCESS;
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		return DOCA_ERROR_IN_PROGRESS;
	doca_error_t result = ctx->class->stoppable == NULL ? DOCA_SUCCESS : ctx->class->stoppable(ctx);
	if (result != DOCA_SUCCESS)
		return result;
	bool in_callback = ctx->pe != NULL && soft_pe_progressing(ctx->pe);
	if (ctx->state == DOCA_CTX_STATE_RUNNING && !in_callback && nothing_outstanding(ctx)) {
		become_idle(ctx);
		return DOCA_SUCCESS;
	}
	begin_stopping(ctx);
	return DOCA_ERROR_IN_PROGRESS;
}

doca_error_t soft_doca_ctx_get_num_inflight_tasks(const struct doca_ctx *ctx, size_t *num_inflight_tasks)
{
	if (ctx == NULL || num_inflight_tasks == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*num_inflight_tasks = ctx->inflight_tasks;
	return DOCA_SUCCESS;
}

/* DOCA allows this in IDLE only. */
doca_error_t soft_doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data)
{
	if (ctx == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(ctx);
	if (result == DOCA_SUCCESS)
		ctx->user_data = user_data;
	return result;
}

doca_error_t soft_doca_ctx_get_user_data(const struct doca_ctx *ctx, union doca_data *user_data)
{
	if (ctx == NULL || user_data == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = ctx->user_data;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_ctx_set_state_changed_cb(struct doca_ctx *ctx, doca_ctx_state_changed_callback_t cb)
{
	if (ctx == NULL || cb == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(ctx);
	if (result == DOCA_SUCCESS)
		ctx->state_changed = cb;
	return result;
}

doca_error_t soft_doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state)
{
	if (ctx == NULL || state == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*state = ctx->state;
	return DOCA_SUCCESS;
}

/* Every submission is flushed at once. */
void soft_doca_ctx_flush_tasks(struct doca_ctx *ctx)
{
	(void)ctx;
}

/* There is one completion vector. */
doca_error_t soft_doca_ctx_cap_get_num_completion_vectors(const struct doca_devinfo *devinfo,
							  uint32_t *num_comp_vectors)
{
	if (devinfo == NULL || num_comp_vectors == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*num_comp_vectors = 1;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_ctx_set_completion_vector(struct doca_ctx *ctx, uint32_t comp_vector)
{
	if (ctx == NULL || comp_vector != 0)
		return DOCA_ERROR_INVALID_VALUE;
	return soft_ctx_configurable(ctx);
}

/* ---- tasks ---- */

doca_error_t soft_task_take(struct doca_task *task, struct doca_ctx *ctx)
{
	if (ctx->state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	*task = (struct doca_task){.ctx = ctx, .state = SOFT_TASK_OWNED};
	ctx->allocated_tasks++;
	return DOCA_SUCCESS;
}

static void release(struct doca_task *task)
{
	struct doca_ctx *ctx = task->ctx;
	task->state = SOFT_TASK_POOLED;
	ctx->class->release(task);
	ctx->allocated_tasks--;
	soft_pe_notify(ctx->pe); /* a stopping context may wait for it */
}

/* The callback may free a task that the program owns, and allocate it again. */
void soft_task_complete(struct doca_task *task, doca_error_t status)
{
	bool released = task->state == SOFT_TASK_RELEASED;
	task->status = status;
	task->state = released ? SOFT_TASK_RELEASED : SOFT_TASK_OWNED;
	task->ctx->inflight_tasks--;
	task->ctx->class->ended(task);
	if (released)
		release(task);
}

/* Checked by every way to submit. A submitted task cannot be submitted again. */
static doca_error_t check_submittable(const struct doca_task *task)
{
	if (task == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (task->state != SOFT_TASK_OWNED || task->ctx->state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	return DOCA_SUCCESS;
}

static doca_error_t hand_over(struct doca_task *task)
{
	doca_error_t result = soft_fault_submit();
	if (result == DOCA_SUCCESS)
		result = task->ctx->class->submit(task);
	if (result == DOCA_ERROR_AGAIN)
		soft_pe_polled(task->ctx->pe, false); /* programs retry without progress in between */
	if (result != DOCA_SUCCESS)
		return result;
	task->state = SOFT_TASK_SUBMITTED;
	task->status = DOCA_ERROR_IN_PROGRESS;
	task->ctx->inflight_tasks++;
	soft_pe_notify(task->ctx->pe);
	return DOCA_SUCCESS;
}

static doca_error_t submit(struct doca_task *task, bool optimized)
{
	doca_error_t result = check_submittable(task);
	if (result != DOCA_SUCCESS)
		return result;
	task->optimized = optimized;
	return hand_over(task);
}

doca_error_t soft_doca_task_submit(struct doca_task *task)
{
	return submit(task, false);
}

/* Every submission is flushed at once; late reports are a quirk; there is no profile. */
doca_error_t soft_doca_task_submit_ex(struct doca_task *task, uint32_t flags)
{
	const uint32_t known = DOCA_TASK_SUBMIT_FLAG_FLUSH | DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS |
			       DOCA_TASK_SUBMIT_FLAG_RANGE_PROFILING_REQUESTED;
	if ((flags & ~known) != 0)
		return DOCA_ERROR_INVALID_VALUE;
	return submit(task, (flags & DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS) != 0);
}

doca_error_t soft_doca_task_try_submit(struct doca_task *task)
{
	doca_error_t result = check_submittable(task);
	if (result == DOCA_SUCCESS)
		result = task->ctx->class->validate(task);
	return result == DOCA_SUCCESS ? submit(task, false) : result;
}

/* A task in flight is freed when it has completed and its callback has returned. Freeing twice is ignored. */
void soft_doca_task_free(struct doca_task *task)
{
	if (task == NULL)
		return;
	if (task->state == SOFT_TASK_SUBMITTED)
		task->state = SOFT_TASK_RELEASED;
	else if (task->state == SOFT_TASK_OWNED)
		release(task);
}

doca_error_t soft_doca_task_get_status(const struct doca_task *task)
{
	return task == NULL ? DOCA_ERROR_INVALID_VALUE : task->status;
}

void soft_doca_task_set_user_data(struct doca_task *task, union doca_data user_data)
{
	if (task != NULL)
		task->user_data = user_data;
}

union doca_data soft_doca_task_get_user_data(const struct doca_task *task)
{
	return task == NULL ? (union doca_data){.u64 = 0} : task->user_data;
}

struct doca_ctx *soft_doca_task_get_ctx(const struct doca_task *task)
{
	return task == NULL ? NULL : task->ctx;
}
