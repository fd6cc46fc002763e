/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sync events: a counter in memory of this process (sync_event.c), or of the process which exported the event
 * (sync_share.c). An event is used by direct calls (sync_call.c) or, as a context, by tasks (sync_task.c).
 *
 * Its configuration, start and stop belong to one thread at a time, the tasks to the thread of their progress engine.
 * The counter may be used by any thread.
 */
#ifndef DMA_COPY_SOFT_SYNC_EVENT_H
#define DMA_COPY_SOFT_SYNC_EVENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "background.h"
#include "ctx.h"
#include "remote_wire.h"

struct soft_export;
struct soft_import;

/* ---- the parts of an event ---- */

enum soft_sync_place { SOFT_SYNC_UNSET, SOFT_SYNC_CPU, SOFT_SYNC_REMOTE_PCI };

struct soft_sync_location {
	enum soft_sync_place place;
	struct doca_dev *dev; /* of SOFT_SYNC_CPU */
};

/* The export descriptor. */
struct soft_sync_descriptor {
	uint64_t magic;
	uint32_t version;
	uint32_t reserved;
	struct remote_descriptor memory;
};
_Static_assert(sizeof(struct soft_sync_descriptor) == 136, "no padding");

enum soft_sync_kind {
	SOFT_SYNC_GET,
	SOFT_SYNC_NOTIFY_SET,
	SOFT_SYNC_NOTIFY_ADD,
	SOFT_SYNC_WAIT_EQ,
	SOFT_SYNC_WAIT_NEQ,
	SOFT_SYNC_KINDS
};

/* One type of callback for each kind of task. */
union soft_sync_callback {
	doca_sync_event_task_get_completion_cb_t get;
	doca_sync_event_task_notify_set_completion_cb_t notify_set;
	doca_sync_event_task_notify_add_completion_cb_t notify_add;
	doca_sync_event_task_wait_eq_completion_cb_t wait_eq;
	doca_sync_event_task_wait_neq_completion_cb_t wait_neq;
};

/* The tasks of one kind: their configuration, and while the context is not IDLE num_tasks of them. */
struct soft_sync_tasks {
	union soft_sync_callback completion, error;
	uint32_t num_tasks;
	struct soft_sync_task *pool;
	struct doca_task *free;
};

struct doca_sync_event {
	struct doca_ctx ctx;
	bool is_context; /* doca_sync_event_as_ctx was called */
	bool started;    /* by doca_sync_event_start */
	struct soft_sync_location publisher, subscriber;

	_Atomic uint64_t *counter; /* NULL before the first start */
	void *own_memory;          /* of the counter, unless the program supplied it */
	struct doca_buf *buf;      /* that supplies it, referenced; may be NULL */
	atomic_uint waiters;       /* threads in a direct wait */

	struct soft_export *export; /* NULL until exported */
	struct doca_dev *export_dev;
	struct soft_sync_descriptor descriptor;

	struct soft_import *import; /* non-NULL: made by create_from_export, on this device */
	struct doca_dev *import_dev;

	struct soft_sync_tasks tasks[SOFT_SYNC_KINDS];
	unsigned idle_polls; /* progress calls in a row that found a wait unsatisfied */

	pthread_mutex_t lock;              /* guards what follows, up to job: the background thread executes, too */
	struct doca_task *oldest, *newest; /* submitted, in order */
	struct doca_task *unexecuted;      /* the first of them that is not executed; NULL: all are */
	bool failed;                       /* a task has failed: no more are executed */
	struct soft_job job;
};

_Static_assert(offsetof(struct doca_sync_event, ctx) == 0, "a context is cast to its event");

/* ---- life (sync_event.c) ---- */

/* Returns a new event without locations, or NULL. */
struct doca_sync_event *soft_sync_new(void);

/*
 * For both ways to start: the configuration is complete, the counter has memory, and an earlier export has ended.
 * INVALID_VALUE, NO_MEMORY or IN_USE, with a detail.
 */
doca_error_t soft_sync_ready(struct doca_sync_event *event);

/* Reports whether the event was started, one way or the other. */
bool soft_sync_running(const struct doca_sync_event *event);

/* ---- export and import (sync_share.c) ---- */

/* Ends the export if there is one: no importer uses the counter afterwards. IN_USE, with a detail. */
doca_error_t soft_sync_end_export(struct doca_sync_event *event);

/* ---- the counter (sync_call.c) ---- */

/* IO_FAILED, with a detail: the event is an import, and its exporter has ended it or is gone. */
doca_error_t soft_sync_get(struct doca_sync_event *event, uint64_t *value);
doca_error_t soft_sync_set(struct doca_sync_event *event, uint64_t value);
doca_error_t soft_sync_add(struct doca_sync_event *event, uint64_t value, uint64_t *fetched);

/* ---- as a context (sync_task.c) ---- */

extern const struct soft_ctx_class soft_sync_class;

/* The job of an event. */
enum soft_job_result soft_sync_execute_more(struct soft_job *job);

#endif
