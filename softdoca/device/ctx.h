/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and tasks. As in DOCA, a progress engine, its contexts and their tasks belong to one thread at a time.
 *
 * A context:
 *
 *            start returns SUCCESS
 *   IDLE ────────────────────────► RUNNING ──── doca_ctx_stop, nothing outstanding ────► IDLE
 *     │                              ▲ │
 *     │ start returns IN_PROGRESS    │ │ doca_ctx_stop, or soft_ctx_fail
 *     ▼                              │ ▼
 *   STARTING ── soft_ctx_running ────┘ STOPPING ── all tasks freed and quiet() ── progress ──► IDLE
 *     └──────── soft_ctx_fail (could not start) ── progress ──► IDLE
 *
 * A task:
 *
 *   POOLED ── allocated ──► OWNED ── submitted ──► SUBMITTED ── completes ──► OWNED
 *     ▲                       │                        │ doca_task_free
 *     │◄── doca_task_free ────┘                        ▼
 *     └◄─────────────────────── its callback has returned ── RELEASED
 */
#ifndef DMA_COPY_SOFT_CTX_H
#define DMA_COPY_SOFT_CTX_H

#include <stdbool.h>

#include "doca_abi.h"

/*
 * The functions that a kind of context (DMA, Comch server, client, consumer, producer, sync event) supplies to the
 * shared state machine.
 */
struct soft_ctx_class {
	const char *name;
	bool is_comch;
	bool needs_no_engine; /* starts without a progress engine: its data path is not on this CPU */

	/* SUCCESS: RUNNING. IN_PROGRESS: progress will call soft_ctx_running or soft_ctx_fail. Else refused: IDLE. */
	doca_error_t (*start)(struct doca_ctx *ctx);

	/* Called first by doca_ctx_stop: IN_USE while something else must be stopped before. May be NULL. */
	doca_error_t (*stoppable)(const struct doca_ctx *ctx);

	/* The context has just left RUNNING or STARTING for STOPPING: flush the queue, notify the peers. */
	void (*stopping)(struct doca_ctx *ctx);

	/* Reports whether nothing but tasks (connections, for example) keeps the context from IDLE. */
	bool (*quiet)(const struct doca_ctx *ctx);

	/* The context has just become IDLE: release what start acquired. */
	void (*idle)(struct doca_ctx *ctx);

	/* Delivers at most one event or completion and reports whether it did. Called in every state but IDLE. */
	bool (*progress)(struct doca_ctx *ctx);

	/*
	 * Returns the CLOCK_MONOTONIC nanoseconds from which progress has work that no watched descriptor announces;
	 * 0: now, UINT64_MAX: never.
	 */
	uint64_t (*ready_at)(const struct doca_ctx *ctx);

	/* Called first by doca_task_try_submit: INVALID_VALUE for a task that could only fail. */
	doca_error_t (*validate)(const struct doca_task *task);

	/*
	 * Executes the task, if no older one has to wait, and queues it for its completion: SUCCESS, or AGAIN if the
	 * queue is full. Calls no callback. State and ownership have been checked.
	 */
	doca_error_t (*submit)(struct doca_task *task);

	/* The task has completed: calls the program's success or error callback. */
	void (*ended)(struct doca_task *task);

	/* Puts the task back into its pool. */
	void (*release)(struct doca_task *task);
};

struct doca_ctx {
	const struct soft_ctx_class *class;
	struct doca_dev *dev; /* NULL: a sync event */
	struct doca_pe *pe;
	struct doca_ctx *next; /* on the same progress engine */
	enum doca_ctx_states state;
	union doca_data user_data;
	doca_ctx_state_changed_callback_t state_changed;
	size_t allocated_tasks; /* taken from the pool and not yet freed */
	size_t inflight_tasks;  /* submitted and not yet completed */
};

enum soft_task_state { SOFT_TASK_POOLED, SOFT_TASK_OWNED, SOFT_TASK_SUBMITTED, SOFT_TASK_RELEASED };

/* The first member of every kind of task. */
struct doca_task {
	struct doca_ctx *ctx;
	struct doca_task *next; /* in its pool or in its context's queue */
	union doca_data user_data;
	doca_error_t status;
	enum soft_task_state state;
	bool optimized; /* submitted with OPTIMIZE_REPORTS */
};

/* ---- for the kinds of contexts ---- */

/* Initializes the part of a context that all kinds share; the device, if there is one, gains a user. */
void soft_ctx_init(struct doca_ctx *ctx, const struct soft_ctx_class *class, struct doca_dev *dev);

/* For X_destroy: IN_USE unless IDLE; otherwise disconnects the context from its engine and releases the device. */
doca_error_t soft_ctx_fini(struct doca_ctx *ctx);

/* STARTING -> RUNNING. */
void soft_ctx_running(struct doca_ctx *ctx);

/* RUNNING -> STOPPING or STARTING -> IDLE, for a reason of the device's own: a task failed, the peer is gone. */
void soft_ctx_fail(struct doca_ctx *ctx);

/* Returns BAD_STATE unless IDLE; every configuration call checks it. */
doca_error_t soft_ctx_configurable(const struct doca_ctx *ctx);

/* Counts a task from its pool as allocated by the program. BAD_STATE unless the context is RUNNING. */
doca_error_t soft_task_take(struct doca_task *task, struct doca_ctx *ctx);

/* A submitted task has completed: calls its callback; a task that was freed in flight then returns to its pool. */
void soft_task_complete(struct doca_task *task, doca_error_t status);

/* ---- for progress engines ---- */

/* Moves the context by at most one event. If it returns true, a callback may have destroyed the context. */
bool soft_ctx_progress(struct doca_ctx *ctx);

/* As ready_at of the class; 0 also for a stop that only waits for one more progress. */
uint64_t soft_ctx_ready_at(const struct doca_ctx *ctx);

#endif
