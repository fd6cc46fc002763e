/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a DPA. Each is a thread of this process that waits to be activated, and then runs its kernel from the
 * beginning.
 *
 *   IDLE ── thread_start ──► INERT ── thread_run ──► ARMED ── activated ──► RUNNING ── finish, return ──► FINISHED
 *     ▲                                                ▲                       │
 *     │                                                └── thread_reschedule, ──┘
 *     │                                                    thread_retrigger, which also activates it
 *     └── thread_stop, from any state: a kernel that runs ends in the next device function that it calls
 *
 * Activations of a thread are: an arrival at a completion context that names the thread and has been armed, by its
 * start or by a request for notification, and a notification. An activation that comes while the thread is INERT or
 * RUNNING is kept until it is ARMED; several are one. A FINISHED thread stays finished.
 */
#ifndef DMA_COPY_SOFT_DPA_THREAD_H
#define DMA_COPY_SOFT_DPA_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "dpa.h"

enum soft_thread_state {
	SOFT_THREAD_IDLE,
	SOFT_THREAD_INERT,
	SOFT_THREAD_ARMED,
	SOFT_THREAD_RUNNING,
	SOFT_THREAD_FINISHED,
};

struct doca_dpa_thread {
	struct doca_dpa *dpa;
	doca_dpa_func_t *func;
	uint64_t arg;
	uint64_t local_storage;
	uint32_t id; /* from 1 */
	const struct dpa_kit_function *kernel;
	pthread_t os_thread; /* not IDLE */

	/* Under the lock. */
	enum soft_thread_state state;
	bool activated;
	bool stopping;
	unsigned users;         /* completion contexts that name it */
	pthread_cond_t changed; /* of these */
};

/* Called with the lock held. */
void soft_thread_activate(struct doca_dpa_thread *thread);

/* Counts a completion context that names the thread, or one less. Called without the lock. */
void soft_thread_use(struct doca_dpa_thread *thread);
void soft_thread_unuse(struct doca_dpa_thread *thread);

/* Reports whether it is not IDLE. Called without the lock. */
bool soft_thread_is_started(const struct doca_dpa_thread *thread);

#endif
