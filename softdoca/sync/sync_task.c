/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sync events as contexts, and their tasks. Submission executes a task, unless a wait before it is not satisfied: the
 * background thread and progress go on with both when it is. A failed task stops the context; the tasks behind it are
 * not executed, and flushed to the error callback.
 */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

#include "error.h"
#include "now.h"
#include "sizes.h"
#include "soft_sync.h"
#include "sync_event.h"

/* The values of a task, as its kind uses them. */
struct soft_sync_task {
	struct doca_task base;
	enum soft_sync_kind kind;
	uint64_t value, mask;
	uint64_t *result;
	doca_error_t outcome; /* once executed */
};

/* DOCA has one type for each kind. */
struct doca_sync_event_task_get {
	struct soft_sync_task task;
};
struct doca_sync_event_task_notify_set {
	struct soft_sync_task task;
};
struct doca_sync_event_task_notify_add {
	struct soft_sync_task task;
};
struct doca_sync_event_task_wait_eq {
	struct soft_sync_task task;
};
struct doca_sync_event_task_wait_neq {
	struct soft_sync_task task;
};

_Static_assert(offsetof(struct soft_sync_task, base) == 0, "a task is cast to its sync task");

static struct doca_sync_event *event_of(struct doca_ctx *ctx)
{
	return (struct doca_sync_event *)ctx;
}

/* ---- start ---- */

static void free_pools(struct doca_sync_event *event)
{
	for (size_t kind = 0; kind < SOFT_SYNC_KINDS; kind++) {
		free(event->tasks[kind].pool);
		event->tasks[kind].pool = NULL;
		event->tasks[kind].free = NULL;
	}
}

static bool make_pool(struct soft_sync_tasks *tasks)
{
	tasks->pool = calloc(tasks->num_tasks, sizeof(*tasks->pool));
	if (tasks->pool == NULL)
		return false;
	for (uint32_t i = tasks->num_tasks; i-- > 0;) {
		tasks->pool[i].base.next = tasks->free;
		tasks->free = &tasks->pool[i].base;
	}
	return true;
}

static doca_error_t sync_start(struct doca_ctx *ctx)
{
	struct doca_sync_event *event = event_of(ctx);
	doca_error_t result = soft_sync_ready(event);
	for (size_t kind = 0; kind < SOFT_SYNC_KINDS && result == DOCA_SUCCESS; kind++) {
		if (event->tasks[kind].num_tasks > 0 && !make_pool(&event->tasks[kind]))
			result = DOCA_ERROR_INITIALIZATION;
	}
	if (result != DOCA_SUCCESS)
		free_pools(event);
	event->failed = false;
	return result;
}

/* ---- stop ---- */

/* From now on progress flushes the tasks that are not executed. */
static void sync_stopping(struct doca_ctx *ctx)
{
	soft_job_stop(&event_of(ctx)->job);
}

static bool sync_quiet(const struct doca_ctx *ctx)
{
	(void)ctx;
	return true;
}

/* An export that an importer holds back is ended by the next start, or when the event is destroyed. */
static void sync_idle(struct doca_ctx *ctx)
{
	soft_job_stop(&event_of(ctx)->job);
	free_pools(event_of(ctx));
	(void)soft_sync_end_export(event_of(ctx));
}

/* ---- execution ---- */

static bool is_wait(const struct soft_sync_task *task)
{
	return task->kind == SOFT_SYNC_WAIT_EQ || task->kind == SOFT_SYNC_WAIT_NEQ;
}

/* Reports whether the mask is 0, or 1, 2, 4 or 8 consecutive bytes of ones. */
static bool valid_mask(uint64_t mask)
{
	if (mask == 0 || mask == UINT64_MAX)
		return true;
	int zeros = __builtin_ctzll(mask);
	uint64_t ones = mask >> zeros;
	return zeros % 8 == 0 && (ones == UINT8_MAX || ones == UINT16_MAX || ones == UINT32_MAX);
}

static const char *task_error(const struct soft_sync_task *task)
{
	if (is_wait(task))
		return valid_mask(task->mask) ? NULL : "its mask is not 0, or 1, 2, 4 or 8 bytes of ones";
	if (task->kind != SOFT_SYNC_NOTIFY_SET && task->result == NULL)
		return "it has no address for its result";
	return NULL;
}

static doca_error_t sync_validate(const struct doca_task *task)
{
	const char *reason = task_error((const struct soft_sync_task *)task);
	if (reason == NULL)
		return DOCA_SUCCESS;
	soft_detail("task of a sync event refused: %s", reason);
	return DOCA_ERROR_INVALID_VALUE;
}

/* AGAIN: the condition of a wait does not hold. */
static doca_error_t check_wait(struct doca_sync_event *event, const struct soft_sync_task *task)
{
	uint64_t counter;
	doca_error_t result = soft_sync_get(event, &counter);
	if (result != DOCA_SUCCESS)
		return result;
	bool equal = (counter & task->mask) == task->value;
	return equal == (task->kind == SOFT_SYNC_WAIT_EQ) ? DOCA_SUCCESS : DOCA_ERROR_AGAIN;
}

/* AGAIN: not yet. */
static doca_error_t execute(struct doca_sync_event *event, const struct soft_sync_task *task)
{
	if (sync_validate(&task->base) != DOCA_SUCCESS)
		return DOCA_ERROR_IO_FAILED;
	switch (task->kind) {
	case SOFT_SYNC_GET:
		return soft_sync_get(event, task->result);
	case SOFT_SYNC_NOTIFY_SET:
		return soft_sync_set(event, task->value);
	case SOFT_SYNC_NOTIFY_ADD:
		return soft_sync_add(event, task->value, task->result);
	case SOFT_SYNC_WAIT_EQ:
	case SOFT_SYNC_WAIT_NEQ:
		return check_wait(event, task);
	case SOFT_SYNC_KINDS:
		break;
	}
	return DOCA_ERROR_UNEXPECTED;
}

/* With the lock. False: there is no task to execute, or a wait is not satisfied. */
static bool execute_next(struct doca_sync_event *event)
{
	struct soft_sync_task *task = event->failed ? NULL : (struct soft_sync_task *)event->unexecuted;
	if (task == NULL)
		return false;
	task->outcome = execute(event, task);
	if (task->outcome == DOCA_ERROR_AGAIN)
		return false;
	event->failed = task->outcome != DOCA_SUCCESS;
	event->unexecuted = task->base.next;
	return true;
}

/* Returns whether any task was executed; sets *waits if a wait holds back the rest. */
static bool execute_tasks(struct doca_sync_event *event, bool *waits)
{
	bool moved = false;
	pthread_mutex_lock(&event->lock);
	while (execute_next(event))
		moved = true;
	*waits = event->unexecuted != NULL && !event->failed;
	pthread_mutex_unlock(&event->lock);
	return moved;
}

enum soft_job_result soft_sync_execute_more(struct soft_job *job)
{
	bool waits;
	bool moved =
		execute_tasks((struct doca_sync_event *)((char *)job - offsetof(struct doca_sync_event, job)), &waits);
	if (!waits)
		return SOFT_JOB_DONE;
	return moved ? SOFT_JOB_MOVED : SOFT_JOB_WAITS;
}

/* ---- submission and progress ---- */

static void append(struct doca_sync_event *event, struct doca_task *task)
{
	pthread_mutex_lock(&event->lock);
	task->next = NULL;
	if (event->oldest == NULL)
		event->oldest = task;
	else
		event->newest->next = task;
	event->newest = task;
	if (event->unexecuted == NULL)
		event->unexecuted = task;
	pthread_mutex_unlock(&event->lock);
}

static doca_error_t sync_submit(struct doca_task *task)
{
	struct doca_sync_event *event = event_of(task->ctx);
	bool waits;
	append(event, task);
	execute_tasks(event, &waits);
	if (waits)
		soft_job_start(&event->job);
	return DOCA_SUCCESS;
}

/* Takes the oldest task if it is executed, or fails it if it is flushed; else NULL. */
static struct soft_sync_task *take_oldest(struct doca_sync_event *event, bool flushes)
{
	pthread_mutex_lock(&event->lock);
	struct doca_task *task = event->oldest;
	bool executed = task != event->unexecuted;
	if (!executed && !flushes)
		task = NULL;
	if (task != NULL) {
		event->oldest = task->next;
		if (!executed)
			event->unexecuted = task->next;
		task->next = NULL;
	}
	pthread_mutex_unlock(&event->lock);
	if (task != NULL && !executed)
		((struct soft_sync_task *)task)->outcome = DOCA_ERROR_IO_FAILED;
	return (struct soft_sync_task *)task;
}

/* The process that updates the counter may need the CPU. */
static void note_idle_poll(struct doca_sync_event *event)
{
	if (++event->idle_polls % SOFT_IDLE_POLLS == 0)
		sched_yield();
}

static bool sync_progress(struct doca_ctx *ctx)
{
	struct doca_sync_event *event = event_of(ctx);
	bool waits = false;
	if (ctx->state == DOCA_CTX_STATE_RUNNING)
		execute_tasks(event, &waits);
	struct soft_sync_task *task = take_oldest(event, ctx->state == DOCA_CTX_STATE_STOPPING);
	if (task != NULL)
		soft_task_complete(&task->base, task->outcome);
	else if (waits)
		note_idle_poll(event);
	return task != NULL;
}

/* No descriptor announces that another process has updated the counter, so a wait is looked at again and again. */
static uint64_t sync_ready_at(const struct doca_ctx *ctx)
{
	struct doca_sync_event *event = (struct doca_sync_event *)ctx;
	bool waits = false;
	if (ctx->state == DOCA_CTX_STATE_RUNNING)
		execute_tasks(event, &waits);
	pthread_mutex_lock(&event->lock);
	bool inflight = event->oldest != NULL, executed = event->oldest != event->unexecuted;
	pthread_mutex_unlock(&event->lock);
	if (!inflight)
		return UINT64_MAX;
	return executed || !waits ? 0 : soft_now_ns() + SOFT_SYNC_POLL_NS;
}

/* The callback is called last: it may free the task, submit it again, or stop the context. */
static void sync_ended(struct doca_task *base)
{
	struct doca_sync_event *event = event_of(base->ctx);
	struct soft_sync_task *task = (struct soft_sync_task *)base;
	const struct soft_sync_tasks *tasks = &event->tasks[task->kind];
	const union soft_sync_callback *callback = base->status == DOCA_SUCCESS ? &tasks->completion : &tasks->error;
	union doca_data ctx_data = event->ctx.user_data;
	if (base->status != DOCA_SUCCESS)
		soft_ctx_fail(&event->ctx);
	switch (task->kind) {
	case SOFT_SYNC_GET:
		callback->get((struct doca_sync_event_task_get *)task, base->user_data, ctx_data);
		break;
	case SOFT_SYNC_NOTIFY_SET:
		callback->notify_set((struct doca_sync_event_task_notify_set *)task, base->user_data, ctx_data);
		break;
	case SOFT_SYNC_NOTIFY_ADD:
		callback->notify_add((struct doca_sync_event_task_notify_add *)task, base->user_data, ctx_data);
		break;
	case SOFT_SYNC_WAIT_EQ:
		callback->wait_eq((struct doca_sync_event_task_wait_eq *)task, base->user_data, ctx_data);
		break;
	case SOFT_SYNC_WAIT_NEQ:
		callback->wait_neq((struct doca_sync_event_task_wait_neq *)task, base->user_data, ctx_data);
		break;
	case SOFT_SYNC_KINDS:
		break;
	}
}

static void sync_release(struct doca_task *base)
{
	struct soft_sync_tasks *tasks = &event_of(base->ctx)->tasks[((struct soft_sync_task *)base)->kind];
	base->next = tasks->free;
	tasks->free = base;
}

const struct soft_ctx_class soft_sync_class = {
	.name = "sync event",
	.start = sync_start,
	.stopping = sync_stopping,
	.quiet = sync_quiet,
	.idle = sync_idle,
	.progress = sync_progress,
	.ready_at = sync_ready_at,
	.validate = sync_validate,
	.submit = sync_submit,
	.ended = sync_ended,
	.release = sync_release,
};

/* ---- configuration and allocation ---- */

static doca_error_t set_conf(struct doca_sync_event *event, enum soft_sync_kind kind,
			     const union soft_sync_callback *completion, const union soft_sync_callback *error,
			     uint32_t num_tasks)
{
	if (num_tasks == 0 || num_tasks > SOFT_MAX_SYNC_TASKS)
		return DOCA_ERROR_INVALID_VALUE;
	if (soft_sync_running(event))
		return DOCA_ERROR_NOT_PERMITTED;
	event->tasks[kind] =
		(struct soft_sync_tasks){.completion = *completion, .error = *error, .num_tasks = num_tasks};
	return DOCA_SUCCESS;
}

static doca_error_t alloc_init(struct doca_sync_event *event, const struct soft_sync_task *values,
			       union doca_data user_data, struct soft_sync_task **task)
{
	if (event->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	struct soft_sync_tasks *tasks = &event->tasks[values->kind];
	struct doca_task *taken = tasks->free;
	if (taken == NULL)
		return DOCA_ERROR_NO_MEMORY;
	struct doca_task *rest = taken->next;
	doca_error_t result = soft_task_take(taken, &event->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	tasks->free = rest;
	*task = (struct soft_sync_task *)taken;
	**task = (struct soft_sync_task){
		.base = *taken,
		.kind = values->kind,
		.value = values->value,
		.mask = values->mask,
		.result = values->result,
	};
	taken->user_data = user_data;
	return DOCA_SUCCESS;
}

/* Functions that every kind has. k: its name in DOCA's functions; id: its name in the enum; params: its values. */
#define DEFINE_KIND(k, id, params, ...)                                                                       \
	doca_error_t soft_doca_sync_event_task_##k##_set_conf(                                                \
		struct doca_sync_event *event, doca_sync_event_task_##k##_completion_cb_t completion_cb,      \
		doca_sync_event_task_##k##_completion_cb_t error_cb, uint32_t num_tasks)                      \
	{                                                                                                     \
		if (event == NULL || completion_cb == NULL || error_cb == NULL)                               \
			return DOCA_ERROR_INVALID_VALUE;                                                      \
		return set_conf(event, id, &(union soft_sync_callback){.k = completion_cb},                   \
				&(union soft_sync_callback){.k = error_cb}, num_tasks);                       \
	}                                                                                                     \
	doca_error_t soft_doca_sync_event_task_##k##_alloc_init(struct doca_sync_event *event, UNWRAP params, \
								union doca_data user_data,                    \
								struct doca_sync_event_task_##k **task)       \
	{                                                                                                     \
		struct soft_sync_task *taken, values = {.kind = id, __VA_ARGS__};                             \
		if (event == NULL || task == NULL)                                                            \
			return DOCA_ERROR_INVALID_VALUE;                                                      \
		doca_error_t result = alloc_init(event, &values, user_data, &taken);                          \
		if (result == DOCA_SUCCESS)                                                                   \
			*task = (struct doca_sync_event_task_##k *)taken;                                     \
		return result;                                                                                \
	}                                                                                                     \
	struct doca_task *soft_doca_sync_event_task_##k##_as_doca_task(struct doca_sync_event_task_##k *task) \
	{                                                                                                     \
		return task == NULL ? NULL : &task->task.base;                                                \
	}

/* The setter and getter of one value. member: where a task has it. */
#define DEFINE_VALUE(k, type, name, member, none)                                                         \
	void soft_doca_sync_event_task_##k##_set_##name(struct doca_sync_event_task_##k *task, type name) \
	{                                                                                                 \
		if (task != NULL)                                                                         \
			task->task.member = name;                                                         \
	}                                                                                                 \
	type soft_doca_sync_event_task_##k##_get_##name(const struct doca_sync_event_task_##k *task)      \
	{                                                                                                 \
		return task == NULL ? none : task->task.member;                                           \
	}

#define UNWRAP(...) __VA_ARGS__

DEFINE_KIND(get, SOFT_SYNC_GET, (uint64_t * ret_val_ptr), .result = ret_val_ptr)
DEFINE_VALUE(get, uint64_t *, ret_val_ptr, result, NULL)

DEFINE_KIND(notify_set, SOFT_SYNC_NOTIFY_SET, (uint64_t set_val), .value = set_val)
DEFINE_VALUE(notify_set, uint64_t, set_val, value, 0)

DEFINE_KIND(notify_add, SOFT_SYNC_NOTIFY_ADD, (uint64_t inc_val, uint64_t *fetched_val_ptr), .value = inc_val,
	    .result = fetched_val_ptr)
DEFINE_VALUE(notify_add, uint64_t, inc_val, value, 0)
DEFINE_VALUE(notify_add, uint64_t *, fetched_val_ptr, result, NULL)

DEFINE_KIND(wait_eq, SOFT_SYNC_WAIT_EQ, (uint64_t wait_val, uint64_t mask), .value = wait_val, .mask = mask)
DEFINE_VALUE(wait_eq, uint64_t, wait_val, value, 0)
DEFINE_VALUE(wait_eq, uint64_t, mask, mask, 0)

DEFINE_KIND(wait_neq, SOFT_SYNC_WAIT_NEQ, (uint64_t wait_val, uint64_t mask), .value = wait_val, .mask = mask)
DEFINE_VALUE(wait_neq, uint64_t, wait_val, value, 0)
DEFINE_VALUE(wait_neq, uint64_t, mask, mask, 0)

/* ---- what the device supports ---- */

static doca_error_t supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t soft_doca_sync_event_cap_task_get_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo);
}

doca_error_t soft_doca_sync_event_cap_task_notify_set_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo);
}

doca_error_t soft_doca_sync_event_cap_task_notify_add_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo);
}

doca_error_t soft_doca_sync_event_cap_task_wait_eq_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo);
}

doca_error_t soft_doca_sync_event_cap_task_wait_neq_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo);
}
