/* SPDX-License-Identifier: Apache-2.0 */
/* Sync events as contexts: their tasks, alone and in order, and how the engine learns of an update. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "../device/ctx.h"
#include "../device/now.h"
#include "../device/sizes.h"
#include "../sync/soft_sync.h"
#include "setup.h"

#define ALL UINT64_MAX
#define INVALID(call) CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, call)

/* ---- an event with an engine, and a record of its callbacks ---- */

#define MAX_CALLS 64

/* user is the task's user data; failed: the error callback. */
struct call {
	uint64_t user;
	bool failed;
	doca_error_t status;
};

struct subject {
	struct doca_dev *dev;
	struct doca_pe *pe;
	struct doca_sync_event *event;
	struct doca_ctx *ctx;
	uint64_t counter; /* the event's, so that a test can update it itself */
	struct call calls[MAX_CALLS];
	unsigned num_calls;
	bool keep; /* do not free completed tasks */
};

static void record(struct doca_task *task, union doca_data user, union doca_data ctx_user, bool failed)
{
	struct subject *s = ctx_user.ptr;
	CHECK(s->num_calls < MAX_CALLS);
	s->calls[s->num_calls++] = (struct call){user.u64, failed, soft_doca_task_get_status(task)};
	if (!s->keep)
		soft_doca_task_free(task);
}

#define DEFINE_KIND(k)                                                                                           \
	static void k##_done(struct doca_sync_event_task_##k *task, union doca_data user, union doca_data ctx)   \
	{                                                                                                        \
		record(soft_doca_sync_event_task_##k##_as_doca_task(task), user, ctx, false);                    \
	}                                                                                                        \
	static void k##_failed(struct doca_sync_event_task_##k *task, union doca_data user, union doca_data ctx) \
	{                                                                                                        \
		record(soft_doca_sync_event_task_##k##_as_doca_task(task), user, ctx, true);                     \
	}

DEFINE_KIND(get)
DEFINE_KIND(notify_set)
DEFINE_KIND(notify_add)
DEFINE_KIND(wait_eq)
DEFINE_KIND(wait_neq)

static void set_confs(struct doca_sync_event *event, uint32_t num_tasks)
{
	CHECK_OK(soft_doca_sync_event_task_get_set_conf(event, get_done, get_failed, num_tasks));
	CHECK_OK(soft_doca_sync_event_task_notify_set_set_conf(event, notify_set_done, notify_set_failed, num_tasks));
	CHECK_OK(soft_doca_sync_event_task_notify_add_set_conf(event, notify_add_done, notify_add_failed, num_tasks));
	CHECK_OK(soft_doca_sync_event_task_wait_eq_set_conf(event, wait_eq_done, wait_eq_failed, num_tasks));
	CHECK_OK(soft_doca_sync_event_task_wait_neq_set_conf(event, wait_neq_done, wait_neq_failed, num_tasks));
}

static void subject_open(struct subject *s)
{
	*s = (struct subject){.dev = setup_open_dev(HOST_PCI)};
	CHECK_OK(soft_doca_sync_event_create(&s->event));
	s->ctx = soft_doca_sync_event_as_ctx(s->event);
	CHECK_OK(soft_doca_pe_create(&s->pe));
	CHECK_OK(soft_doca_pe_connect_ctx(s->pe, s->ctx));
	CHECK_OK(soft_doca_ctx_set_user_data(s->ctx, (union doca_data){.ptr = s}));
	set_confs(s->event, 2);
	CHECK_OK(soft_doca_sync_event_add_publisher_location_cpu(s->event, s->dev));
	CHECK_OK(soft_doca_sync_event_add_subscriber_location_cpu(s->event, s->dev));
	CHECK_OK(soft_doca_sync_event_set_addr(s->event, &s->counter));
	CHECK_OK(soft_doca_ctx_start(s->ctx));
}

static void subject_close(struct subject *s)
{
	CHECK_OK(soft_doca_ctx_stop(s->ctx));
	CHECK_OK(soft_doca_sync_event_destroy(s->event));
	CHECK_OK(soft_doca_pe_destroy(s->pe));
	CHECK_OK(soft_doca_dev_close(s->dev));
}

static enum doca_ctx_states state_of(const struct subject *s)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(s->ctx, &state));
	return state;
}

static void progress_until_idle(struct subject *s)
{
	while (soft_doca_pe_progress(s->pe) != 0)
		;
}

/* ---- submission ---- */

static union doca_data data_of(uint64_t user)
{
	return (union doca_data){.u64 = user};
}

static void submit_get(struct subject *s, uint64_t *to, uint64_t user)
{
	struct doca_sync_event_task_get *task;
	CHECK_OK(soft_doca_sync_event_task_get_alloc_init(s->event, to, data_of(user), &task));
	CHECK_OK(soft_doca_task_submit(soft_doca_sync_event_task_get_as_doca_task(task)));
}

static void submit_set(struct subject *s, uint64_t value, uint64_t user)
{
	struct doca_sync_event_task_notify_set *task;
	CHECK_OK(soft_doca_sync_event_task_notify_set_alloc_init(s->event, value, data_of(user), &task));
	CHECK_OK(soft_doca_task_submit(soft_doca_sync_event_task_notify_set_as_doca_task(task)));
}

static void submit_add(struct subject *s, uint64_t value, uint64_t *before, uint64_t user)
{
	struct doca_sync_event_task_notify_add *task;
	CHECK_OK(soft_doca_sync_event_task_notify_add_alloc_init(s->event, value, before, data_of(user), &task));
	CHECK_OK(soft_doca_task_submit(soft_doca_sync_event_task_notify_add_as_doca_task(task)));
}

static struct doca_task *submit_wait(struct subject *s, uint64_t value, uint64_t mask, uint64_t user)
{
	struct doca_sync_event_task_wait_eq *task;
	CHECK_OK(soft_doca_sync_event_task_wait_eq_alloc_init(s->event, value, mask, data_of(user), &task));
	struct doca_task *base = soft_doca_sync_event_task_wait_eq_as_doca_task(task);
	CHECK_OK(soft_doca_task_submit(base));
	return base;
}

static void submit_wait_neq(struct subject *s, uint64_t value, uint64_t mask, uint64_t user)
{
	struct doca_sync_event_task_wait_neq *task;
	CHECK_OK(soft_doca_sync_event_task_wait_neq_alloc_init(s->event, value, mask, data_of(user), &task));
	CHECK_OK(soft_doca_task_submit(soft_doca_sync_event_task_wait_neq_as_doca_task(task)));
}

static void expect_call(const struct subject *s, unsigned i, uint64_t user, bool failed, doca_error_t status)
{
	CHECK(i < s->num_calls && s->calls[i].user == user && s->calls[i].failed == failed);
	CHECK_RESULT(status, s->calls[i].status);
}

/* ---- tasks ---- */

static void every_kind_completes(void)
{
	uint64_t got = 0, before = 0;
	struct subject s;
	subject_open(&s);
	submit_set(&s, 0x1234, 1);
	submit_add(&s, 2, &before, 2);
	submit_get(&s, &got, 3);
	submit_wait(&s, 0x36, 0xff, 4);
	submit_wait_neq(&s, 0x1200, 0xffff, 5);
	CHECK(s.counter == 0x1236 && before == 0x1234 && got == 0x1236); /* without progress */
	CHECK(s.num_calls == 0);
	CHECK(soft_doca_pe_progress(s.pe) == 1);
	CHECK(s.num_calls == 5);
	for (unsigned done = 1; done <= 5; done++)
		expect_call(&s, done - 1, done, false, DOCA_SUCCESS);
	CHECK(soft_doca_pe_progress(s.pe) == 0);
	subject_close(&s);
}

/* A wait that is not satisfied holds back what was submitted after it, even what would satisfy it. */
static void tasks_are_done_in_order(void)
{
	uint64_t got = 0;
	struct subject s;
	subject_open(&s);
	submit_wait(&s, 9, ALL, 1);
	submit_set(&s, 9, 2);
	submit_get(&s, &got, 3);
	for (int i = 0; i < 100; i++)
		CHECK(soft_doca_pe_progress(s.pe) == 0);
	CHECK(s.num_calls == 0 && __atomic_load_n(&s.counter, __ATOMIC_SEQ_CST) == 0);
	__atomic_store_n(&s.counter, 9, __ATOMIC_SEQ_CST);
	progress_until_idle(&s);
	CHECK(s.num_calls == 3 && got == 9);
	for (unsigned i = 0; i < 3; i++)
		expect_call(&s, i, i + 1, false, DOCA_SUCCESS);
	subject_close(&s);
}

/* Hardware looks at the counter, whether or not the program does. */
static void a_wait_ends_without_progress(void)
{
	struct subject s;
	subject_open(&s);
	submit_wait(&s, 9, ALL, 1);
	submit_set(&s, 10, 2);
	__atomic_store_n(&s.counter, 9, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&s.counter, __ATOMIC_SEQ_CST) != 10)
		sched_yield();
	CHECK(s.num_calls == 0 && soft_doca_pe_progress(s.pe) == 1 && s.num_calls == 2);
	subject_close(&s);
}

static void a_pool_has_as_many_tasks_as_configured(void)
{
	uint64_t got[3];
	struct subject s;
	struct doca_sync_event_task_get *task;
	subject_open(&s);
	submit_get(&s, &got[0], 1);
	submit_get(&s, &got[1], 2);
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY,
		     soft_doca_sync_event_task_get_alloc_init(s.event, &got[2], data_of(3), &task));
	progress_until_idle(&s);
	submit_get(&s, &got[2], 3);
	progress_until_idle(&s);
	CHECK(s.num_calls == 3);
	subject_close(&s);
}

/* The callback's task can be submitted again, with other values. */
static void a_task_can_be_used_again(void)
{
	struct subject s;
	struct doca_sync_event_task_notify_set *task;
	subject_open(&s);
	s.keep = true;
	CHECK_OK(soft_doca_sync_event_task_notify_set_alloc_init(s.event, 1, data_of(1), &task));
	struct doca_task *base = soft_doca_sync_event_task_notify_set_as_doca_task(task);
	for (uint64_t value = 1; value <= 3; value++) {
		soft_doca_sync_event_task_notify_set_set_set_val(task, value);
		CHECK(soft_doca_sync_event_task_notify_set_get_set_val(task) == value);
		CHECK_OK(soft_doca_task_submit(base));
		CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_task_submit(base));
		progress_until_idle(&s);
		CHECK(s.counter == value && s.num_calls == value);
	}
	soft_doca_task_free(base);
	subject_close(&s);
}

static void values_can_be_read_and_changed(void)
{
	uint64_t word, other;
	struct subject s;
	struct doca_sync_event_task_get *get;
	struct doca_sync_event_task_notify_add *add;
	struct doca_sync_event_task_wait_eq *eq;
	struct doca_sync_event_task_wait_neq *neq;
	subject_open(&s);
	CHECK_OK(soft_doca_sync_event_task_get_alloc_init(s.event, &word, data_of(1), &get));
	CHECK_OK(soft_doca_sync_event_task_notify_add_alloc_init(s.event, 5, &word, data_of(2), &add));
	CHECK_OK(soft_doca_sync_event_task_wait_eq_alloc_init(s.event, 6, 0xff, data_of(3), &eq));
	CHECK_OK(soft_doca_sync_event_task_wait_neq_alloc_init(s.event, 7, 0xffff, data_of(4), &neq));
	CHECK(soft_doca_sync_event_task_get_get_ret_val_ptr(get) == &word);
	soft_doca_sync_event_task_get_set_ret_val_ptr(get, &other);
	CHECK(soft_doca_sync_event_task_get_get_ret_val_ptr(get) == &other);
	CHECK(soft_doca_sync_event_task_notify_add_get_inc_val(add) == 5);
	CHECK(soft_doca_sync_event_task_notify_add_get_fetched_val_ptr(add) == &word);
	soft_doca_sync_event_task_notify_add_set_inc_val(add, 50);
	soft_doca_sync_event_task_notify_add_set_fetched_val_ptr(add, &other);
	CHECK(soft_doca_sync_event_task_notify_add_get_inc_val(add) == 50);
	CHECK(soft_doca_sync_event_task_notify_add_get_fetched_val_ptr(add) == &other);
	CHECK(soft_doca_sync_event_task_wait_eq_get_wait_val(eq) == 6);
	CHECK(soft_doca_sync_event_task_wait_eq_get_mask(eq) == 0xff);
	soft_doca_sync_event_task_wait_eq_set_wait_val(eq, 60);
	soft_doca_sync_event_task_wait_eq_set_mask(eq, 0xff00);
	CHECK(soft_doca_sync_event_task_wait_eq_get_wait_val(eq) == 60);
	CHECK(soft_doca_sync_event_task_wait_eq_get_mask(eq) == 0xff00);
	CHECK(soft_doca_sync_event_task_wait_neq_get_wait_val(neq) == 7);
	CHECK(soft_doca_sync_event_task_wait_neq_get_mask(neq) == 0xffff);
	soft_doca_sync_event_task_wait_neq_set_wait_val(neq, 70);
	soft_doca_sync_event_task_wait_neq_set_mask(neq, ALL);
	CHECK(soft_doca_sync_event_task_wait_neq_get_wait_val(neq) == 70);
	CHECK(soft_doca_sync_event_task_wait_neq_get_mask(neq) == ALL);
	soft_doca_task_free(soft_doca_sync_event_task_get_as_doca_task(get));
	soft_doca_task_free(soft_doca_sync_event_task_notify_add_as_doca_task(add));
	soft_doca_task_free(soft_doca_sync_event_task_wait_eq_as_doca_task(eq));
	soft_doca_task_free(soft_doca_sync_event_task_wait_neq_as_doca_task(neq));
	subject_close(&s);
}

/* ---- what is refused ---- */

static void masks_are_whole_bytes(void)
{
	static const uint64_t valid[] = {0, 0xff, 0xff00, 0xffff, 0xffff00, 0xffffffff, 0xff00000000000000, ALL};
	static const uint64_t invalid[] = {1, 0x7f, 0xff0, 0xffffff, 0xff00ff, 0xffffffffff, ALL - 1};
	struct subject s;
	struct doca_sync_event_task_wait_eq *task;
	subject_open(&s);
	CHECK_OK(soft_doca_sync_event_task_wait_eq_alloc_init(s.event, 1, 0, data_of(0), &task));
	struct doca_task *base = soft_doca_sync_event_task_wait_eq_as_doca_task(task);
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		soft_doca_sync_event_task_wait_eq_set_mask(task, invalid[i]);
		INVALID(soft_doca_task_try_submit(base));
	}
	soft_doca_sync_event_task_wait_eq_set_wait_val(task, 0);
	s.keep = true;
	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
		soft_doca_sync_event_task_wait_eq_set_mask(task, valid[i]);
		CHECK_OK(soft_doca_task_try_submit(base));
		progress_until_idle(&s);
		CHECK(s.num_calls == i + 1);
	}
	soft_doca_task_free(base);
	subject_close(&s);
}

/* As with other tasks, what only try_submit checks fails later, and stops the context. */
static void a_failed_task_stops_the_context(void)
{
	struct subject s;
	subject_open(&s);
	submit_get(&s, NULL, 1);
	submit_set(&s, 1, 2);
	CHECK(soft_doca_pe_progress(s.pe) == 1);
	expect_call(&s, 0, 1, true, DOCA_ERROR_IO_FAILED);
	expect_call(&s, 1, 2, true, DOCA_ERROR_IO_FAILED);
	CHECK(s.counter == 0 && state_of(&s) == DOCA_CTX_STATE_IDLE);
	CHECK_OK(soft_doca_ctx_start(s.ctx));
	submit_set(&s, 3, 3);
	progress_until_idle(&s);
	CHECK(s.counter == 3);
	subject_close(&s);
}

static void configuration_is_checked(void)
{
	uint64_t word;
	struct subject s;
	struct doca_sync_event_task_get *task;
	subject_open(&s);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED,
		     soft_doca_sync_event_task_get_set_conf(s.event, get_done, get_failed, 1));
	INVALID(soft_doca_sync_event_task_get_set_conf(NULL, get_done, get_failed, 1));
	INVALID(soft_doca_sync_event_task_get_set_conf(s.event, NULL, get_failed, 1));
	INVALID(soft_doca_sync_event_task_get_set_conf(s.event, get_done, NULL, 1));
	INVALID(soft_doca_sync_event_task_get_alloc_init(NULL, &word, data_of(0), &task));
	INVALID(soft_doca_sync_event_task_get_alloc_init(s.event, &word, data_of(0), NULL));
	CHECK_OK(soft_doca_ctx_stop(s.ctx));
	INVALID(soft_doca_sync_event_task_get_set_conf(s.event, get_done, get_failed, 0));
	INVALID(soft_doca_sync_event_task_get_set_conf(s.event, get_done, get_failed, UINT32_MAX));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_sync_event_task_get_alloc_init(s.event, &word, data_of(0), &task));
	CHECK_OK(soft_doca_ctx_start(s.ctx));
	subject_close(&s);
}

/* An event is used by calls or by tasks. */
static void calls_and_tasks_exclude_each_other(void)
{
	uint64_t value;
	struct subject s;
	struct doca_sync_event *started;
	subject_open(&s);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_sync_event_get(s.event, &value));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_sync_event_wait_eq(s.event, 0, ALL));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_sync_event_stop(s.event));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_sync_event_destroy(s.event));
	CHECK_OK(soft_doca_ctx_stop(s.ctx));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_sync_event_start(s.event));
	CHECK_OK(soft_doca_sync_event_create(&started));
	CHECK_OK(soft_doca_sync_event_add_publisher_location_cpu(started, s.dev));
	CHECK_OK(soft_doca_sync_event_add_subscriber_location_cpu(started, s.dev));
	CHECK_OK(soft_doca_sync_event_start(started));
	CHECK(soft_doca_sync_event_as_ctx(started) == NULL);
	CHECK_OK(soft_doca_sync_event_stop(started));
	CHECK(soft_doca_sync_event_as_ctx(started) != NULL);
	CHECK_OK(soft_doca_sync_event_destroy(started));
	subject_close(&s);
}

static void a_context_needs_its_locations(void)
{
	struct doca_pe *pe;
	struct doca_sync_event *event;
	CHECK_OK(soft_doca_pe_create(&pe));
	CHECK_OK(soft_doca_sync_event_create(&event));
	struct doca_ctx *ctx = soft_doca_sync_event_as_ctx(event);
	CHECK_OK(soft_doca_pe_connect_ctx(pe, ctx));
	INVALID(soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_sync_event_destroy(event));
	CHECK_OK(soft_doca_pe_destroy(pe));
}

/* ---- stop ---- */

static void a_stop_flushes_waits(void)
{
	struct subject s;
	subject_open(&s);
	struct doca_task *held = submit_wait(&s, 1, ALL, 1);
	struct doca_task *freed = submit_wait(&s, 2, ALL, 2);
	s.keep = true;
	soft_doca_task_free(freed); /* in flight, so it returns to its pool when it is flushed */
	CHECK(soft_doca_pe_progress(s.pe) == 0);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(s.ctx));
	CHECK(soft_doca_pe_progress(s.pe) == 1);
	CHECK(soft_doca_pe_progress(s.pe) == 0 && state_of(&s) == DOCA_CTX_STATE_STOPPING);
	expect_call(&s, 0, 1, true, DOCA_ERROR_IO_FAILED);
	expect_call(&s, 1, 2, true, DOCA_ERROR_IO_FAILED);
	soft_doca_task_free(held);
	CHECK(soft_doca_pe_progress(s.pe) == 1 && state_of(&s) == DOCA_CTX_STATE_IDLE);
	subject_close(&s);
}

/* ---- notification ---- */

static void *set_one(void *arg)
{
	__atomic_store_n((uint64_t *)arg, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* A program that sleeps until its handle is readable sees an update that nothing announces. */
static void a_sleeping_engine_sees_an_update(void)
{
	struct subject s;
	struct pollfd handle = {.events = POLLIN};
	pthread_t thread;
	subject_open(&s);
	CHECK_OK(soft_doca_pe_get_notification_handle(s.pe, &handle.fd));
	submit_wait(&s, 1, ALL, 1);
	uint64_t now = soft_now_ns();
	CHECK(soft_ctx_ready_at(s.ctx) >= now + SOFT_SYNC_POLL_NS); /* it sleeps until then */
	CHECK_OK(soft_doca_pe_request_notification(s.pe));
	CHECK(poll(&handle, 1, 30000) == 1); /* time to look */
	CHECK(soft_doca_pe_progress(s.pe) == 0 && s.num_calls == 0);
	CHECK(pthread_create(&thread, NULL, set_one, &s.counter) == 0);
	while (s.num_calls == 0) {
		CHECK_OK(soft_doca_pe_clear_notification(s.pe, 0));
		CHECK_OK(soft_doca_pe_request_notification(s.pe));
		CHECK(poll(&handle, 1, 30000) == 1);
		soft_doca_pe_progress(s.pe);
	}
	CHECK(poll(&handle, 1, 0) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	subject_close(&s);
}

int main(void)
{
	setup_configure(NULL);
	RUN(every_kind_completes);
	RUN(tasks_are_done_in_order);
	RUN(a_wait_ends_without_progress);
	RUN(a_pool_has_as_many_tasks_as_configured);
	RUN(a_task_can_be_used_again);
	RUN(values_can_be_read_and_changed);
	RUN(masks_are_whole_bytes);
	RUN(a_failed_task_stops_the_context);
	RUN(configuration_is_checked);
	RUN(calls_and_tasks_exclude_each_other);
	RUN(a_context_needs_its_locations);
	RUN(a_stop_flushes_waits);
	RUN(a_sleeping_engine_sees_an_update);
	return 0;
}
