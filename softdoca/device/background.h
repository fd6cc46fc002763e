/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submitted tasks that could not be executed at once, because a socket was full or a wait was not satisfied, go on
 * without doca_pe_progress, as on hardware: a thread of this process tries them again at intervals. Progress may try
 * them, too. A forked child has no jobs: its parent keeps them.
 *
 * Locks: the thread's before the locks of the jobs' objects. So jobs are started and stopped with no such lock held.
 */
#ifndef DMA_COPY_SOFT_BACKGROUND_H
#define DMA_COPY_SOFT_BACKGROUND_H

#include <stdbool.h>
#include <sys/queue.h>

enum soft_job_result { SOFT_JOB_DONE, SOFT_JOB_MOVED, SOFT_JOB_WAITS };

/* All zero but for run: not started. */
struct soft_job {
	enum soft_job_result (*run)(struct soft_job *job);
	TAILQ_ENTRY(soft_job) link; /* under the lock, as is active */
	bool active;
};

/* Runs the job until it is done. Any thread may call. */
void soft_job_start(struct soft_job *job);

/* Afterwards the job does not run. */
void soft_job_stop(struct soft_job *job);

/* Ends the thread, before the library is unloaded. A program that exits may leave jobs. */
void soft_background_end(void);

#endif
