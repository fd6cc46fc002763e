/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_ctx.h"
#include "../device/pe.h"

struct fixture fake_ctx_fixture;

static doca_error_t fake_ctx_start(struct doca_ctx *ctx)
{
	return ((struct fake_ctx *)ctx)->start_result;
}

static void fake_ctx_stopping(struct doca_ctx *ctx)
{
	((struct fake_ctx *)ctx)->stoppings++;
}

static bool fake_ctx_quiet(const struct doca_ctx *ctx)
{
	return !((const struct fake_ctx *)ctx)->busy;
}

static void fake_ctx_idle(struct doca_ctx *ctx)
{
	((struct fake_ctx *)ctx)->idles++;
}

static bool fake_ctx_progress(struct doca_ctx *ctx)
{
	struct fake_ctx *fake = (struct fake_ctx *)ctx;
	if (!fake->has_event)
		return false;
	fake->has_event = false;
	fake->events++;
	if (fake->on_event != NULL)
		fake->on_event(fake);
	return true;
}

static uint64_t fake_ctx_ready_at(const struct doca_ctx *ctx)
{
	const struct fake_ctx *fake = (const struct fake_ctx *)ctx;
	return fake->has_event ? 0 : fake->ready_at;
}

static doca_error_t fake_ctx_validate(const struct doca_task *task)
{
	return task->user_data.u64 == 13 ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

static doca_error_t fake_ctx_submit(struct doca_task *task)
{
	return ((struct fake_ctx *)task->ctx)->submit_result;
}

static void fake_ctx_ended(struct doca_task *task)
{
	struct fake_ctx *fake = (struct fake_ctx *)task->ctx;
	fake->endings++;
	if (fake->on_ended != NULL)
		fake->on_ended(fake, task);
}

static void fake_ctx_release(struct doca_task *task)
{
	((struct fake_ctx *)task->ctx)->releases++;
}

static const struct soft_ctx_class fake_ctx_class = {
	.name = "fake",
	.start = fake_ctx_start,
	.stopping = fake_ctx_stopping,
	.quiet = fake_ctx_quiet,
	.idle = fake_ctx_idle,
	.progress = fake_ctx_progress,
	.ready_at = fake_ctx_ready_at,
	.validate = fake_ctx_validate,
	.submit = fake_ctx_submit,
	.ended = fake_ctx_ended,
	.release = fake_ctx_release,
};

void fake_ctx_changed(const union doca_data user_data, struct doca_ctx *ctx, enum doca_ctx_states prev,
		      enum doca_ctx_states next)
{
	struct fake_ctx *fake = user_data.ptr;
	CHECK(&fake->ctx == ctx && ctx->state == next);
	fake->changes++;
	fake->prev = prev;
	fake->next = next;
	if (fake->on_change != NULL)
		fake->on_change(fake);
}

struct fake_ctx *fake_ctx_create(struct doca_pe *pe)
{
	struct fake_ctx *fake = calloc(1, sizeof(*fake));
	CHECK(fake != NULL);
	soft_ctx_init(&fake->ctx, &fake_ctx_class, fake_ctx_fixture.host);
	fake->ready_at = UINT64_MAX;
	CHECK_OK(soft_doca_ctx_set_user_data(&fake->ctx, (union doca_data){.ptr = fake}));
	CHECK_OK(soft_doca_ctx_set_state_changed_cb(&fake->ctx, fake_ctx_changed));
	if (pe != NULL)
		CHECK_OK(soft_doca_pe_connect_ctx(pe, &fake->ctx));
	return fake;
}

void fake_ctx_destroy(struct fake_ctx *fake)
{
	CHECK_OK(soft_ctx_fini(&fake->ctx));
	free(fake);
}

struct doca_pe *pe_create(void)
{
	struct doca_pe *pe;
	CHECK_OK(soft_doca_pe_create(&pe));
	return pe;
}

void expect_change(const struct fake_ctx *fake, enum doca_ctx_states prev, enum doca_ctx_states next)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(&fake->ctx, &state));
	CHECK(fake->prev == prev && fake->next == next && state == next);
}

struct fake_ctx *fake_ctx_in(struct doca_pe *pe, enum doca_ctx_states state)
{
	struct fake_ctx *fake = fake_ctx_create(pe);
	if (state == DOCA_CTX_STATE_IDLE)
		return fake;
	fake->start_result = state == DOCA_CTX_STATE_STARTING ? DOCA_ERROR_IN_PROGRESS : DOCA_SUCCESS;
	CHECK_RESULT(fake->start_result, soft_doca_ctx_start(&fake->ctx));
	if (state != DOCA_CTX_STATE_STOPPING)
		return fake;
	fake->busy = true;
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&fake->ctx));
	return fake;
}

void bring_to_idle(struct doca_pe *pe, struct fake_ctx *fake)
{
	fake->busy = false;
	if (fake->ctx.state != DOCA_CTX_STATE_IDLE && fake->ctx.state != DOCA_CTX_STATE_STOPPING)
		soft_doca_ctx_stop(&fake->ctx);
	while (soft_doca_pe_progress(pe))
		;
	CHECK(fake->ctx.state == DOCA_CTX_STATE_IDLE);
}
