/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress engines: nothing happens, neither completion nor event nor change of state, unless doca_pe_progress is
 * called. An engine and all that is connected to it belong to one thread at a time.
 */
#ifndef DOCA_PE_H_
#define DOCA_PE_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_compat.h"
#include "doca_ctx.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called when a task of any kind has completed. */
typedef void (*doca_task_completion_cb_t)(struct doca_task *task, union doca_data task_user_data,
					  union doca_data ctx_user_data);

DOCA_STABLE
doca_error_t doca_pe_create(struct doca_pe **pe);

/* IN_USE while a context is connected. */
DOCA_STABLE
doca_error_t doca_pe_destroy(struct doca_pe *pe);

/* 1: something moved, call again. 0: nothing to do. Never from inside a callback. */
DOCA_STABLE
uint8_t doca_pe_progress(struct doca_pe *pe);

/* While the context is IDLE, for its life. */
DOCA_STABLE
doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx);

DOCA_STABLE
doca_error_t doca_pe_get_num_inflight_tasks(const struct doca_pe *pe, size_t *num_inflight_tasks);

/*
 * Sleeping: get the handle once; then request a notification, progress until 0, poll the handle for POLLIN, clear,
 * progress until 0, and request again.
 */

DOCA_STABLE
doca_error_t doca_pe_get_notification_handle(const struct doca_pe *pe, doca_notification_handle_t *handle);

DOCA_STABLE
doca_error_t doca_pe_request_notification(struct doca_pe *pe);

/* handle is not looked at. */
DOCA_STABLE
doca_error_t doca_pe_clear_notification(struct doca_pe *pe, doca_notification_handle_t handle);

DOCA_EXPERIMENTAL
doca_error_t doca_pe_set_event_mode(struct doca_pe *pe, enum doca_pe_event_mode event_mode);

/* Tasks. A task is owned by the program that allocated it, except from a successful submission until its callback. */

/*
 * Anything but SUCCESS leaves the task with the caller. AGAIN: the queue is full, progress first. BAD_STATE: not
 * RUNNING.
 */
DOCA_STABLE
doca_error_t doca_task_submit(struct doca_task *task);

/* flags are of enum doca_task_submit_flag. */
DOCA_EXPERIMENTAL
doca_error_t doca_task_submit_ex(struct doca_task *task, uint32_t flags);

/* Checks the task first: INVALID_VALUE for one that can only fail. */
DOCA_STABLE
doca_error_t doca_task_try_submit(struct doca_task *task);

/* In flight it takes effect when the task has ended and its callback has returned. */
DOCA_STABLE
void doca_task_free(struct doca_task *task);

/* For a task that has completed. */
DOCA_STABLE
doca_error_t doca_task_get_status(const struct doca_task *task);

DOCA_STABLE
void doca_task_set_user_data(struct doca_task *task, union doca_data user_data);

DOCA_STABLE
union doca_data doca_task_get_user_data(const struct doca_task *task);

DOCA_STABLE
struct doca_ctx *doca_task_get_ctx(const struct doca_task *task);

/*
 * Batches of tasks: the same for many tasks of a kind at once. The library that has them allocates them, as DOCA's
 * Ethernet queues do. DMA and Comch have none, so there is never one here: INVALID_VALUE, 0 and NULL are the answers,
 * and nothing is set or freed.
 */

DOCA_EXPERIMENTAL
doca_error_t doca_task_batch_submit(struct doca_task_batch *task_batch);

DOCA_EXPERIMENTAL
doca_error_t doca_task_batch_try_submit(struct doca_task_batch *task_batch);

DOCA_EXPERIMENTAL
void doca_task_batch_free(struct doca_task_batch *task_batch);

DOCA_EXPERIMENTAL
doca_error_t doca_task_batch_get_status(const struct doca_task_batch *task_batch);

DOCA_EXPERIMENTAL
void doca_task_batch_set_user_data(struct doca_task_batch *task_batch, union doca_data user_data);

DOCA_EXPERIMENTAL
union doca_data doca_task_batch_get_user_data(const struct doca_task_batch *task_batch);

DOCA_EXPERIMENTAL
struct doca_ctx *doca_task_batch_get_ctx(const struct doca_task_batch *task_batch);

/* The context's, not the batch's. */
DOCA_EXPERIMENTAL
union doca_data doca_task_batch_get_ctx_user_data(const struct doca_task_batch *task_batch);

/* How many tasks are in it. */
DOCA_EXPERIMENTAL
uint16_t doca_task_batch_get_tasks_num(struct doca_task_batch *task_batch);

/* NOT_SUPPORTED here: for Windows only. */
DOCA_STABLE
doca_error_t doca_pe_set_notification_handle(struct doca_pe *pe, doca_notification_handle_t handle,
					     union doca_data completion_key);

#ifdef __cplusplus
}
#endif

#endif
