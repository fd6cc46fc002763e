/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "config.h"

#define PS_PER_NS 1000

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The largest size and the smallest rate keep the product within 64 bits. A rate of 0 is no bound. */
static uint64_t transfer_ps(uint64_t bytes, uint64_t mb_per_s)
{
	return mb_per_s == 0 ? 0 : bytes * 1000000 / mb_per_s;
}

static uint64_t gap_ns(const struct soft_limits *limits, const struct soft_move *move)
{
	if (move->optimized && limits->dma_optimized_gap_ns != 0)
		return limits->dma_optimized_gap_ns;
	return move->direction == SOFT_WRITE ? limits->dma_write_gap_ns : limits->dma_read_gap_ns;
}

static uint64_t service_ps(const struct soft_limits *limits, const struct soft_move *move)
{
	uint64_t rate = move->direction == SOFT_WRITE ? limits->dma_write_mb_per_s : limits->dma_read_mb_per_s;
	return larger(gap_ns(limits, move) * PS_PER_NS, transfer_ps(move->bytes, rate));
}

static uint64_t alone_ps(const struct soft_limits *limits, const struct soft_move *move)
{
	return limits->dma_latency_ns * PS_PER_NS + transfer_ps(move->bytes, limits->dma_task_mb_per_s);
}

static uint64_t later(uint64_t at_ns, uint64_t by_ns)
{
	return at_ns + by_ns < INT64_MAX ? at_ns + by_ns : INT64_MAX;
}

static void move_up(struct soft_pipe *pipe, uint64_t to_ns)
{
	if (to_ns > pipe->free_at_ns)
		*pipe = (struct soft_pipe){.free_at_ns = to_ns};
}

/* Replaces the earliest value of the heap by done_at. */
static void replace_earliest(uint64_t *heap, size_t len, uint64_t done_at)
{
	size_t at = 0;
	for (size_t child = 1; child < len; child = 2 * at + 1) {
		if (child + 1 < len && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= done_at)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = done_at;
}

uint64_t soft_schedule_add(struct soft_schedule *schedule, const struct soft_limits *limits,
			   const struct soft_move *move)
{
	struct soft_pipe *pipe = &schedule->pipes[move->direction];
	move_up(pipe, move->at_ns);
	if (limits->dma_at_once != 0)
		move_up(pipe, schedule->done_at_ns[0]);
	uint64_t service = pipe->free_at_ps + service_ps(limits, move);
	uint64_t alone = pipe->free_at_ps + alone_ps(limits, move);
	uint64_t done_at = later(pipe->free_at_ns, (larger(service, alone) + PS_PER_NS - 1) / PS_PER_NS);
	pipe->free_at_ns = later(pipe->free_at_ns, service / PS_PER_NS);
	pipe->free_at_ps = service % PS_PER_NS;
	if (limits->dma_at_once != 0)
		replace_earliest(schedule->done_at_ns, limits->dma_at_once, done_at);
	return done_at;
}

static void reset(struct soft_schedule *schedule, const struct soft_limits *limits)
{
	memset(schedule->pipes, 0, sizeof(schedule->pipes));
	memset(schedule->done_at_ns, 0, limits->dma_at_once * sizeof(schedule->done_at_ns[0]));
}

uint64_t soft_clock_enter(struct soft_clock *clock, const struct soft_limits *limits, const struct soft_move *move)
{
	pthread_mutex_lock(&clock->lock);
	if (atomic_fetch_add(&clock->inflight, 1) == 0)
		reset(&clock->schedule, limits);
	uint64_t done_at = soft_schedule_add(&clock->schedule, limits, move);
	pthread_mutex_unlock(&clock->lock);
	return done_at;
}

void soft_clock_leave(struct soft_clock *clock)
{
	atomic_fetch_sub(&clock->inflight, 1);
}
