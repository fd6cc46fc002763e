/* SPDX-License-Identifier: Apache-2.0 */
/* The progress engine: the order of contexts, and notification. */
#include "../device/now.h"
#include "../device/pe.h"
#include "../device/sizes.h"
#include "fake_ctx.h"

/* ---- progress ---- */

static void refuse_to_nest(struct fake_ctx *fake)
{
	CHECK(soft_doca_pe_progress(fake->ctx.pe) == 0);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_pe_destroy(fake->ctx.pe));
}

static void another_event(struct fake_ctx *fake)
{
	refuse_to_nest(fake);
	fake->has_event = true;
}

/* One progress does what is ready, in turn, but ends even if there is always more. */
static void contexts_are_served_in_turn(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fakes[3];
	for (int i = 0; i < 3; i++) {
		fakes[i] = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
		fakes[i]->on_event = refuse_to_nest;
		fakes[i]->has_event = true;
	}
	CHECK(soft_doca_pe_progress(pe) == 1 && soft_doca_pe_progress(pe) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(fakes[i]->events == 1);
		fakes[i]->on_event = another_event;
		fakes[i]->has_event = true;
	}
	CHECK(soft_doca_pe_progress(pe) == 1);
	for (int i = 0; i < 3; i++) {
		CHECK(fakes[i]->events >= SOFT_PROGRESS_EVENTS / 3);
		fakes[i]->has_event = false;
	}
	for (int i = 0; i < 3; i++)
		bring_to_idle(pe, fakes[i]);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_pe_destroy(pe));
	fake_ctx_destroy(fakes[1]);
	fake_ctx_destroy(fakes[0]);
	fake_ctx_destroy(fakes[2]);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void the_next_in_turn_goes(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *second = fake_ctx_create(pe);
	struct fake_ctx *first = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
	first->has_event = true;
	CHECK(soft_doca_pe_progress(pe) == 1);
	fake_ctx_destroy(second);
	CHECK(soft_doca_pe_progress(pe) == 0);
	bring_to_idle(pe, first);
	fake_ctx_destroy(first);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void stop_now(struct fake_ctx *fake)
{
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&fake->ctx));
}

static void destroy_when_idle(struct fake_ctx *fake)
{
	if (fake->next == DOCA_CTX_STATE_IDLE)
		fake_ctx_destroy(fake);
}

static void stop_and_destroy_inside_callbacks(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
	fake->on_event = stop_now;
	fake->on_change = destroy_when_idle;
	fake->has_event = true;
	CHECK(soft_doca_pe_progress(pe) == 1);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

/* ---- notification ---- */

static void expect_armed(struct doca_pe *pe, bool readable)
{
	CHECK_OK(soft_doca_pe_request_notification(pe));
	CHECK(fixture_readable(pe, 0) == readable);
	CHECK_OK(soft_doca_pe_clear_notification(pe, 0));
	CHECK(!fixture_readable(pe, 0));
}

static void only_an_armed_handle_wakes(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
	int ends[2];
	CHECK(pipe(ends) == 0);
	CHECK_OK(soft_pe_watch(pe, ends[0], 1 /* EPOLLIN */));
	expect_armed(pe, false);

	fake->has_event = true;
	CHECK(!fixture_readable(pe, 0));
	expect_armed(pe, true);
	CHECK(soft_doca_pe_progress(pe) == 1);
	expect_armed(pe, false);

	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(!fixture_readable(pe, 0));
	expect_armed(pe, true);
	soft_pe_unwatch(pe, ends[0]);
	expect_armed(pe, false);

	bring_to_idle(pe, fake);
	fake_ctx_destroy(fake);
	CHECK_OK(soft_doca_pe_destroy(pe));
	close(ends[0]);
	close(ends[1]);
}

static void work_that_appears_while_armed(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
	CHECK_OK(soft_task_take(&fake->tasks[0], &fake->ctx));
	CHECK_OK(soft_doca_pe_request_notification(pe));
	CHECK(!fixture_readable(pe, 0));
	fake->has_event = true;
	CHECK_OK(soft_doca_task_submit(&fake->tasks[0]));
	CHECK(fixture_readable(pe, 0));
	CHECK(soft_doca_pe_progress(pe) == 1);
	CHECK(!fixture_readable(pe, 0));

	soft_task_complete(&fake->tasks[0], DOCA_SUCCESS);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(&fake->ctx));
	CHECK(!fixture_readable(pe, 0));
	soft_doca_task_free(&fake->tasks[0]);
	CHECK(fixture_readable(pe, 0));
	CHECK(soft_doca_pe_progress(pe) == 1);
	CHECK(fake->ctx.state == DOCA_CTX_STATE_IDLE && !fixture_readable(pe, 0));
	fake_ctx_destroy(fake);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

static void a_deadline_wakes(void)
{
	struct doca_pe *pe = pe_create();
	struct fake_ctx *fake = fake_ctx_in(pe, DOCA_CTX_STATE_RUNNING);
	fake->ready_at = soft_now_ns() + 3600ULL * 1000000000U;
	expect_armed(pe, false);
	fake->ready_at = soft_now_ns() + 5000000U;
	CHECK_OK(soft_doca_pe_request_notification(pe));
	CHECK(fixture_readable(pe, 30000));
	CHECK(soft_now_ns() >= fake->ready_at);
	fake->ready_at = UINT64_MAX;
	expect_armed(pe, false);
	bring_to_idle(pe, fake);
	fake_ctx_destroy(fake);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

int main(void)
{
	fixture_open(&fake_ctx_fixture, NULL);
	RUN(contexts_are_served_in_turn);
	RUN(the_next_in_turn_goes);
	RUN(stop_and_destroy_inside_callbacks);
	RUN(only_an_armed_handle_wakes);
	RUN(work_that_appears_while_armed);
	RUN(a_deadline_wakes);
	fixture_close(&fake_ctx_fixture);
	return 0;
}
