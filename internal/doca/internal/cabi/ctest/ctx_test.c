/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine, the progress engine and tasks, driven by a toy kind of context whose every move is the test's. */
#include "stage.h"

struct toy {
	struct doca_ctx ctx; /* first */
	doca_error_t start_result, submit_result;
	bool busy;      /* not quiet */
	bool has_event; /* progress delivers one, with on_event */
	void (*on_event)(struct toy *toy);
	uint64_t ready_at;
	unsigned stoppings, idles, events, releases;
	unsigned changes;
	enum doca_ctx_states prev, next;
	void (*on_change)(struct toy *toy);
	struct doca_task tasks[2];
};

static struct stage stage;

static doca_error_t toy_start(struct doca_ctx *ctx)
{
	return ((struct toy *)ctx)->start_result;
}

static void toy_stopping(struct doca_ctx *ctx)
{
	((struct toy *)ctx)->stoppings++;
}

static bool toy_quiet(const struct doca_ctx *ctx)
{
	return !((const struct toy *)ctx)->busy;
}

static void toy_idle(struct doca_ctx *ctx)
{
	((struct toy *)ctx)->idles++;
}

static bool toy_progress(struct doca_ctx *ctx)
{
	struct toy *toy = (struct toy *)ctx;
	if (!toy->has_event)
		return false;
	toy->has_event = false;
	toy->events++;
	if (toy->on_event != NULL)
		toy->on_event(toy);
	return true;
}

static uint64_t toy_ready_at(const struct doca_ctx *ctx)
{
	const struct toy *toy = (const struct toy *)ctx;
	return toy->has_event ? 0 : toy->ready_at;
}

static doca_error_t toy_validate(const struct doca_task *task)
{
	return task->user_data.u64 == 13 ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

static doca_error_t toy_submit(struct doca_task *task)
{
	return ((struct toy *)task->ctx)->submit_result;
}

static void toy_release(struct doca_task *task)
{
	((struct toy *)task->ctx)->releases++;
}

static const struct soft_ctx_class toy_class = {
	.name = "toy",
	.start = toy_start,
	.stopping = toy_stopping,
	.quiet = toy_quiet,
	.idle = toy_idle,
	.progress = toy_progress,
	.ready_at = toy_ready_at,
	.validate = toy_validate,
	.submit = toy_submit,
	.release = toy_release,
};

static void toy_changed(const union doca_data user_data, struct doca_ctx *ctx, enum doca_ctx_states prev,
			enum doca_ctx_states next)
{
	struct toy *toy = user_data.ptr;
	CHECK(&toy->ctx == ctx && ctx->state == next);
	toy->changes++;
	toy->prev = prev;
	toy->next = next;
	if (toy->on_change != NULL)
		toy->on_change(toy);
}

static struct toy *toy_create(struct doca_pe *pe)
{
	struct toy *toy = calloc(1, sizeof(*toy));
	CHECK(toy != NULL);
	soft_ctx_init(&toy->ctx, &toy_class, stage.host);
	toy->ready_at = UINT64_MAX;
	CHECK_OK(soft_doca_ctx_set_user_data(&toy->ctx, (union doca_data){.ptr = toy}));
	CHECK_OK(soft_doca_ctx_set_state_changed_cb(&toy->ctx, toy_changed));
	if (pe != NULL)
		CHECK_OK(soft_doca_pe_connect_ctx(pe, &toy->ctx));
	return toy;
}

static void toy_destroy(struct toy *toy)
{
	CHECK_OK(soft_ctx_fini(&toy->ctx));
	free(toy);
}

static struct doca_pe *pe_create(void)
{
	struct doca_pe *pe;
	CHECK_OK(soft_doca_pe_create(&pe));
	return pe;
}

static void expect_change(const struct toy *toy, enum doca_ctx_states prev, enum doca_ctx_states next)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(&toy->ctx, &state));
	CHECK(toy->prev == prev && toy->next == next && state == next);
}

/* A context in the given state, by the shortest way there. */
static struct toy *toy_in(struct doca_pe *pe, enum doca_ctx_states state)
{
	struct toy *toy = toy_create(pe);
	if (state == DOCA_CTX_STATE_IDLE)
		return toy;
	toy->start_result = state == DOCA_CTX_STATE_STARTING ? DOCA_ERROR_IN_PROGRESS : DOCA_SUCCESS;
	CHECK_RESULT(toy->start_result, soft_doca_ctx_start(&toy->ctx));
	if (state != DOCA_CTX_STATE_STOPPING)
		return toy;
	toy->busy = true;
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&toy->ctx));
	return toy;
}

static void bring_to_idle(struct doca_pe *pe, struct toy *toy)
{
	toy->busy = false;
	if (toy->ctx.state != DOCA_CTX_STATE_IDLE && toy->ctx.state != DOCA_CTX_STATE_STOPPING)
		soft_doca_ctx_stop(&toy->ctx);
	while (soft_doca_pe_progress(pe))
		;
	CHECK(toy->ctx.state == DOCA_CTX_STATE_IDLE);
}

/* ---- every function in every state ---- */

static doca_error_t try_start(struct toy *toy)
{
	return soft_doca_ctx_start(&toy->ctx);
}

static doca_error_t try_stop(struct toy *toy)
{
	return soft_doca_ctx_stop(&toy->ctx);
}

static doca_error_t try_set_user_data(struct toy *toy)
{
	return soft_doca_ctx_set_user_data(&toy->ctx, (union doca_data){.ptr = toy});
}

static doca_error_t try_set_callback(struct toy *toy)
{
	return soft_doca_ctx_set_state_changed_cb(&toy->ctx, toy_changed);
}

static doca_error_t try_get_user_data(struct toy *toy)
{
	union doca_data data;
	return soft_doca_ctx_get_user_data(&toy->ctx, &data);
}

static doca_error_t try_count(struct toy *toy)
{
	size_t n;
	return soft_doca_ctx_get_num_inflight_tasks(&toy->ctx, &n);
}

static doca_error_t try_connect(struct toy *toy)
{
	return soft_doca_pe_connect_ctx(toy->ctx.pe, &toy->ctx);
}

static doca_error_t try_configure(struct toy *toy)
{
	return soft_ctx_configurable(&toy->ctx);
}

static doca_error_t try_take(struct toy *toy)
{
	doca_error_t result = soft_task_take(&toy->tasks[0], &toy->ctx);
	if (result == DOCA_SUCCESS)
		soft_doca_task_free(&toy->tasks[0]);
	return result;
}

static const struct {
	const char *name;
	doca_error_t (*call)(struct toy *toy);
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
			struct toy *toy = toy_in(pe, state);
			doca_error_t got = rules[i].call(toy);
			if (got != rules[i].in[state])
				fprintf(stderr, "%s in state %u gives %d\n", rules[i].name, state, (int)got);
			CHECK(got == rules[i].in[state]);
			CHECK_RESULT(toy->ctx.state == DOCA_CTX_STATE_IDLE ? DOCA_SUCCESS : DOCA_ERROR_IN_USE,
				     soft_ctx_fini(&toy->ctx));
			if (toy->ctx.state == DOCA_CTX_STATE_IDLE) {
				free(toy);
				continue;
			}
			bring_to_idle(pe, toy);
			toy_destroy(toy);
		}
	}
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void missing_arguments(void)
{
	struct doca_pe *pe = pe_create();
	struct toy *toy = toy_create(NULL);
	union doca_data data = {.u64 = 0};
	enum doca_pe_event_mode no_mode = (enum doca_pe_event_mode)7;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_CONNECTED, soft_doca_ctx_start(&toy->ctx));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_stop(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_set_user_data(NULL, data));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_get_user_data(&toy->ctx, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_set_state_changed_cb(&toy->ctx, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_get_state(&toy->ctx, NULL));
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
	toy_destroy(toy);
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
	struct toy *toy = toy_in(pe, DOCA_CTX_STATE_STARTING);
	expect_change(toy, DOCA_CTX_STATE_IDLE, DOCA_CTX_STATE_STARTING);
	soft_ctx_running(&toy->ctx);
	expect_change(toy, DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_RUNNING);
	soft_ctx_fail(&toy->ctx);
	expect_change(toy, DOCA_CTX_STATE_RUNNING, DOCA_CTX_STATE_STOPPING);
	CHECK(toy->stoppings == 1 && toy->idles == 0);
	CHECK(soft_doca_pe_progress(pe) == 1);
	expect_change(toy, DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE);
	CHECK(toy->idles == 1 && soft_doca_pe_progress(pe) == 0);

	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(&toy->ctx));
	soft_ctx_fail(&toy->ctx);
	expect_change(toy, DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_IDLE);
	CHECK(toy->stoppings == 1 && toy->idles == 2);

	toy->start_result = DOCA_ERROR_DRIVER;
	CHECK_RESULT(DOCA_ERROR_DRIVER, soft_doca_ctx_start(&toy->ctx));
	CHECK(toy->ctx.state == DOCA_CTX_STATE_IDLE && toy->changes == 6);
	toy_destroy(toy);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void tasks_keep_a_context_from_idle(void)
{
	struct doca_pe *pe = pe_create();
	struct toy *toy = toy_in(pe, DOCA_CTX_STATE_RUNNING);
	struct doca_task *task = &toy->tasks[0];
	size_t inflight;
	CHECK_OK(soft_task_take(task, &toy->ctx));
	toy->submit_result = DOCA_ERROR_AGAIN;
	CHECK_RESULT(DOCA_ERROR_AGAIN, soft_doca_task_submit(task));
	toy->submit_result = DOCA_SUCCESS;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_submit_ex(task, 4));
	soft_doca_task_set_user_data(task, (union doca_data){.u64 = 13});
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_try_submit(task));
	CHECK_OK(soft_doca_task_submit_ex(task, DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_task_submit(task));
	soft_doca_task_free(task);
	CHECK(toy->releases == 0);
	CHECK_OK(soft_doca_pe_get_num_inflight_tasks(pe, &inflight));
	CHECK(inflight == 1);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&toy->ctx));
	soft_task_complete(task, DOCA_ERROR_IO_FAILED);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_doca_task_get_status(task));
	CHECK(soft_doca_task_get_user_data(task).u64 == 13 && soft_doca_task_get_ctx(task) == &toy->ctx);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_task_submit(task));
	CHECK(soft_doca_pe_progress(pe) == 0);
	soft_doca_task_free(task);
	soft_doca_task_free(task);
	CHECK(toy->releases == 1);
	CHECK(soft_doca_pe_progress(pe) == 1);
	expect_change(toy, DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE);
	toy_destroy(toy);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

/* ---- progress ---- */

static void refuse_to_nest(struct toy *toy)
{
	CHECK(soft_doca_pe_progress(toy->ctx.pe) == 0);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_pe_destroy(toy->ctx.pe));
}

static void contexts_take_turns(void)
{
	struct doca_pe *pe = pe_create();
	struct toy *toys[3];
	for (int i = 0; i < 3; i++) {
		toys[i] = toy_in(pe, DOCA_CTX_STATE_RUNNING);
		toys[i]->on_event = refuse_to_nest;
	}
	for (int i = 0; i < 30; i++) {
		for (int j = 0; j < 3; j++)
			toys[j]->has_event = true;
		CHECK(soft_doca_pe_progress(pe) == 1);
	}
	for (int i = 0; i < 3; i++)
		CHECK(toys[i]->events == 10);
	for (int i = 0; i < 3; i++)
		bring_to_idle(pe, toys[i]);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_pe_destroy(pe));
	toy_destroy(toys[1]);
	toy_destroy(toys[0]);
	toy_destroy(toys[2]);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void the_next_in_turn_goes(void)
{
	struct doca_pe *pe = pe_create();
	struct toy *second = toy_create(pe);
	struct toy *first = toy_in(pe, DOCA_CTX_STATE_RUNNING);
	first->has_event = true;
	CHECK(soft_doca_pe_progress(pe) == 1);
	toy_destroy(second);
	CHECK(soft_doca_pe_progress(pe) == 0);
	bring_to_idle(pe, first);
	toy_destroy(first);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void stop_now(struct toy *toy)
{
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&toy->ctx));
}

static void destroy_when_idle(struct toy *toy)
{
	if (toy->next == DOCA_CTX_STATE_IDLE)
		toy_destroy(toy);
}

static void stop_and_destroy_inside_callbacks(void)
{
	struct doca_pe *pe = pe_create();
	struct toy *toy = toy_in(pe, DOCA_CTX_STATE_RUNNING);
	toy->on_event = stop_now;
	toy->on_change = destroy_when_idle;
	toy->has_event = true;
	CHECK(soft_doca_pe_progress(pe) == 1);
	CHECK(toy->ctx.state == DOCA_CTX_STATE_STOPPING);
	CHECK(soft_doca_pe_progress(pe) == 1);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

/* ---- notification ---- */

static void expect_armed(struct doca_pe *pe, bool readable)
{
	CHECK_OK(soft_doca_pe_request_notification(pe));
	CHECK(stage_readable(pe, 0) == readable);
	CHECK_OK(soft_doca_pe_clear_notification(pe, 0));
	CHECK(!stage_readable(pe, 0));
}

static void only_an_armed_handle_wakes(void)
{
	struct doca_pe *pe = pe_create();
	struct toy *toy = toy_in(pe, DOCA_CTX_STATE_RUNNING);
	int ends[2];
	CHECK(pipe(ends) == 0);
	CHECK_OK(soft_pe_watch(pe, ends[0], 1 /* EPOLLIN */));
	expect_armed(pe, false);

	toy->has_event = true;
	CHECK(!stage_readable(pe, 0));
	expect_armed(pe, true);
	CHECK(soft_doca_pe_progress(pe) == 1);
	expect_armed(pe, false);

	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(!stage_readable(pe, 0));
	expect_armed(pe, true);
	soft_pe_unwatch(pe, ends[0]);
	expect_armed(pe, false);

	bring_to_idle(pe, toy);
	toy_destroy(toy);
	CHECK_OK(soft_doca_pe_destroy(pe));
	close(ends[0]);
	close(ends[1]);
}

static void work_that_appears_while_armed(void)
{
	struct doca_pe *pe = pe_create();
	struct toy *toy = toy_in(pe, DOCA_CTX_STATE_RUNNING);
	CHECK_OK(soft_task_take(&toy->tasks[0], &toy->ctx));
	CHECK_OK(soft_doca_pe_request_notification(pe));
	CHECK(!stage_readable(pe, 0));
	toy->has_event = true;
	CHECK_OK(soft_doca_task_submit(&toy->tasks[0]));
	CHECK(stage_readable(pe, 0));
	CHECK(soft_doca_pe_progress(pe) == 1);
	CHECK(!stage_readable(pe, 0));

	soft_task_complete(&toy->tasks[0], DOCA_SUCCESS);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&toy->ctx));
	CHECK(!stage_readable(pe, 0));
	soft_doca_task_free(&toy->tasks[0]);
	CHECK(stage_readable(pe, 0));
	CHECK(soft_doca_pe_progress(pe) == 1);
	CHECK(toy->ctx.state == DOCA_CTX_STATE_IDLE && !stage_readable(pe, 0));
	toy_destroy(toy);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void a_deadline_wakes(void)
{
	struct doca_pe *pe = pe_create();
	struct toy *toy = toy_in(pe, DOCA_CTX_STATE_RUNNING);
	toy->ready_at = soft_now_ns() + 3600ULL * 1000000000U;
	expect_armed(pe, false);
	toy->ready_at = soft_now_ns() + 5000000U;
	CHECK_OK(soft_doca_pe_request_notification(pe));
	CHECK(stage_readable(pe, 30000));
	CHECK(soft_now_ns() >= toy->ready_at);
	toy->ready_at = UINT64_MAX;
	expect_armed(pe, false);
	bring_to_idle(pe, toy);
	toy_destroy(toy);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

int main(void)
{
	stage_open(&stage, NULL);
	RUN(every_function_in_every_state);
	RUN(missing_arguments);
	RUN(every_function_is_in_the_table);
	RUN(transitions);
	RUN(tasks_keep_a_context_from_idle);
	RUN(contexts_take_turns);
	RUN(the_next_in_turn_goes);
	RUN(stop_and_destroy_inside_callbacks);
	RUN(only_an_armed_handle_wakes);
	RUN(work_that_appears_while_armed);
	RUN(a_deadline_wakes);
	stage_close(&stage);
	return 0;
}
