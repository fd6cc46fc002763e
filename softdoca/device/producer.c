/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producers. A submitted task has a reserved slot of its consumer; submission writes the bytes into the consumer's
 * memory, unless an older task has still to be written.
 */
#define _GNU_SOURCE
#include "producer.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "comch_connection.h"
#include "config.h"
#include "ctx.h"
#include "error.h"
#include "fast.h"
#include "fault.h"
#include "lane.h"
#include "mmap.h"
#include "now.h"
#include "sizes.h"
#include "soft.h"

/* ---- what may be sent ---- */

static size_t data_len(const struct doca_comch_producer_task_send *task)
{
	return task->buf == NULL ? 0 : task->buf->data_len;
}

static const char *send_error(const struct doca_comch_producer_task_send *task)
{
	if (task->buf != NULL) {
		const char *reason = soft_buf_usage_error(task->buf, task->task.ctx->dev);
		if (reason != NULL)
			return reason;
		if (task->buf->mmap->import != NULL)
			return "the buffer is of an imported memory map";
		if (task->buf->next != NULL || task->buf->first != task->buf)
			return "the buffer is part of a list";
		if (task->buf->data_len > soft_limits()->max_fast_buf_size)
			return "the buffer has more bytes than max_fast_buf_size";
	}
	return data_len(task) == 0 && task->imm_len == 0 ? "there is neither data nor immediate data" : NULL;
}

static doca_error_t producer_validate(const struct doca_task *task)
{
	const char *reason = send_error((const struct doca_comch_producer_task_send *)task);
	if (reason == NULL)
		return DOCA_SUCCESS;
	soft_detail("send task refused: %s", reason);
	return DOCA_ERROR_INVALID_VALUE;
}

/* ---- start and stop ---- */

void soft_producer_free_pool(struct doca_comch_producer *producer)
{
	pthread_mutex_destroy(&producer->lock);
	free(producer->tasks);
	free(producer->imm);
	producer->tasks = NULL;
	producer->imm = NULL;
}

doca_error_t soft_producer_make_pool(struct doca_comch_producer *producer, uint32_t imm_capacity)
{
	STAILQ_INIT(&producer->pool);
	STAILQ_INIT(&producer->sends);
	producer->unsent = NULL;
	producer->broken = false;
	producer->retry_at = 0;
	pthread_mutex_init(&producer->lock, NULL);
	producer->imm_capacity = imm_capacity;
	producer->tasks = calloc(producer->num_tasks, sizeof(*producer->tasks));
	producer->imm = calloc(producer->num_tasks, (size_t)producer->imm_capacity + 1);
	if (producer->tasks == NULL || producer->imm == NULL) {
		soft_producer_free_pool(producer);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (uint32_t i = 0; i < producer->num_tasks; i++) {
		producer->tasks[i].imm = producer->imm + (size_t)i * producer->imm_capacity;
		STAILQ_INSERT_TAIL(&producer->pool, &producer->tasks[i], queued);
	}
	return DOCA_SUCCESS;
}

static doca_error_t producer_start(struct doca_ctx *ctx)
{
	struct doca_comch_producer *producer = soft_producer_of(ctx);
	if (producer->num_tasks == 0) {
		soft_detail("a producer needs doca_comch_producer_task_send_set_conf before it starts");
		return DOCA_ERROR_INVALID_VALUE;
	}
	doca_error_t result = soft_member_activate(&producer->member, ctx->pe);
	if (result != DOCA_SUCCESS)
		return result;
	result = soft_producer_make_pool(producer, (uint32_t)soft_limits()->max_imm_data_len);
	if (result != DOCA_SUCCESS)
		soft_member_deactivate(&producer->member, ctx->pe);
	return result;
}

/* From now on progress flushes the tasks that are not executed. */
static void producer_stopping(struct doca_ctx *ctx)
{
	soft_job_stop(&soft_producer_of(ctx)->job);
}

static bool producer_quiet(const struct doca_ctx *ctx)
{
	(void)ctx;
	return true;
}

static void producer_idle(struct doca_ctx *ctx)
{
	struct doca_comch_producer *producer = soft_producer_of(ctx);
	soft_job_stop(&producer->job);
	soft_producer_free_pool(producer);
	soft_member_deactivate(&producer->member, ctx->pe);
}

/* ---- progress ---- */

/* The callback is called last: it may free the task, submit it again, or stop the context. */
void soft_producer_ended(struct doca_task *task)
{
	struct doca_comch_producer *producer = soft_producer_of(task->ctx);
	if (task->status == DOCA_ERROR_IO_FAILED)
		soft_ctx_fail(&producer->ctx);
	(task->status == DOCA_SUCCESS ? producer->sent : producer->failed)((struct doca_comch_producer_task_send *)task,
									   task->user_data, producer->ctx.user_data);
}

/* ---- execution; with the lock ---- */

/* Sets the result. False: the lane is full. An injected fault may be AGAIN, too. */
static bool execute(struct doca_comch_producer_task_send *task)
{
	const struct doca_comch_producer *producer = soft_producer_of(task->task.ctx);
	const void *bytes = task->buf == NULL ? NULL : task->buf->data;
	task->result = task->fault;
	if (task->result == DOCA_SUCCESS)
		task->result = producer_validate(&task->task);
	if (task->result != DOCA_SUCCESS) {
		soft_lane_cancel(task->lane);
		return true;
	}
	task->result =
		soft_lane_deliver(task->lane, producer->member.id, bytes, data_len(task), task->imm, task->imm_len);
	return task->result != DOCA_ERROR_AGAIN;
}

/* False: there is none, or its lane is full. */
static bool execute_next(struct doca_comch_producer *producer)
{
	struct doca_comch_producer_task_send *next = producer->broken ? NULL : producer->unsent;
	if (next == NULL || !execute(next))
		return false;
	producer->broken = next->result == DOCA_ERROR_IO_FAILED;
	producer->unsent = STAILQ_NEXT(next, queued);
	return true;
}

/* ---- when it executes ---- */

/* Returns whether any task was executed; sets *full if not all were. */
static bool execute_what_fits(struct doca_comch_producer *producer, bool *full)
{
	bool moved = false;
	pthread_mutex_lock(&producer->lock);
	while (execute_next(producer))
		moved = true;
	*full = producer->unsent != NULL && !producer->broken;
	pthread_mutex_unlock(&producer->lock);
	return moved;
}

/*
 * A lane is full when its consumer has not progressed for hundreds of messages. The producers of a side share it, so
 * none can watch it; they retry after a pause.
 */
static bool send_what_fits(struct doca_comch_producer *producer)
{
	bool full = producer->retry_at != 0 && soft_now_ns() < producer->retry_at, moved = false;
	if (!full) {
		moved = execute_what_fits(producer, &full);
		producer->retry_at = full ? soft_now_ns() + SOFT_FULL_LANE_NS : 0;
	}
	if (full)
		soft_job_start(&producer->job);
	return moved;
}

/* The job of a producer. Its engine is woken, because tasks complete. */
static enum soft_job_result send_more(struct soft_job *job)
{
	struct doca_comch_producer *producer =
		(struct doca_comch_producer *)((char *)job - offsetof(struct doca_comch_producer, job));
	bool full;
	bool moved = execute_what_fits(producer, &full);
	if (moved)
		soft_member_wake(&producer->member);
	if (!full)
		return SOFT_JOB_DONE;
	return moved ? SOFT_JOB_MOVED : SOFT_JOB_WAITS;
}

/* ---- completion ---- */

/* Takes the oldest task, if it is executed or any is taken; else NULL. */
static struct doca_comch_producer_task_send *take_oldest(struct doca_comch_producer *producer, bool any, bool *executed)
{
	pthread_mutex_lock(&producer->lock);
	struct doca_comch_producer_task_send *oldest = STAILQ_FIRST(&producer->sends);
	*executed = oldest != producer->unsent;
	if (!*executed && !any)
		oldest = NULL;
	if (oldest != NULL)
		STAILQ_REMOVE_HEAD(&producer->sends, queued);
	if (oldest != NULL && !*executed)
		producer->unsent = STAILQ_NEXT(oldest, queued);
	pthread_mutex_unlock(&producer->lock);
	return oldest;
}

/* A live consumer loses nothing but the reservations of tasks that are flushed. */
static bool complete_oldest(struct doca_comch_producer *producer, bool flushes)
{
	bool executed;
	struct doca_comch_producer_task_send *task = take_oldest(producer, flushes, &executed);
	if (task == NULL)
		return false;
	if (!executed) {
		soft_lane_cancel(task->lane);
		task->result = soft_member_is_up(&producer->member) ? DOCA_ERROR_SHUTDOWN
								    : soft_member_fault(&producer->member);
	}
	soft_lane_unref(task->lane);
	task->lane = NULL;
	soft_task_complete(&task->task, task->result);
	return true;
}

static bool producer_progress(struct doca_ctx *ctx)
{
	struct doca_comch_producer *producer = soft_producer_of(ctx);
	soft_member_clear_wakeup(&producer->member);
	if (complete_oldest(producer, ctx->state == DOCA_CTX_STATE_STOPPING))
		return true;
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		return false;
	if (soft_member_is_up(&producer->member))
		return producer->retry_at != 0 && send_what_fits(producer);
	soft_ctx_fail(ctx);
	return true;
}

static uint64_t producer_ready_at(const struct doca_ctx *ctx)
{
	struct doca_comch_producer *producer = soft_producer_of(ctx);
	pthread_mutex_lock(&producer->lock);
	bool inflight = !STAILQ_EMPTY(&producer->sends);
	bool executed = inflight && STAILQ_FIRST(&producer->sends) != producer->unsent;
	pthread_mutex_unlock(&producer->lock);
	if (executed || (inflight && ctx->state == DOCA_CTX_STATE_STOPPING))
		return 0;
	return inflight ? producer->retry_at : UINT64_MAX;
}

/* ---- submission ---- */

/*
 * AGAIN until the consumer has posted a buffer that is not reserved. Programs retry without progress in between, so
 * posted slots are received here.
 */
static doca_error_t producer_submit(struct doca_task *task)
{
	struct doca_comch_producer_task_send *send = (struct doca_comch_producer_task_send *)task;
	struct doca_comch_producer *producer = soft_producer_of(task->ctx);
	struct soft_lane *lane = soft_lane_find(producer->member.fast, send->consumer_id);
	if (lane == NULL) {
		soft_detail("the peer has no consumer %u", (unsigned)send->consumer_id);
		return DOCA_ERROR_INVALID_VALUE;
	}
	doca_error_t result = soft_lane_reserve(lane, data_len(send), send->imm_len);
	if (result != DOCA_SUCCESS) {
		soft_lane_unref(lane);
		return result;
	}
	send->lane = lane;
	send->fault = soft_fault_completion();
	pthread_mutex_lock(&producer->lock);
	STAILQ_INSERT_TAIL(&producer->sends, send, queued);
	if (producer->unsent == NULL)
		producer->unsent = send;
	pthread_mutex_unlock(&producer->lock);
	send_what_fits(producer);
	return DOCA_SUCCESS;
}

void soft_producer_release(struct doca_task *task)
{
	STAILQ_INSERT_HEAD(&soft_producer_of(task->ctx)->pool, (struct doca_comch_producer_task_send *)task, queued);
}

static const struct soft_ctx_class producer_class = {
	.name = "comch producer",
	.is_comch = true,
	.start = producer_start,
	.stopping = producer_stopping,
	.quiet = producer_quiet,
	.idle = producer_idle,
	.progress = producer_progress,
	.ready_at = producer_ready_at,
	.validate = producer_validate,
	.submit = producer_submit,
	.ended = soft_producer_ended,
	.release = soft_producer_release,
};

/* Immediate data beyond the maximum is cut off: the function cannot return an error. */
static void set_imm(struct doca_comch_producer_task_send *task, const uint8_t *imm_data, uint32_t imm_data_len)
{
	uint32_t capacity = soft_producer_of(task->task.ctx)->imm_capacity;
	task->imm_len = imm_data == NULL ? 0 : imm_data_len < capacity ? imm_data_len : capacity;
	if (task->imm_len > 0)
		memcpy(task->imm, imm_data, task->imm_len);
}

doca_error_t soft_doca_comch_producer_task_send_alloc_init(struct doca_comch_producer *producer,
							   const struct doca_buf *buf, uint8_t *imm_data,
							   uint32_t imm_data_len, uint32_t consumer_id,
							   struct doca_comch_producer_task_send **task)
{
	if (producer == NULL || task == NULL || (imm_data == NULL && imm_data_len > 0))
		return DOCA_ERROR_INVALID_VALUE;
	if (producer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	if (imm_data_len > producer->imm_capacity)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_comch_producer_task_send *taken = STAILQ_FIRST(&producer->pool);
	if (taken == NULL)
		return DOCA_ERROR_NO_MEMORY;
	doca_error_t result = soft_task_take(&taken->task, &producer->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	STAILQ_REMOVE_HEAD(&producer->pool, queued);
	taken->buf = buf;
	taken->consumer_id = consumer_id;
	set_imm(taken, imm_data, imm_data_len);
	*task = taken;
	return DOCA_SUCCESS;
}

const struct doca_buf *soft_doca_comch_producer_task_send_get_buf(const struct doca_comch_producer_task_send *task)
{
	return task == NULL ? NULL : task->buf;
}

void soft_doca_comch_producer_task_send_set_buf(struct doca_comch_producer_task_send *task, const struct doca_buf *buf)
{
	if (task != NULL)
		task->buf = buf;
}

uint32_t soft_doca_comch_producer_task_send_get_consumer_id(const struct doca_comch_producer_task_send *task)
{
	return task == NULL ? SOFT_NO_ID : task->consumer_id;
}

void soft_doca_comch_producer_task_send_set_consumer_id(struct doca_comch_producer_task_send *task,
							const uint32_t consumer_id)
{
	if (task != NULL)
		task->consumer_id = consumer_id;
}

uint8_t *soft_doca_comch_producer_task_send_get_imm_data(const struct doca_comch_producer_task_send *task)
{
	return task == NULL || task->imm_len == 0 ? NULL : task->imm;
}

uint32_t soft_doca_comch_producer_task_send_get_imm_data_len(const struct doca_comch_producer_task_send *task)
{
	return task == NULL ? 0 : task->imm_len;
}

void soft_doca_comch_producer_task_send_set_imm_data(struct doca_comch_producer_task_send *task, uint8_t *imm_data,
						     uint32_t imm_data_len)
{
	if (task != NULL)
		set_imm(task, imm_data, imm_data_len);
}

struct doca_task *soft_doca_comch_producer_task_send_as_task(struct doca_comch_producer_task_send *task)
{
	return (struct doca_task *)task;
}

/* ---- functions of DOCA ---- */

static void leave_connection(struct doca_comch_producer *producer)
{
	soft_member_leave(&producer->member);
}

doca_error_t soft_doca_comch_producer_create(struct doca_comch_connection *comch_connection,
					     struct doca_comch_producer **producer)
{
	if (comch_connection == NULL || producer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_comch_producer *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	struct soft_fast *fast = comch_connection->fast;
	doca_error_t result = soft_member_join(&created->member, fast, SOFT_PRODUCER);
	if (result != DOCA_SUCCESS) {
		free(created);
		return result;
	}
	created->leave = leave_connection;
	created->job.run = send_more;
	soft_ctx_init(&created->ctx, &producer_class, fast->dev);
	*producer = created;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_producer_destroy(struct doca_comch_producer *producer)
{
	if (producer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_fini(&producer->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	producer->leave(producer);
	free(producer);
	return DOCA_SUCCESS;
}

struct doca_ctx *soft_doca_comch_producer_as_ctx(struct doca_comch_producer *producer)
{
	return (struct doca_ctx *)producer;
}

doca_error_t soft_doca_comch_producer_get_id(const struct doca_comch_producer *producer, uint32_t *id)
{
	if (producer == NULL || id == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*id = producer->member.id;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_producer_task_send_set_conf(
	struct doca_comch_producer *producer, doca_comch_producer_task_send_completion_cb_t task_completion_cb,
	doca_comch_producer_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks)
{
	if (producer == NULL || task_completion_cb == NULL || task_error_cb == NULL || num_send_tasks == 0 ||
	    num_send_tasks > soft_limits()->max_fast_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(&producer->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	producer->sent = task_completion_cb;
	producer->failed = task_error_cb;
	producer->num_tasks = num_send_tasks;
	return DOCA_SUCCESS;
}
