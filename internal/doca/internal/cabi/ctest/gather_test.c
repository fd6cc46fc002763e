/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of several ranges in the provider-neutral part: with each of the two functions that make lists, with more
 * ranges than fit at once, and with failures. Each engine is closed, which DOCA refuses while a buffer is not returned.
 */
#include "../engine.h"
#include "fixture.h"

#define DEPTH 4U
#define SOURCES 6U
#define BYTES 4096U
#define TARGET 2048U /* offset of the targets; the sources are before it */

static struct fixture fixture;
static struct doca_ops ops;
static struct doca_mmap *map;
static struct engine *engine;
static uint8_t memory[BYTES];

/* A reference that is released twice would not be noticed by the one who releases it, and may be another list's. */
static doca_error_t release_once(struct doca_buf *buf, uint16_t *refcount)
{
	CHECK_OK(soft_doca_buf_dec_refcount(buf, refcount));
	return DOCA_SUCCESS;
}

static void open_all(const char *limits)
{
	fixture_open(&fixture, limits);
	ops = *soft_ops();
	ops.doca_buf_dec_refcount = release_once;
	for (size_t i = 0; i < BYTES; i++)
		memory[i] = i < TARGET ? (uint8_t)(i * 7 + i / 256) : 0;
	CHECK_OK(soft_doca_mmap_create(&map));
	CHECK_OK(soft_doca_mmap_set_memrange(map, memory, BYTES));
	CHECK_OK(soft_doca_mmap_add_dev(map, fixture.dpu));
	CHECK_OK(soft_doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE));
	CHECK_OK(soft_doca_mmap_start(map));
	CHECK_OK(engine_open(&ops, fixture.dpu, DEPTH, SOURCES, &engine).status);
}

static void close_all(void)
{
	CHECK_OK(progress_stop(&engine->progress).status);
	while (progress_state(&engine->progress) != DOCA_CTX_STATE_IDLE)
		engine_poll(engine, 1);
	CHECK_OK(engine_close(engine).status);
	CHECK_OK(soft_doca_mmap_destroy(map));
	fixture_close(&fixture);
}

/* A copy of 10 bytes at the beginning and of so many further ranges, to the place of this number. */
static struct engine_copy copy_to(unsigned place, unsigned more)
{
	return (struct engine_copy){
		.source_map = map,
		.target_map = map,
		.source = (uintptr_t)memory,
		.target = (uintptr_t)memory + TARGET + place * 64,
		.len = 10,
		.tag = place,
		.more = more,
	};
}

static struct engine_range range(size_t offset, size_t len)
{
	return (struct engine_range){(uintptr_t)memory + offset, len};
}

static void wait_for(uint32_t count, doca_error_t status)
{
	for (uint32_t n = 0; n < count;) {
		uint32_t polled = engine_poll(engine, DEPTH);
		for (uint32_t i = 0; i < polled; i++)
			CHECK_RESULT(status, (doca_error_t)engine->completions[i].status);
		n += polled;
	}
	CHECK(engine->inflight == 0);
}

/* Bytes of ranges in the order of the list, and none behind them. */
static void expect_gathered(unsigned place, const struct engine_range *more, unsigned count)
{
	const uint8_t *to = memory + TARGET + place * 64;
	CHECK(memcmp(to, memory, 10) == 0);
	to += 10;
	for (unsigned i = 0; i < count; to += more[i].len, i++)
		CHECK(memcmp(to, (const void *)(uintptr_t)more[i].source, more[i].len) == 0);
	CHECK(*to == 0);
}

static void gather_two_copies(void)
{
	const struct engine_copy copies[] = {copy_to(0, 2), copy_to(1, 0), copy_to(2, 1)};
	const struct engine_range more[] = {range(1500, 3), range(100, 20), range(101, 5)};
	struct engine_submission s = engine_submit(engine, copies, 3, more);
	CHECK(s.submitted == 3 && s.outcome.status == DOCA_SUCCESS && engine->inflight == 3);
	wait_for(3, DOCA_SUCCESS);
	expect_gathered(0, more, 2);
	expect_gathered(1, NULL, 0);
	expect_gathered(2, more + 2, 1);
}

static unsigned tail_calls, list_calls;

static doca_error_t count_tail(struct doca_buf *head, struct doca_buf *tail, struct doca_buf *list)
{
	tail_calls++;
	return soft_doca_buf_chain_list_tail(head, tail, list);
}

static doca_error_t count_list(struct doca_buf *head, struct doca_buf *list)
{
	list_calls++;
	return soft_doca_buf_chain_list(head, list);
}

static void ranges_are_gathered_in_order(void)
{
	open_all(NULL);
	tail_calls = list_calls = 0;
	ops.doca_buf_chain_list_tail = count_tail;
	ops.doca_buf_chain_list = count_list;
	gather_two_copies();
	CHECK(tail_calls == 3 && list_calls == 0);
	close_all();
}

/* As in DOCA 2.5. */
static void release_without_tail(void)
{
	open_all(NULL);
	list_calls = 0;
	ops.doca_buf_chain_list_tail = NULL;
	ops.doca_buf_chain_list = count_list;
	gather_two_copies();
	CHECK(list_calls == 3);
	close_all();
}

/* The inventory has 10 buffers, and these copies need 12. */
static void refused_until_polled(void)
{
	open_all(NULL);
	const struct engine_copy copies[] = {copy_to(0, 2), copy_to(1, 2), copy_to(2, 2)};
	const struct engine_range more[] = {range(20, 1), range(30, 2), range(40, 3),
					    range(50, 4), range(60, 5), range(70, 6)};
	struct engine_submission s = engine_submit(engine, copies, 3, more);
	CHECK(s.submitted == 2 && s.outcome.status == DOCA_ERROR_AGAIN && engine->inflight == 2);
	wait_for(2, DOCA_SUCCESS);
	s = engine_submit(engine, copies + 2, 1, more + 4);
	CHECK(s.submitted == 1 && s.outcome.status == DOCA_SUCCESS);
	wait_for(1, DOCA_SUCCESS);
	for (unsigned i = 0; i < 3; i++)
		expect_gathered(i, more + 2 * i, 2);
	close_all();
}

/* Polling would not help. */
static void more_ranges_than_the_engine_has(void)
{
	open_all(NULL);
	struct engine_copy copy = copy_to(0, 10);
	struct engine_range more[10];
	for (unsigned i = 0; i < 10; i++)
		more[i] = range(i, 1);
	struct engine_submission s = engine_submit(engine, &copy, 1, more);
	CHECK(s.submitted == 0 && s.outcome.status == DOCA_ERROR_NO_MEMORY && engine->inflight == 0);
	gather_two_copies();
	close_all();
}

static void range_outside_of_the_memory(void)
{
	open_all(NULL);
	const struct engine_copy copy = copy_to(0, 2);
	const struct engine_range more[] = {range(20, 1), range(BYTES, 1)};
	struct engine_submission s = engine_submit(engine, &copy, 1, more);
	CHECK(s.submitted == 0 && s.outcome.status == DOCA_ERROR_INVALID_VALUE && engine->inflight == 0);
	gather_two_copies();
	close_all();
}

static unsigned calls_before_refusal;

static doca_error_t refuse_tail(struct doca_buf *head, struct doca_buf *tail, struct doca_buf *list)
{
	if (calls_before_refusal-- == 0)
		return DOCA_ERROR_NOT_PERMITTED;
	return soft_doca_buf_chain_list_tail(head, tail, list);
}

static void refused_list(void)
{
	const struct engine_range more[] = {range(20, 1), range(30, 1)};
	for (unsigned before = 0; before < 2; before++) {
		open_all(NULL);
		const struct engine_copy copy = copy_to(0, 2);
		calls_before_refusal = before;
		ops.doca_buf_chain_list_tail = refuse_tail;
		struct engine_submission s = engine_submit(engine, &copy, 1, more);
		CHECK(s.submitted == 0 && s.outcome.status == DOCA_ERROR_NOT_PERMITTED);
		CHECK(strcmp(s.outcome.op, "doca_buf_chain_list_tail") == 0);
		close_all();
	}
}

/* One that the device cannot execute fails all others. */
static void failed_list(void)
{
	open_all("max_buf_list_len=2");
	const struct engine_copy copies[] = {copy_to(0, 2), copy_to(1, 1)};
	const struct engine_range more[] = {range(20, 1), range(30, 1), range(40, 1)};
	CHECK(engine_submit(engine, copies, 2, more).submitted == 2);
	wait_for(2, DOCA_ERROR_IO_FAILED);
	CHECK(engine_submit(engine, copies + 1, 1, more).submitted == 0);
	close_all();
}

static void closed_in_flight(void)
{
	open_all(NULL);
	const struct engine_copy copies[] = {copy_to(0, 2), copy_to(1, 2)};
	const struct engine_range more[] = {range(20, 1), range(30, 1), range(40, 1), range(50, 1)};
	CHECK(engine_submit(engine, copies, 2, more).submitted == 2);
	CHECK_RESULT(DOCA_ERROR_IN_USE, engine_close(engine).status);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, progress_stop(&engine->progress).status);
	wait_for(2, DOCA_ERROR_IO_FAILED);
	close_all();
}

int main(void)
{
	RUN(ranges_are_gathered_in_order);
	RUN(release_without_tail);
	RUN(refused_until_polled);
	RUN(more_ranges_than_the_engine_has);
	RUN(range_outside_of_the_memory);
	RUN(refused_list);
	RUN(failed_list);
	RUN(closed_in_flight);
	return 0;
}
