/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of contexts, and their tasks. */
#include "../device/ctx.h"
#include "fake_ctx.h"

/* ---- every function in every state ---- */

static doca_error_t try_start(struct fake_ctx *fake)
{
	return soft_doca_ctx_start(&fake->ctx);
}

static doca_error_t try_stop(struct fake_ctx *fake)
{
	return soft_doca_ctx_stop(&fake->ctx);
}

static doca_error_t try_set_user_data(struct fake_ctx *fake)
{
	return soft_doca_ctx_set_user_data(&fake->ctx, (union doca_data){.ptr = fake});
}

static doca_error_t try_set_callback(struct fake_ctx *fake)
{
	return soft_doca_ctx_set_state_changed_cb(&fake->ctx, fake_ctx_changed);
}

static doca_error_t try_get_user_data(struct fake_ctx *fake)
{
	union doca_data data;
	return soft_doca_ctx_get_user_data(&fake->ctx, &data);
}

static doca_error_t try_count(struct fake_ctx *fake)
{
	size_t n;
	return soft_doca_ctx_get_num_inflight_tasks(&fake->ctx, &n);
}

static doca_error_t try_connect(struct fake_ctx *fake)
{
	return soft_doca_pe_connect_ctx(fake->ctx.pe, &fake->ctx);
}

static doca_error_t try_configure(struct fake_ctx *fake)
{
	return soft_ctx_configurable(&fake->ctx);
}

static doca_error_t try_take(struct fake_ctx *fake)
{
	doca_error_t result = soft_task_take(&fake->tasks[0], &fake->ctx);
	if (result == DOCA_SUCCESS)
		soft_doca_task_free(&fake->tasks[0]);
	return result;
}

static const struct {
	const char *name;
	doca_error_t (*call)(struct fake_ctx *fake);
	doca_error_t in[4]; /* IDLE, STARTING, RUNNING, STOPPING */
} rules[] = {
#define BAD DOCA_ERROR_BAD_STATE
#define SLOW DOCA_ERROR_IN_PROGRESS
	{"start", try_start, {DOCA_SUCCESS, BAD, BAD, BAD}},
	{"stop", try_stop, {DOCA_SUCCESS, SLOW, DOCA_SUCCESS, SLOW}},
	{"set_user_data", try_set_user_data, {DOCA_SUCCESS, BAD, BAD, BAD}},
	{"set_state_changed_cb", try_set_callback, {DOCA_SUCCESS, BAD, BAD, BAD}},
	{"get_user_data", try_get_user_data, {DOCA_SUCCESS, DOCA_SUCCESS, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"get_num_inflight_tasks", try_count, {DOCA_SUCCESS, DOCA_SUCCESS, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"connect_ctx", try_connect, {DOCA_ERROR_NOT_PERMITTED, BAD, BAD, BAD}},
	{"configure", try_configure, {DOCA_SUCCESS, BAD, BAD, BAD}},
	{"take a task", try_take, {BAD, BAD, DOCA_SUCCESS, BAD}},
#undef BAD
#undef SLOW
};

static void every_function_in_every_state(void)
{
	struct doca_pe *pe = pe_create();
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		for (unsigned state = DOCA_CTX_STATE_IDLE; state <= DOCA_CTX_STATE_STOPPING; state++) {
			struct fake_ctx *fake = fake_ctx_in(pe, state);
			doca_error_t got = rules[i].call(fake);
			if (got != rules[i].in[state])
				fprintf(stderr, "%s in state %u gives %d\n", rules[i].name, state, (int)got);
			CHECK(got == rules[i].in[state]);
			CHECK_RESULT(fake->ctx.state == DOCA_CTX_STATE_IDLE ? DOCA_SUCCESS : DOCA_ERROR_IN_USE,
				     soft_ctx_fini(&fake->ctx));
			if (fake->ctx.state == DOCA_CTX_STATE_IDLE) {
				free(fake);
				continue;
			}
			bring_to_idle(pe, fake);
			fake_ctx_destroy(fake);
		}
	}
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void missing_arguments(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_create(NULL);
	union doca_data data = {.u64 = 0};
	enum doca_pe_event_mode no_mode = (enum doca_pe_event_mode)7;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_CONNECTED, soft_doca_ctx_start(&fake->ctx));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_stop(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_set_user_data(NULL, data));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_get_user_data(&fake->ctx, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_set_state_changed_cb(&fake->ctx, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_get_state(&fake->ctx, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_pe_create(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_pe_destroy(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_pe_connect_ctx(pe, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_pe_get_num_inflight_tasks(pe, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_pe_get_notification_handle(pe, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_pe_set_event_mode(pe, no_mode));
	CHECK_OK(soft_doca_pe_set_event_mode(pe, DOCA_PE_EVENT_MODE_PROGRESS_ALL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_submit(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_try_submit(NULL));
	CHECK(soft_doca_pe_progress(NULL) == 0);
	soft_doca_task_free(NULL);
	fake_ctx_destroy(fake);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void every_function_is_in_the_table(void)
{
	const struct doca_ops *ops = soft_ops();
	void *const *functions = (void *const *)(const void *)ops;
	for (size_t i = 0; i < sizeof(*ops) / sizeof(*functions); i++)
		CHECK(functions[i] != NULL);
	CHECK(ops->doca_ctx_start == soft_doca_ctx_start);
}

/* ---- transitions ---- */

static void transitions(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_in(pe, DOCA_CTX_STATE_STARTING);
	expect_change(fake, DOCA_CTX_STATE_IDLE, DOCA_CTX_STATE_STARTING);
	soft_ctx_running(&fake->ctx);
	expect_change(fake, DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_RUNNING);
	soft_ctx_fail(&fake->ctx);
	expect_change(fake, DOCA_CTX_STATE_RUNNING, DOCA_CTX_STATE_STOPPING);
	CHECK(fake->stoppings == 1 && fake->idles == 0);
	CHECK(soft_doca_pe_progress(pe) == 1);
	expect_change(fake, DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE);
	CHECK(fake->idles == 1 && soft_doca_pe_progress(pe) == 0);

	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(&fake->ctx));
	soft_ctx_fail(&fake->ctx);
	expect_change(fake, DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_IDLE);
	CHECK(fake->stoppings == 1 && fake->idles == 2);

	fake->start_result = DOCA_ERROR_DRIVER;
	CHECK_RESULT(DOCA_ERROR_DRIVER, soft_doca_ctx_start(&fake->ctx));
	CHECK(fake->ctx.state == DOCA_CTX_STATE_IDLE && fake->changes == 6);
	fake_ctx_destroy(fake);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void tasks_keep_a_context_from_idle(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
	struct doca_task *task = &fake->tasks[0];
	size_t inflight;
	CHECK_OK(soft_task_take(task, &fake->ctx));
	fake->submit_result = DOCA_ERROR_AGAIN;
	CHECK_RESULT(DOCA_ERROR_AGAIN, soft_doca_task_submit(task));
	fake->submit_result = DOCA_SUCCESS;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_submit_ex(task, 8));
	soft_doca_task_set_user_data(task, (union doca_data){.u64 = 13});
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_try_submit(task));
	CHECK_OK(soft_doca_task_submit_ex(task, DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS |
							DOCA_TASK_SUBMIT_FLAG_RANGE_PROFILING_REQUESTED));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_task_submit(task));
	CHECK_OK(soft_doca_pe_get_num_inflight_tasks(pe, &inflight));
	CHECK(inflight == 1);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&fake->ctx));
	soft_task_complete(task, DOCA_ERROR_IO_FAILED);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_doca_task_get_status(task));
	CHECK(soft_doca_task_get_user_data(task).u64 == 13 && soft_doca_task_get_ctx(task) == &fake->ctx);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_task_submit(task));
	CHECK(soft_doca_pe_progress(pe) == 0);
	soft_doca_task_free(task);
	soft_doca_task_free(task);
	CHECK(fake->releases == 1);
	CHECK(soft_doca_pe_progress(pe) == 1);
	expect_change(fake, DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE);
	fake_ctx_destroy(fake);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

/* Its callback may read it, but not submit it again. */
static void look(struct fake_ctx *fake, struct doca_task *task)
{
	CHECK(fake->releases == 0 && soft_doca_task_get_ctx(task) == &fake->ctx);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_doca_task_get_status(task));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_task_submit(task));
}

static void look_and_free(struct fake_ctx *fake, struct doca_task *task)
{
	look(fake, task);
	soft_doca_task_free(task);
}

static void freed_in_flight(void (*on_ended)(struct fake_ctx *fake, struct doca_task *task))
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
	struct doca_task *task = &fake->tasks[0];
	fake->on_ended = on_ended;
	CHECK_OK(soft_task_take(task, &fake->ctx));
	CHECK_OK(soft_doca_task_submit(task));
	soft_doca_task_free(task);
	soft_doca_task_free(task);
	CHECK(fake->releases == 0 && fake->ctx.inflight_tasks == 1);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&fake->ctx));
	CHECK(soft_doca_pe_progress(pe) == 0);
	soft_task_complete(task, DOCA_ERROR_IO_FAILED);
	CHECK(fake->endings == 1 && fake->releases == 1 && fake->ctx.inflight_tasks == 0);
	soft_doca_task_free(task);
	CHECK(fake->releases == 1 && soft_doca_pe_progress(pe) == 1);
	expect_change(fake, DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE);
	fake_ctx_destroy(fake);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void a_task_freed_in_flight_goes_when_it_ends(void)
{
	freed_in_flight(look);
	freed_in_flight(look_and_free);
}

/* A task that the callback frees, allocates again, submits and frees in flight is a new one. */
static void begin_anew(struct fake_ctx *fake, struct doca_task *task)
{
	if (fake->endings > 1)
		return;
	soft_doca_task_free(task);
	CHECK(fake->releases == 1);
	CHECK_OK(soft_task_take(task, &fake->ctx));
	CHECK_OK(soft_doca_task_submit(task));
	soft_doca_task_free(task);
}

static void a_task_taken_again_by_its_callback_is_another(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
	struct doca_task *task = &fake->tasks[0];
	fake->on_ended = begin_anew;
	CHECK_OK(soft_task_take(task, &fake->ctx));
	CHECK_OK(soft_doca_task_submit(task));
	soft_task_complete(task, DOCA_SUCCESS);
	CHECK(fake->releases == 1 && fake->ctx.inflight_tasks == 1);
	soft_task_complete(task, DOCA_SUCCESS);
	CHECK(fake->releases == 2 && fake->ctx.inflight_tasks == 0 && fake->ctx.allocated_tasks == 0);
	bring_to_idle(pe, fake);
	fake_ctx_destroy(fake);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

int main(void)
{
	fixture_open(&fake_ctx_fixture, NULL);
	RUN(every_function_in_every_state);
	RUN(missing_arguments);
	RUN(every_function_is_in_the_table);
	RUN(transitions);
	RUN(tasks_keep_a_context_from_idle);
	RUN(a_task_freed_in_flight_goes_when_it_ends);
	RUN(a_task_taken_again_by_its_callback_is_another);
	fixture_close(&fake_ctx_fixture);
	return 0;
}
