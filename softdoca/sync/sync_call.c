/* SPDX-License-Identifier: Apache-2.0 */
/* The counter of a sync event, and the direct calls: get, update and wait. Any thread may call. */
#include <sched.h>

#include "config.h"
#include "error.h"
#include "now.h"
#include "remote.h"
#include "sizes.h"
#include "soft_sync.h"
#include "sync_event.h"

/* ---- the counter ---- */

static doca_error_t begin_access(struct doca_sync_event *event)
{
	return event->import == NULL ? DOCA_SUCCESS : soft_import_begin(event->import);
}

static void end_access(struct doca_sync_event *event)
{
	if (event->import != NULL)
		soft_import_end(event->import);
}

doca_error_t soft_sync_get(struct doca_sync_event *event, uint64_t *value)
{
	doca_error_t result = begin_access(event);
	if (result != DOCA_SUCCESS)
		return result;
	*value = atomic_load(event->counter);
	end_access(event);
	return DOCA_SUCCESS;
}

doca_error_t soft_sync_set(struct doca_sync_event *event, uint64_t value)
{
	doca_error_t result = begin_access(event);
	if (result != DOCA_SUCCESS)
		return result;
	atomic_store(event->counter, value);
	end_access(event);
	return DOCA_SUCCESS;
}

doca_error_t soft_sync_add(struct doca_sync_event *event, uint64_t value, uint64_t *fetched)
{
	doca_error_t result = begin_access(event);
	if (result != DOCA_SUCCESS)
		return result;
	*fetched = atomic_fetch_add(event->counter, value);
	end_access(event);
	return DOCA_SUCCESS;
}

/* ---- get and update ---- */

/* An event that runs as a context takes tasks only. */
static doca_error_t check_callable(const struct doca_sync_event *event)
{
	if (event->started)
		return DOCA_SUCCESS;
	soft_detail("the sync event is not started by doca_sync_event_start");
	return DOCA_ERROR_BAD_STATE;
}

doca_error_t soft_doca_sync_event_get(struct doca_sync_event *event, uint64_t *value)
{
	if (event == NULL || value == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = check_callable(event);
	return result == DOCA_SUCCESS ? soft_sync_get(event, value) : result;
}

doca_error_t soft_doca_sync_event_update_set(struct doca_sync_event *event, uint64_t value)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = check_callable(event);
	return result == DOCA_SUCCESS ? soft_sync_set(event, value) : result;
}

doca_error_t soft_doca_sync_event_update_add(struct doca_sync_event *event, uint64_t value, uint64_t *fetched)
{
	if (event == NULL || fetched == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = check_callable(event);
	return result == DOCA_SUCCESS ? soft_sync_add(event, value, fetched) : result;
}

/* ---- wait ---- */

struct condition {
	enum { GREATER, EQUAL, DIFFERENT } relation;
	uint64_t value, mask;
};

static bool holds(const struct condition *condition, uint64_t counter)
{
	uint64_t masked = counter & condition->mask;
	switch (condition->relation) {
	case GREATER:
		return masked > condition->value;
	case EQUAL:
		return masked == condition->value;
	case DIFFERENT:
		return masked != condition->value;
	}
	return false;
}

static doca_error_t check_time(uint64_t began_ns)
{
	uint64_t most_ms = soft_limits()->sync_wait_ms;
	if (most_ms == 0 || soft_now_ns() - began_ns < most_ms * 1000000)
		return DOCA_SUCCESS;
	soft_detail("the sync event was not updated as expected within %llu ms (limit sync_wait_ms)",
		    (unsigned long long)most_ms);
	return DOCA_ERROR_TIME_OUT;
}

/* Without yield the CPU is yielded now and then, because the other side may need it to update the counter. */
static doca_error_t poll_until(struct doca_sync_event *event, const struct condition *condition, bool yield)
{
	uint64_t began_ns = soft_now_ns(), counter;
	for (unsigned polls = 1;; polls++) {
		doca_error_t result = soft_sync_get(event, &counter);
		if (result != DOCA_SUCCESS || holds(condition, counter))
			return result;
		if (!yield && polls % SOFT_IDLE_POLLS != 0)
			continue;
		result = check_time(began_ns);
		if (result != DOCA_SUCCESS)
			return result;
		sched_yield();
	}
}

/* A stop or destruction is refused while a thread waits, so the counter exists until it returns. */
static doca_error_t wait_until(struct doca_sync_event *event, const struct condition *condition, bool yield)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	atomic_fetch_add(&event->waiters, 1);
	doca_error_t result = check_callable(event);
	if (result == DOCA_SUCCESS)
		result = poll_until(event, condition, yield);
	atomic_fetch_sub(&event->waiters, 1);
	return result;
}

doca_error_t soft_doca_sync_event_wait_gt(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, &(struct condition){GREATER, value, mask}, false);
}

doca_error_t soft_doca_sync_event_wait_gt_yield(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, &(struct condition){GREATER, value, mask}, true);
}

doca_error_t soft_doca_sync_event_wait_eq(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, &(struct condition){EQUAL, value, mask}, false);
}

doca_error_t soft_doca_sync_event_wait_eq_yield(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, &(struct condition){EQUAL, value, mask}, true);
}

doca_error_t soft_doca_sync_event_wait_neq(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, &(struct condition){DIFFERENT, value, mask}, false);
}

doca_error_t soft_doca_sync_event_wait_neq_yield(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, &(struct condition){DIFFERENT, value, mask}, true);
}
