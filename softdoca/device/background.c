/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "background.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "sizes.h"

static struct {
	pthread_mutex_t lock; /* held while jobs run */
	TAILQ_HEAD(, soft_job) jobs;
	uint64_t pause;
	pthread_t thread;
	atomic_int owner; /* the process whose thread it is; 0: there is none */
	bool ending;      /* soft_background_end waits for the thread */
} background = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.jobs = TAILQ_HEAD_INITIALIZER(background.jobs),
};

static void remove_job(struct soft_job *job)
{
	TAILQ_REMOVE(&background.jobs, job, link);
	job->active = false;
}

/* Reports whether a job moved. */
static bool run_jobs(void)
{
	bool moved = false;
	struct soft_job *job, *next;
	for (job = TAILQ_FIRST(&background.jobs); job != NULL; job = next) {
		next = TAILQ_NEXT(job, link);
		enum soft_job_result result = job->run(job);
		if (result == SOFT_JOB_DONE)
			remove_job(job);
		moved |= result != SOFT_JOB_WAITS;
	}
	return moved;
}

/* Jobs that wait for long are tried less often. */
static void choose_pause(bool moved)
{
	background.pause = moved ? SOFT_JOB_PAUSE_NS : 2 * background.pause;
	if (background.pause > SOFT_JOB_LONGEST_PAUSE_NS)
		background.pause = SOFT_JOB_LONGEST_PAUSE_NS;
}

/* Without the lock. */
static void wait_a_pause(void)
{
	struct timespec pause = {.tv_nsec = (long)background.pause};
	pthread_mutex_unlock(&background.lock);
	nanosleep(&pause, NULL);
	pthread_mutex_lock(&background.lock);
}

/* Ends also when there are no jobs: a process is easier to fork without threads. */
static void *work(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&background.lock);
	while (!TAILQ_EMPTY(&background.jobs) && !background.ending) {
		wait_a_pause();
		choose_pause(run_jobs());
	}
	atomic_store(&background.owner, 0);
	if (!background.ending)
		pthread_detach(background.thread);
	pthread_mutex_unlock(&background.lock);
	return NULL;
}

/* Blocks all signals in the thread: the program handles them. Without a thread, progress alone moves jobs. */
static void start_thread(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&background.thread, NULL, work, NULL) == 0)
		atomic_store(&background.owner, getpid());
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void soft_job_start(struct soft_job *job)
{
	pthread_mutex_lock(&background.lock);
	if (!job->active) {
		job->active = true;
		TAILQ_INSERT_TAIL(&background.jobs, job, link);
		background.pause = SOFT_JOB_PAUSE_NS;
		if (atomic_load(&background.owner) != getpid())
			start_thread();
	}
	pthread_mutex_unlock(&background.lock);
}

void soft_job_stop(struct soft_job *job)
{
	pthread_mutex_lock(&background.lock);
	if (job->active)
		remove_job(job);
	pthread_mutex_unlock(&background.lock);
}

/* A forked child has no thread, and perhaps a lock that nobody will release. */
void soft_background_end(void)
{
	if (atomic_load(&background.owner) != getpid())
		return;
	pthread_mutex_lock(&background.lock);
	background.ending = atomic_load(&background.owner) != 0;
	pthread_t thread = background.thread;
	pthread_mutex_unlock(&background.lock);
	if (background.ending)
		pthread_join(thread, NULL);
	background.ending = false;
}
