/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a DPA: their states, what activates them, and how they end. */
#include "dpa_end.h"

#include <sched.h>
#include <stdatomic.h>

#include "../dpa/thread.h"

/* ---- code of the DPA ---- */

/* The work that a kernel has done, and its next task. */
static atomic_uint runs;
static atomic_bool release;
static atomic_bool beyond_the_end;

void rescheduled(uint64_t arg);
void finished(uint64_t arg);
void returned(uint64_t arg);
void polling(uint64_t completion);
void silent(uint64_t arg);
void held(uint64_t arg);
void stores(uint64_t arg);
void retriggered(uint64_t arg);

void rescheduled(uint64_t arg)
{
	atomic_fetch_add(&runs, (unsigned)arg);
	soft_doca_dpa_dev_thread_reschedule();
	atomic_store(&beyond_the_end, true);
}

void finished(uint64_t arg)
{
	atomic_fetch_add(&runs, (unsigned)arg);
	soft_doca_dpa_dev_thread_finish();
	atomic_store(&beyond_the_end, true);
}

void returned(uint64_t arg)
{
	atomic_fetch_add(&runs, (unsigned)arg);
}

void polling(uint64_t completion)
{
	doca_dpa_dev_completion_element_t element;
	atomic_fetch_add(&runs, 1);
	while (!soft_doca_dpa_dev_get_completion(completion, &element))
		;
}

/* Calls no device function until it is released. */
void silent(uint64_t arg)
{
	(void)arg;
	atomic_fetch_add(&runs, 1);
	while (!atomic_load(&release))
		sched_yield();
}

/* Runs until it is released, and can be activated meanwhile. */
void held(uint64_t arg)
{
	silent(arg);
	soft_doca_dpa_dev_thread_reschedule();
}

void stores(uint64_t arg)
{
	*(uint64_t *)(uintptr_t)soft_doca_dpa_dev_thread_get_local_storage() = arg;
	atomic_fetch_add(&runs, 1);
	soft_doca_dpa_dev_thread_finish();
}

/* Retriggers itself until it has run that often. */
void retriggered(uint64_t arg)
{
	if (atomic_fetch_add(&runs, 1) + 1 < arg)
		soft_doca_dpa_dev_thread_retrigger();
	soft_doca_dpa_dev_thread_reschedule();
	atomic_store(&beyond_the_end, true);
}

DPA_KIT_APP(test_app)
DPA_KIT_RPC(run_body, uint64_t, uint64_t)
DPA_KIT_KERNEL(rescheduled)
DPA_KIT_KERNEL(finished)
DPA_KIT_KERNEL(returned)
DPA_KIT_KERNEL(polling)
DPA_KIT_KERNEL(silent)
DPA_KIT_KERNEL(held)
DPA_KIT_KERNEL(stores)
DPA_KIT_KERNEL(retriggered)

/* ---- tests ---- */

struct fixture fixture;

/* A thread with a notification completion, whose handle activates it. */
struct waker {
	struct doca_dpa *dpa;
	struct doca_dpa_thread *thread;
	struct doca_dpa_notification_completion *notification;
	doca_dpa_dev_notification_completion_t handle;
};

static void open_waker(struct waker *waker, void (*kernel)(uint64_t arg), uint64_t arg)
{
	atomic_store(&runs, 0);
	atomic_store(&release, false);
	atomic_store(&beyond_the_end, false);
	waker->dpa = dpa_open();
	waker->thread = thread_open(waker->dpa, kernel, arg);
	CHECK_OK(soft_doca_dpa_notification_completion_create(waker->dpa, waker->thread, &waker->notification));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE,
		     soft_doca_dpa_notification_completion_get_dpa_handle(waker->notification, &waker->handle));
	CHECK_OK(soft_doca_dpa_notification_completion_start(waker->notification));
	CHECK_OK(soft_doca_dpa_notification_completion_get_dpa_handle(waker->notification, &waker->handle));
}

static void close_waker(struct waker *waker)
{
	CHECK(!atomic_load(&beyond_the_end));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_thread_destroy(waker->thread));
	CHECK_OK(soft_doca_dpa_notification_completion_stop(waker->notification));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_notification_completion_stop(waker->notification));
	CHECK_OK(soft_doca_dpa_notification_completion_destroy(waker->notification));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_stop(waker->dpa));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_destroy(waker->dpa));
	CHECK_OK(soft_doca_dpa_thread_destroy(waker->thread));
	dpa_close(waker->dpa);
}

static uint64_t notify(void *handle)
{
	soft_doca_dpa_dev_thread_notify(*(const doca_dpa_dev_notification_completion_t *)handle);
	return 0;
}

static void activate(struct waker *waker)
{
	on_dpa(waker->dpa, notify, &waker->handle);
}

static enum soft_thread_state state_of(const struct doca_dpa_thread *thread)
{
	soft_dpa_lock();
	enum soft_thread_state state = thread->state;
	soft_dpa_unlock();
	return state;
}

static void await(const struct doca_dpa_thread *thread, enum soft_thread_state state)
{
	while (state_of(thread) != state)
		sched_yield();
}

static void await_runs(unsigned count)
{
	while (atomic_load(&runs) < count)
		sched_yield();
}

static void configuration_is_checked(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_dpa_thread *thread;
	doca_dpa_func_t *func;
	doca_dpa_dev_uintptr_t storage;
	uint64_t arg;
	uint32_t id;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_thread_create(NULL, &thread));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_thread_create(dpa, NULL));
	CHECK_OK(soft_doca_dpa_thread_create(dpa, &thread));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_thread_set_func_arg(thread, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_thread_set_local_storage(thread, 0));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_thread_start(thread));
	CHECK_OK(soft_doca_dpa_thread_set_func_arg(thread, FUNC(notify), 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_thread_start(thread));
	CHECK_OK(soft_doca_dpa_thread_set_func_arg(thread, FUNC(run_body), 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_thread_start(thread));
	CHECK_OK(soft_doca_dpa_thread_set_func_arg(thread, FUNC(finished), 5));
	CHECK_OK(soft_doca_dpa_thread_get_func_arg(thread, &func, &arg));
	CHECK(func == FUNC(finished) && arg == 5);
	CHECK_OK(soft_doca_dpa_thread_set_local_storage(thread, 64));
	CHECK_OK(soft_doca_dpa_thread_get_local_storage(thread, &storage));
	CHECK(storage == 64);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_thread_get_id(thread, &id));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_thread_run(thread));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_thread_stop(thread));
	CHECK_OK(soft_doca_dpa_thread_start(thread));
	CHECK_OK(soft_doca_dpa_thread_get_id(thread, &id));
	CHECK(id == 1);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_thread_start(thread));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_thread_set_func_arg(thread, FUNC(finished), 5));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_thread_set_local_storage(thread, 64));
	CHECK_OK(soft_doca_dpa_thread_run(thread));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_thread_run(thread));
	CHECK_OK(soft_doca_dpa_thread_stop(thread));
	CHECK_OK(soft_doca_dpa_thread_start(thread));
	CHECK_OK(soft_doca_dpa_thread_destroy(thread));
	dpa_close(dpa);
}

static void a_unit_can_be_chosen(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_dpa_thread *thread;
	struct doca_dpa_eu_affinity *affinity;
	unsigned int unit;
	CHECK_OK(soft_doca_dpa_thread_create(dpa, &thread));
	CHECK_OK(soft_doca_dpa_eu_affinity_create(dpa, &affinity));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_eu_affinity_get(affinity, &unit));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_eu_affinity_set(affinity, 254));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_thread_set_affinity(thread, affinity));
	CHECK_OK(soft_doca_dpa_eu_affinity_set(affinity, 253));
	CHECK_OK(soft_doca_dpa_eu_affinity_get(affinity, &unit));
	CHECK(unit == 253);
	CHECK_OK(soft_doca_dpa_thread_set_affinity(thread, affinity));
	CHECK_OK(soft_doca_dpa_eu_affinity_clear(affinity));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_eu_affinity_get(affinity, &unit));
	CHECK_OK(soft_doca_dpa_eu_affinity_destroy(affinity));
	CHECK_OK(soft_doca_dpa_thread_destroy(thread));
	dpa_close(dpa);
}

static void a_rescheduled_thread_runs_again(void)
{
	struct waker waker;
	open_waker(&waker, rescheduled, 1);
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	for (unsigned i = 1; i <= 100; i++) {
		await(waker.thread, SOFT_THREAD_ARMED);
		CHECK(atomic_load(&runs) == i - 1);
		activate(&waker);
		await_runs(i);
	}
	CHECK_DPA_OK(waker.dpa);
	close_waker(&waker);
}

static void a_retriggered_thread_activates_itself(void)
{
	struct waker waker;
	open_waker(&waker, retriggered, 100);
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	activate(&waker);
	await_runs(100);
	await(waker.thread, SOFT_THREAD_ARMED);
	activate(&waker);
	await_runs(101);
	await(waker.thread, SOFT_THREAD_ARMED);
	CHECK(atomic_load(&runs) == 101);
	CHECK_DPA_OK(waker.dpa);
	close_waker(&waker);
}

/* It is kept until the thread is run. */
static void an_early_activation_is_kept(void)
{
	struct waker waker;
	open_waker(&waker, rescheduled, 1);
	activate(&waker);
	activate(&waker);
	CHECK(state_of(waker.thread) == SOFT_THREAD_INERT);
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	await_runs(1);
	await(waker.thread, SOFT_THREAD_ARMED);
	CHECK_OK(soft_doca_dpa_thread_stop(waker.thread));
	CHECK(atomic_load(&runs) == 1);
	close_waker(&waker);
}

/* Activations of a thread that runs are one activation, after its end. */
static void activations_of_a_running_thread_are_one(void)
{
	struct waker waker;
	open_waker(&waker, held, 0);
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	activate(&waker);
	await_runs(1);
	for (int i = 0; i < 5; i++)
		activate(&waker);
	atomic_store(&release, true);
	await_runs(2);
	await(waker.thread, SOFT_THREAD_ARMED);
	CHECK_OK(soft_doca_dpa_thread_stop(waker.thread));
	CHECK(atomic_load(&runs) == 2);
	close_waker(&waker);
}

static void check_ends(void (*kernel)(uint64_t arg))
{
	struct waker waker;
	open_waker(&waker, kernel, 1);
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	activate(&waker);
	await(waker.thread, SOFT_THREAD_FINISHED);
	activate(&waker);
	CHECK_OK(soft_doca_dpa_thread_stop(waker.thread));
	CHECK(atomic_load(&runs) == 1);
	/* A new start begins anew. */
	CHECK_OK(soft_doca_dpa_thread_start(waker.thread));
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	activate(&waker);
	await_runs(2);
	close_waker(&waker);
}

static void a_finished_thread_stays_finished(void)
{
	check_ends(finished);
	check_ends(returned);
}

/* A kernel that polls for ever ends when its thread is stopped. */
static void a_polling_kernel_can_be_stopped(void)
{
	struct waker waker;
	struct doca_dpa_completion *completion;
	doca_dpa_dev_completion_t handle;
	open_waker(&waker, polling, 0);
	CHECK_OK(soft_doca_dpa_completion_create(waker.dpa, 4, &completion));
	CHECK_OK(soft_doca_dpa_completion_start(completion));
	CHECK_OK(soft_doca_dpa_completion_get_dpa_handle(completion, &handle));
	CHECK_OK(soft_doca_dpa_thread_stop(waker.thread));
	CHECK_OK(soft_doca_dpa_thread_set_func_arg(waker.thread, FUNC(polling), handle));
	CHECK_OK(soft_doca_dpa_thread_start(waker.thread));
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	activate(&waker);
	await_runs(1);
	CHECK_OK(soft_doca_dpa_thread_stop(waker.thread));
	CHECK_DPA_OK(waker.dpa);
	CHECK_OK(soft_doca_dpa_completion_destroy(completion));
	close_waker(&waker);
}

static uint64_t poll_for_ever(void *completion)
{
	polling(*(const doca_dpa_dev_completion_t *)completion);
	return 0;
}

/* A kernel of a thread, and a call. */
static void a_kernel_that_runs_too_long_is_ended(void)
{
	struct waker waker;
	struct doca_dpa_completion *completion;
	doca_dpa_dev_completion_t handle;
	uint64_t result;
	fixture_close(&fixture);
	fixture_open(&fixture, "dpa_kernel_ms=1");
	open_waker(&waker, finished, 0);
	CHECK_OK(soft_doca_dpa_completion_create(waker.dpa, 4, &completion));
	CHECK_OK(soft_doca_dpa_completion_start(completion));
	CHECK_OK(soft_doca_dpa_completion_get_dpa_handle(completion, &handle));
	CHECK_OK(soft_doca_dpa_thread_stop(waker.thread));
	CHECK_OK(soft_doca_dpa_thread_set_func_arg(waker.thread, FUNC(polling), handle));
	CHECK_OK(soft_doca_dpa_thread_start(waker.thread));
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	soft_dpa_lock();
	soft_thread_activate(waker.thread); /* a call could run too long, too */
	soft_dpa_unlock();
	await(waker.thread, SOFT_THREAD_FINISHED);
	CHECK_DPA_FAILED(waker.dpa);
	CHECK_RESULT(DOCA_ERROR_DRIVER, dpa_call(waker.dpa, FUNC(run_body), &result, (uint64_t)(uintptr_t)poll_for_ever,
						 (uint64_t)(uintptr_t)&handle));
	CHECK_OK(soft_doca_dpa_completion_destroy(completion));
	close_waker(&waker);
	fixture_close(&fixture);
	fixture_open(&fixture, NULL);
}

/* Only a kernel that calls no device function cannot; the stop gives up, and can be repeated. */
static void a_silent_kernel_is_reported(void)
{
	struct waker waker;
	open_waker(&waker, silent, 0);
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	activate(&waker);
	await_runs(1);
	CHECK_RESULT(DOCA_ERROR_DRIVER, soft_doca_dpa_thread_stop(waker.thread));
	CHECK(strstr(soft_last_detail(), "silent") != NULL);
	atomic_store(&release, true);
	CHECK_OK(soft_doca_dpa_thread_stop(waker.thread));
	close_waker(&waker);
}

static void local_storage_is_the_threads(void)
{
	struct waker waker;
	doca_dpa_dev_uintptr_t storage;
	uint64_t stored;
	open_waker(&waker, stores, 42);
	CHECK_OK(soft_doca_dpa_thread_stop(waker.thread));
	CHECK_OK(soft_doca_dpa_mem_alloc(waker.dpa, 8, &storage));
	CHECK_OK(soft_doca_dpa_thread_set_local_storage(waker.thread, storage));
	CHECK_OK(soft_doca_dpa_thread_start(waker.thread));
	CHECK_OK(soft_doca_dpa_thread_run(waker.thread));
	activate(&waker);
	await(waker.thread, SOFT_THREAD_FINISHED);
	CHECK_OK(soft_doca_dpa_d2h_memcpy(waker.dpa, &stored, storage, 8));
	CHECK(stored == 42);
	close_waker(&waker);
}

static void notifications_are_checked(void)
{
	struct waker waker;
	struct doca_dpa_notification_completion *other;
	struct doca_dpa_thread *thread;
	struct doca_dpa *dpa = dpa_open();
	open_waker(&waker, rescheduled, 1);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_notification_completion_create(dpa, waker.thread, &other));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_notification_completion_create(waker.dpa, NULL, &other));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_notification_completion_start(waker.notification));
	CHECK_OK(soft_doca_dpa_notification_completion_get_thread(waker.notification, &thread));
	CHECK(thread == waker.thread);
	/* Another DPA has no right to it, and a stopped one has no effect. */
	on_dpa(dpa, notify, &waker.handle);
	CHECK_DPA_FAILED(dpa);
	CHECK_DPA_OK(waker.dpa);
	CHECK_OK(soft_doca_dpa_notification_completion_stop(waker.notification));
	activate(&waker);
	CHECK_DPA_FAILED(waker.dpa);
	CHECK_OK(soft_doca_dpa_notification_completion_start(waker.notification));
	close_waker(&waker);
	dpa_close(dpa);
}

static void completions_need_a_started_thread(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_dpa_thread *thread, *named;
	struct doca_dpa_completion *completion;
	doca_dpa_dev_completion_t handle;
	unsigned int size;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_completion_create(dpa, 0, &completion));
	CHECK_OK(soft_doca_dpa_completion_create(dpa, 5, &completion));
	CHECK_OK(soft_doca_dpa_completion_get_queue_size(completion, &size));
	CHECK(size == 8);
	CHECK_OK(soft_doca_dpa_thread_create(dpa, &thread));
	CHECK_OK(soft_doca_dpa_thread_set_func_arg(thread, FUNC(finished), 1));
	CHECK_OK(soft_doca_dpa_completion_set_thread(completion, thread));
	CHECK_OK(soft_doca_dpa_completion_set_thread(completion, thread));
	CHECK_OK(soft_doca_dpa_completion_get_thread(completion, &named));
	CHECK(named == thread);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_completion_start(completion));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_completion_get_dpa_handle(completion, &handle));
	CHECK_OK(soft_doca_dpa_thread_start(thread));
	CHECK_OK(soft_doca_dpa_completion_start(completion));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_completion_start(completion));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_completion_set_thread(completion, thread));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_thread_destroy(thread));
	CHECK_OK(soft_doca_dpa_completion_stop(completion));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_completion_stop(completion));
	CHECK_OK(soft_doca_dpa_completion_destroy(completion));
	CHECK_OK(soft_doca_dpa_thread_destroy(thread));
	dpa_close(dpa);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(configuration_is_checked);
	RUN(a_unit_can_be_chosen);
	RUN(a_rescheduled_thread_runs_again);
	RUN(a_retriggered_thread_activates_itself);
	RUN(an_early_activation_is_kept);
	RUN(activations_of_a_running_thread_are_one);
	RUN(a_finished_thread_stays_finished);
	RUN(a_polling_kernel_can_be_stopped);
	RUN(a_kernel_that_runs_too_long_is_ended);
	RUN(a_silent_kernel_is_reported);
	RUN(local_storage_is_the_threads);
	RUN(notifications_are_checked);
	RUN(completions_need_a_started_thread);
	fixture_close(&fixture);
	return 0;
}
