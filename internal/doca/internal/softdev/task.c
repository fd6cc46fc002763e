/* SPDX-License-Identifier: Apache-2.0 */
#include "ctx.h"
#include "fault.h"

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
	soft_pe_notify(ctx->pe); /* a stopping context may have waited for just this */
}

/* A task that is the program's again may be freed, and allocated anew, by its own callback. */
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

/* What every way to submit checks. A task that the library holds cannot be submitted twice. */
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
		soft_pe_polled(task->ctx->pe, false); /* programs submit again and again without any progress */
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

/* Every submission is flushed at once; that reports may come late shows only with the quirk. */
doca_error_t soft_doca_task_submit_ex(struct doca_task *task, uint32_t flags)
{
	if ((flags & ~(uint32_t)(DOCA_TASK_SUBMIT_FLAG_FLUSH | DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS)) != 0)
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

/* In flight it takes effect when the task has ended and its callback has returned. Freeing twice is ignored. */
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
