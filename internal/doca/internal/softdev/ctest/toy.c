/* SPDX-License-Identifier: Apache-2.0 */
#include "toy.h"
#include "../pe.h"

struct fixture toy_fixture;

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

static void toy_ended(struct doca_task *task)
{
	struct toy *toy = (struct toy *)task->ctx;
	toy->endings++;
	if (toy->on_ended != NULL)
		toy->on_ended(toy, task);
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
	.ended = toy_ended,
	.release = toy_release,
};

void toy_changed(const union doca_data user_data, struct doca_ctx *ctx, enum doca_ctx_states prev,
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

struct toy *toy_create(struct doca_pe *pe)
{
	struct toy *toy = calloc(1, sizeof(*toy));
	CHECK(toy != NULL);
	soft_ctx_init(&toy->ctx, &toy_class, toy_fixture.host);
	toy->ready_at = UINT64_MAX;
	CHECK_OK(soft_doca_ctx_set_user_data(&toy->ctx, (union doca_data){.ptr = toy}));
	CHECK_OK(soft_doca_ctx_set_state_changed_cb(&toy->ctx, toy_changed));
	if (pe != NULL)
		CHECK_OK(soft_doca_pe_connect_ctx(pe, &toy->ctx));
	return toy;
}

void toy_destroy(struct toy *toy)
{
	CHECK_OK(soft_ctx_fini(&toy->ctx));
	free(toy);
}

struct doca_pe *pe_create(void)
{
	struct doca_pe *pe;
	CHECK_OK(soft_doca_pe_create(&pe));
	return pe;
}

void expect_change(const struct toy *toy, enum doca_ctx_states prev, enum doca_ctx_states next)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(&toy->ctx, &state));
	CHECK(toy->prev == prev && toy->next == next && state == next);
}

struct toy *toy_in(struct doca_pe *pe, enum doca_ctx_states state)
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

void bring_to_idle(struct doca_pe *pe, struct toy *toy)
{
	toy->busy = false;
	if (toy->ctx.state != DOCA_CTX_STATE_IDLE && toy->ctx.state != DOCA_CTX_STATE_STOPPING)
		soft_doca_ctx_stop(&toy->ctx);
	while (soft_doca_pe_progress(pe))
		;
	CHECK(toy->ctx.state == DOCA_CTX_STATE_IDLE);
}
