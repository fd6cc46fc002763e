/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include <signal.h>
#include <stdlib.h>

#include "error.h"
#include "kernel.h"
#include "now.h"
#include "sizes.h"
#include "soft_dpa.h"

/* ---- running kernels ---- */

static void call_kernel(void *arg)
{
	const struct doca_dpa_thread *thread = arg;
	thread->kernel->kernel(thread->arg);
}

static bool is_runnable(const struct doca_dpa_thread *thread)
{
	return thread->state == SOFT_THREAD_ARMED && thread->activated;
}

static void run_kernel(struct doca_dpa_thread *thread)
{
	struct soft_kernel kernel = {
		.dpa = thread->dpa,
		.of_thread = true,
		.local_storage = thread->local_storage,
		.stopping = &thread->stopping,
	};
	thread->state = SOFT_THREAD_RUNNING;
	thread->activated = false;
	soft_dpa_unlock();
	enum soft_kernel_end end = soft_kernel_run(&kernel, call_kernel, thread);
	soft_dpa_lock();
	bool goes_on = end == SOFT_KERNEL_RESCHEDULED || end == SOFT_KERNEL_RETRIGGERED;
	thread->state = goes_on ? SOFT_THREAD_ARMED : SOFT_THREAD_FINISHED;
	thread->activated |= end == SOFT_KERNEL_RETRIGGERED;
	pthread_cond_broadcast(&thread->changed);
}

static void *dispatch(void *arg)
{
	struct doca_dpa_thread *thread = arg;
	soft_dpa_lock();
	while (!thread->stopping) {
		if (is_runnable(thread))
			run_kernel(thread);
		else
			soft_dpa_wait(&thread->changed, UINT64_MAX);
	}
	soft_dpa_unlock();
	return NULL;
}

void soft_thread_activate(struct doca_dpa_thread *thread)
{
	thread->activated = true;
	pthread_cond_broadcast(&thread->changed);
}

/* ---- users ---- */

void soft_thread_use(struct doca_dpa_thread *thread)
{
	soft_dpa_lock();
	thread->users++;
	soft_dpa_unlock();
}

void soft_thread_unuse(struct doca_dpa_thread *thread)
{
	soft_dpa_lock();
	thread->users--;
	soft_dpa_unlock();
}

bool soft_thread_is_started(const struct doca_dpa_thread *thread)
{
	soft_dpa_lock();
	bool started = thread->state != SOFT_THREAD_IDLE;
	soft_dpa_unlock();
	return started;
}

/* ---- start, run, stop ---- */

/* Signals are for the program's own threads. */
static int create_os_thread(struct doca_dpa_thread *thread)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&thread->os_thread, NULL, dispatch, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

doca_error_t soft_doca_dpa_thread_start(struct doca_dpa_thread *dpa_thread)
{
	if (dpa_thread == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (dpa_thread->func == NULL || !soft_dpa_is_started(dpa_thread->dpa) || soft_thread_is_started(dpa_thread))
		return DOCA_ERROR_BAD_STATE;
	dpa_thread->kernel = soft_dpa_function(dpa_thread->dpa, dpa_thread->func);
	if (dpa_thread->kernel == NULL || dpa_thread->kernel->kernel == NULL) {
		soft_detail("the function of a DPA thread is not registered as a kernel: use DPA_KIT_KERNEL");
		return DOCA_ERROR_INVALID_VALUE;
	}
	dpa_thread->activated = dpa_thread->stopping = false;
	if (create_os_thread(dpa_thread) != 0)
		return DOCA_ERROR_DRIVER;
	soft_dpa_lock();
	dpa_thread->state = SOFT_THREAD_INERT;
	soft_dpa_unlock();
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_thread_run(struct doca_dpa_thread *dpa_thread)
{
	if (dpa_thread == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	soft_dpa_lock();
	bool inert = dpa_thread->state == SOFT_THREAD_INERT;
	if (inert) {
		dpa_thread->state = SOFT_THREAD_ARMED;
		pthread_cond_broadcast(&dpa_thread->changed);
	}
	soft_dpa_unlock();
	return inert ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

/* Under the lock. False: the kernel has called no device function for too long. */
static bool end_kernel(struct doca_dpa_thread *thread)
{
	uint64_t deadline = soft_now_ns() + SOFT_KERNEL_STOP_NS;
	thread->stopping = true;
	pthread_cond_broadcast(&thread->changed);
	bool waiting = true;
	while (thread->state == SOFT_THREAD_RUNNING && waiting)
		waiting = soft_dpa_wait(&thread->changed, deadline);
	return thread->state != SOFT_THREAD_RUNNING;
}

doca_error_t soft_doca_dpa_thread_stop(struct doca_dpa_thread *dpa_thread)
{
	if (dpa_thread == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!soft_thread_is_started(dpa_thread))
		return DOCA_ERROR_BAD_STATE;
	soft_dpa_lock();
	bool ended = end_kernel(dpa_thread);
	soft_dpa_unlock();
	if (!ended) {
		soft_detail("the kernel %s calls no device function, so its thread cannot be stopped",
			    dpa_thread->kernel->name);
		return DOCA_ERROR_DRIVER;
	}
	pthread_join(dpa_thread->os_thread, NULL);
	soft_dpa_lock();
	dpa_thread->state = SOFT_THREAD_IDLE;
	soft_dpa_unlock();
	return DOCA_SUCCESS;
}

/* ---- creation and destruction ---- */

static bool init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;
	if (pthread_condattr_init(&attributes) != 0)
		return false;
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	int error = pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
	return error == 0;
}

doca_error_t soft_doca_dpa_thread_create(struct doca_dpa *dpa, struct doca_dpa_thread **dpa_thread)
{
	if (dpa == NULL || dpa_thread == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_dpa_thread *created = calloc(1, sizeof(*created));
	if (created == NULL || !init_condition(&created->changed)) {
		free(created);
		return DOCA_ERROR_NO_MEMORY;
	}
	created->dpa = dpa;
	soft_dpa_use(dpa);
	soft_dpa_lock();
	created->id = ++dpa->thread_ids;
	soft_dpa_unlock();
	*dpa_thread = created;
	return DOCA_SUCCESS;
}

/* Stops it too. */
doca_error_t soft_doca_dpa_thread_destroy(struct doca_dpa_thread *dpa_thread)
{
	if (dpa_thread == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	soft_dpa_lock();
	bool used = dpa_thread->users > 0;
	soft_dpa_unlock();
	if (used)
		return DOCA_ERROR_IN_USE;
	doca_error_t result = soft_doca_dpa_thread_stop(dpa_thread);
	if (result != DOCA_SUCCESS && result != DOCA_ERROR_BAD_STATE)
		return result;
	pthread_cond_destroy(&dpa_thread->changed);
	soft_dpa_unuse(dpa_thread->dpa);
	free(dpa_thread);
	return DOCA_SUCCESS;
}

/* ---- configuration ---- */

static doca_error_t configurable(const struct doca_dpa_thread *thread)
{
	return soft_thread_is_started(thread) ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_thread_set_func_arg(struct doca_dpa_thread *dpa_thread, doca_dpa_func_t *func, uint64_t arg)
{
	if (dpa_thread == NULL || func == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(dpa_thread);
	if (result != DOCA_SUCCESS)
		return result;
	dpa_thread->func = func;
	dpa_thread->arg = arg;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_thread_get_func_arg(struct doca_dpa_thread *dpa_thread, doca_dpa_func_t **func,
					       uint64_t *arg)
{
	if (dpa_thread == NULL || func == NULL || arg == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*func = dpa_thread->func;
	*arg = dpa_thread->arg;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_thread_set_local_storage(struct doca_dpa_thread *dpa_thread, doca_dpa_dev_uintptr_t dev_ptr)
{
	if (dpa_thread == NULL || dev_ptr == 0)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(dpa_thread);
	if (result == DOCA_SUCCESS)
		dpa_thread->local_storage = dev_ptr;
	return result;
}

doca_error_t soft_doca_dpa_thread_get_local_storage(struct doca_dpa_thread *dpa_thread, doca_dpa_dev_uintptr_t *dev_ptr)
{
	if (dpa_thread == NULL || dev_ptr == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*dev_ptr = dpa_thread->local_storage;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_thread_get_id(struct doca_dpa_thread *dpa_thread, uint32_t *dpa_thread_id)
{
	if (dpa_thread == NULL || dpa_thread_id == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!soft_thread_is_started(dpa_thread))
		return DOCA_ERROR_BAD_STATE;
	*dpa_thread_id = dpa_thread->id;
	return DOCA_SUCCESS;
}

/* ---- execution units ---- */

/* Which execution unit a thread uses has no effect here: the operating system schedules it. */
struct doca_dpa_eu_affinity {
	bool has_unit;
	unsigned int unit;
};

doca_error_t soft_doca_dpa_eu_affinity_create(struct doca_dpa *dpa, struct doca_dpa_eu_affinity **affinity)
{
	if (dpa == NULL || affinity == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_dpa_eu_affinity *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*affinity = created;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_eu_affinity_destroy(struct doca_dpa_eu_affinity *affinity)
{
	if (affinity == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	free(affinity);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_eu_affinity_set(struct doca_dpa_eu_affinity *affinity, unsigned int eu_id)
{
	if (affinity == NULL || eu_id >= SOFT_DPA_EUS)
		return DOCA_ERROR_INVALID_VALUE;
	*affinity = (struct doca_dpa_eu_affinity){.has_unit = true, .unit = eu_id};
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_eu_affinity_clear(struct doca_dpa_eu_affinity *affinity)
{
	if (affinity == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*affinity = (struct doca_dpa_eu_affinity){.has_unit = false};
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_eu_affinity_get(struct doca_dpa_eu_affinity *affinity, unsigned int *eu_id)
{
	if (affinity == NULL || eu_id == NULL || !affinity->has_unit)
		return DOCA_ERROR_INVALID_VALUE;
	*eu_id = affinity->unit;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_thread_set_affinity(struct doca_dpa_thread *dpa_thread,
					       const struct doca_dpa_eu_affinity *affinity)
{
	if (dpa_thread == NULL || affinity == NULL || !affinity->has_unit)
		return DOCA_ERROR_INVALID_VALUE;
	return configurable(dpa_thread);
}
