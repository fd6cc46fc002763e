/* SPDX-License-Identifier: Apache-2.0 */
/* When tasks with a time model complete, at times that the tests supply. Nothing here reads a clock. */
#include <string.h>

#include "../device/config.h"
#include "../device/schedule.h"
#include "setup.h"

#define MIB (1u << 20)

static struct soft_schedule schedule;

static void begin(const char *limits)
{
	setup_configure(limits);
	memset(&schedule, 0, sizeof(schedule));
}

static uint64_t add(enum soft_direction direction, uint64_t at_ns, uint64_t bytes)
{
	const struct soft_move move = {.at_ns = at_ns, .bytes = bytes, .direction = direction};
	return soft_schedule_add(&schedule, soft_limits(), &move);
}

static uint64_t add_read(uint64_t at_ns, uint64_t bytes)
{
	return add(SOFT_READ, at_ns, bytes);
}

static void test_a_task_alone(void)
{
	begin("dma_latency_ns=1000,dma_task_mb_per_s=2000");
	CHECK(add_read(0, 0) == 1000);
	CHECK(add_read(50, 4000) == 50 + 1000 + 2000);
	CHECK(add_read(50, 1) == 50 + 1001); /* half a nanosecond is not over */
	CHECK(add_read(1 << 30, 4000) == (1 << 30) + 3000);
}

static void test_tasks_overlap_until_the_bandwidth_is_used(void)
{
	begin("dma_latency_ns=1000,dma_read_mb_per_s=1000");
	CHECK(add_read(0, 100) == 1000);
	CHECK(add_read(0, 100) == 1100);
	CHECK(add_read(0, 5000) == 200 + 5000);
	CHECK(add_read(10, 100) == 5200 + 1000);
	CHECK(add_read(7000, 100) == 8000); /* it was idle from 5300 on */
}

static void test_directions_do_not_share(void)
{
	begin("dma_read_mb_per_s=1000,dma_write_mb_per_s=500");
	CHECK(add(SOFT_READ, 0, 1000) == 1000);
	CHECK(add(SOFT_WRITE, 0, 1000) == 2000);
	CHECK(add(SOFT_READ, 0, 1000) == 2000);
	CHECK(add(SOFT_WRITE, 0, 1000) == 4000);
}

static void test_tasks_begin_a_gap_apart(void)
{
	begin("dma_read_gap_ns=300,dma_write_gap_ns=200,dma_optimized_gap_ns=100,dma_read_mb_per_s=1000");
	CHECK(add_read(0, 64) == 300);
	CHECK(add_read(0, 64) == 600);
	CHECK(add_read(0, 3000) == 3600); /* its bytes take longer */
	CHECK(add(SOFT_WRITE, 0, 64) == 200);
	const struct soft_move optimized = {.bytes = 64, .optimized = true};
	CHECK(soft_schedule_add(&schedule, soft_limits(), &optimized) == 3700);
	begin("dma_read_gap_ns=300");
	CHECK(soft_schedule_add(&schedule, soft_limits(), &optimized) == 300);
}

static void test_few_at_once(void)
{
	begin("dma_latency_ns=1000,dma_at_once=3");
	for (unsigned i = 0; i < 12; i++)
		CHECK(add(i % 2, 0, 64) == 1000 * (1 + i / 3)); /* of both directions together */
	CHECK(add_read(50000, 64) == 51000);
}

/* The task that completes first frees its slot, not the one that began first. */
static void test_the_earliest_frees_a_slot(void)
{
	begin("dma_task_mb_per_s=1000,dma_at_once=2");
	CHECK(add_read(0, 9000) == 9000);
	CHECK(add_read(0, 100) == 100);
	CHECK(add_read(0, 200) == 300);
	CHECK(add_read(0, 300) == 600);
	CHECK(add_read(0, 8500) == 9100);
	CHECK(add_read(0, 100) == 9100);
}

/* Compares the heap with a linear search for the earliest. */
static void test_at_once_against_a_search(void)
{
	uint64_t done[7] = {0}, random = 1, begun = 0;
	begin("dma_task_mb_per_s=1000,dma_at_once=7");
	for (unsigned i = 0; i < 10000; i++) {
		random = random * 6364136223846793005U + 1442695040888963407U;
		uint64_t bytes = 1 + (random >> 33) % 5000;
		unsigned earliest = 0;
		for (unsigned slot = 1; slot < 7; slot++)
			earliest = done[slot] < done[earliest] ? slot : earliest;
		begun = done[earliest] > begun ? done[earliest] : begun; /* tasks begin in order */
		done[earliest] = begun + bytes;
		CHECK(add_read(0, bytes) == done[earliest]);
	}
}

/* 1.28 ns each: rounding errors must not add up. */
static void test_fractions_are_kept(void)
{
	uint64_t last = 0;
	begin("dma_read_mb_per_s=50000");
	for (unsigned i = 0; i < 1000000; i++)
		last = add_read(0, 64);
	CHECK(last == 1280000);
}

/* The largest limits: completion is later, never before submission. */
static void test_nothing_overflows(void)
{
	uint64_t last = 0;
	begin("dma_read_mb_per_s=1,dma_task_mb_per_s=1,dma_latency_ns=60000000000,dma_at_once=1024");
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t done = add_read(0, 1ULL << 40);
		CHECK(done >= last && done <= INT64_MAX);
		last = done;
	}
	CHECK(last == INT64_MAX);
}

/* ---- A window of tasks: the next one is submitted when the oldest completes ---- */

static double gib_per_s(const char *model, struct soft_move move, unsigned window)
{
	uint64_t due[128] = {0};
	const unsigned rounds = 2000;
	begin(model);
	for (unsigned i = 0; i < window * rounds; i++) {
		move.at_ns = due[i % window];
		due[i % window] = soft_schedule_add(&schedule, soft_limits(), &move);
	}
	return (double)move.bytes * window * rounds / (double)due[window - 1] * 1e9 / (1 << 30);
}

static void near(double got, double published)
{
	if (got < 0.98 * published || got > 1.02 * published)
		fprintf(stderr, "the model reaches %.3f GiB/s where %.3f are published\n", got, published);
	CHECK(got > 0.98 * published && got < 1.02 * published);
}

static double write_gib(unsigned bytes, unsigned window)
{
	return gib_per_s("model=bluefield3", (struct soft_move){.bytes = bytes, .direction = SOFT_WRITE}, window);
}

static double read_gib(unsigned bytes, unsigned window, bool optimized)
{
	return gib_per_s("model=bluefield3", (struct soft_move){.bytes = bytes, .optimized = optimized}, window);
}

/* The measurements that softdoca/docs/SOFTDEVICE.md cites. */
static void test_bluefield3_fits_what_is_published(void)
{
	near(write_gib(4096, 1), 2.1);
	near(write_gib(4096, 32), 14.8);
	near(write_gib(MIB, 1), 9.9);
	near(write_gib(MIB, 32), 29.4);
	near(read_gib(MIB, 128, false), 35.5);
	near(read_gib(64, 128, false), 197.6 / 1024);
	near(read_gib(1024, 128, false), 3172.7 / 1024);
	near(read_gib(64, 128, true), 380.6 / 1024);
	near(read_gib(1024, 128, true), 5917.0 / 1024);
}

static void test_bluefield2_has_half_the_bandwidth(void)
{
	near(gib_per_s("model=bluefield2", (struct soft_move){.bytes = MIB, .direction = SOFT_WRITE}, 32), 29.4 / 2);
	near(gib_per_s("model=bluefield2", (struct soft_move){.bytes = MIB}, 128), 35.5 / 2);
}

static void test_400g_reaches_its_goal(void)
{
	const double goal = 50e9 / (1 << 30);
	near(gib_per_s("model=400g", (struct soft_move){.bytes = 256 << 10}, 16), goal);
	near(gib_per_s("model=400g", (struct soft_move){.bytes = 2 * MIB, .direction = SOFT_WRITE}, 16), goal);
}

/* ---- The clock of a device ---- */

#define THREADS 4
#define MOVES 20000

static struct soft_clock shared = SOFT_CLOCK_INITIALIZER;

static void *enter_all(void *latest)
{
	const struct soft_move move = {.bytes = 1000};
	for (unsigned i = 0; i < MOVES; i++)
		*(uint64_t *)latest = soft_clock_enter(&shared, soft_limits(), &move);
	return NULL;
}

/* Engines of one device share its bandwidth. */
static void test_threads_share_a_clock(void)
{
	pthread_t threads[THREADS];
	uint64_t latest[THREADS], last = 0;
	begin("dma_read_mb_per_s=1000");
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, enter_all, &latest[i]) == 0);
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		last = latest[i] > last ? latest[i] : last;
	}
	CHECK(last == (uint64_t)THREADS * MOVES * 1000);
	for (unsigned i = 0; i < THREADS * MOVES; i++)
		soft_clock_leave(&shared);
}

/* Flushed tasks do not delay the next engine. */
static void test_an_idle_device_starts_anew(void)
{
	struct soft_clock clock = SOFT_CLOCK_INITIALIZER;
	const struct soft_move move = {.bytes = 1000};
	begin("dma_read_mb_per_s=1000,dma_at_once=1");
	CHECK(soft_clock_enter(&clock, soft_limits(), &move) == 1000);
	CHECK(soft_clock_enter(&clock, soft_limits(), &move) == 2000);
	soft_clock_leave(&clock);
	CHECK(soft_clock_enter(&clock, soft_limits(), &move) == 3000);
	soft_clock_leave(&clock);
	soft_clock_leave(&clock);
	CHECK(soft_clock_enter(&clock, soft_limits(), &move) == 1000);
}

int main(void)
{
	RUN(test_a_task_alone);
	RUN(test_tasks_overlap_until_the_bandwidth_is_used);
	RUN(test_directions_do_not_share);
	RUN(test_tasks_begin_a_gap_apart);
	RUN(test_few_at_once);
	RUN(test_the_earliest_frees_a_slot);
	RUN(test_at_once_against_a_search);
	RUN(test_fractions_are_kept);
	RUN(test_nothing_overflows);
	RUN(test_bluefield3_fits_what_is_published);
	RUN(test_bluefield2_has_half_the_bandwidth);
	RUN(test_400g_reaches_its_goal);
	RUN(test_threads_share_a_clock);
	RUN(test_an_idle_device_starts_anew);
	return 0;
}
