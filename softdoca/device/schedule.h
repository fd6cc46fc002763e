/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the memcpy tasks of an engine with a time model complete. The caller supplies the time, so the schedule is a
 * pure function of the tasks and of the times of their submission:
 *
 *   begin = the latest of: submission, the end of the service of the task before in its direction, and, of the at_once
 *           tasks before, the earliest completion
 *   service = the longer of: the gap between tasks, and bytes at the direction's rate
 *   done  = begin + the longer of: service, and latency + bytes at a single task's rate
 *
 * So w equal tasks in flight reach w / (latency + bytes / task rate) tasks per second, until the direction's rate, the
 * gap or at_once bounds them. Late polling costs nothing while tasks wait to begin.
 */
#ifndef DMA_COPY_SOFT_SCHEDULE_H
#define DMA_COPY_SOFT_SCHEDULE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sizes.h"

struct soft_limits;

enum soft_direction { SOFT_READ, SOFT_WRITE, SOFT_DIRECTIONS };

/* The properties of a memcpy task that its time depends on. */
struct soft_move {
	uint64_t at_ns; /* of submission */
	uint64_t bytes;
	enum soft_direction direction; /* seen from the engine: WRITE if it writes into the other side's memory */
	bool optimized;                /* submitted with OPTIMIZE_REPORTS */
};

/* Counts picoseconds: at 50 GB/s a cache line takes 1.28 ns, and rounding errors would add up. */
struct soft_pipe {
	uint64_t free_at_ns;
	uint64_t free_at_ps; /* added to that, 0 to 999 */
};

/* All zero: nothing was submitted yet. */
struct soft_schedule {
	struct soft_pipe pipes[SOFT_DIRECTIONS];
	uint64_t done_at_ns[SOFT_MAX_AT_ONCE]; /* of the last at_once tasks; a heap with the earliest at its root */
};

/* Adds a move and returns when it completes: nanoseconds, not before its submission, at most INT64_MAX. */
uint64_t soft_schedule_add(struct soft_schedule *schedule, const struct soft_limits *limits,
			   const struct soft_move *move);

/* The schedule of one device, shared by all its engines in this process. Any thread may call the functions below. */
struct soft_clock {
	pthread_mutex_t lock;
	struct soft_schedule schedule; /* under lock */
	atomic_size_t inflight;        /* moves that have entered and not left */
};

#define SOFT_CLOCK_INITIALIZER                    \
	{                                         \
		.lock = PTHREAD_MUTEX_INITIALIZER \
	}

/* Adds a move. Without moves in flight the device is idle, even if moves of a long schedule were flushed. */
uint64_t soft_clock_enter(struct soft_clock *clock, const struct soft_limits *limits, const struct soft_move *move);

/* A move that entered has completed, or was flushed. */
void soft_clock_leave(struct soft_clock *clock);

#endif
