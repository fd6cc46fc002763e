/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "background.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "sizes.h"

static struct {
	pthread_mutex_t lock; /* held while jobs run */
	TAILQ_HEAD(, soft_job) jobs;
	uint64_t pause;
	pthread_t thread;
	bool running; /* the thread */
	bool ending;  /* soft_background_end waits for the thread */
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
	background.running = false;
	if (!background.ending)
		pthread_detach(background.thread);
	pthread_mutex_unlock(&background.lock);
	return NULL;
}

/* The thread is then between two jobs. */
static void before_fork(void)
{
	pthread_mutex_lock(&background.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&background.lock);
}

/* A forked child has no thread, and the parent goes on with the jobs: the child would send messages twice. */
static void in_child(void)
{
	while (!TAILQ_EMPTY(&background.jobs))
		remove_job(TAILQ_FIRST(&background.jobs));
	background.running = background.ending = false;
	pthread_mutex_unlock(&background.lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* Blocks all signals in the thread: the program handles them. Without a thread, progress alone moves jobs. */
static void start_thread(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	background.running = pthread_create(&background.thread, NULL, work, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void soft_job_start(struct soft_job *job)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&background.lock);
	if (!job->active) {
		job->active = true;
		TAILQ_INSERT_TAIL(&background.jobs, job, link);
		background.pause = SOFT_JOB_PAUSE_NS;
		if (!background.running)
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

void soft_background_end(void)
{
	pthread_mutex_lock(&background.lock);
	bool running = background.running;
	background.ending = running;
	pthread_t thread = background.thread;
	pthread_mutex_unlock(&background.lock);
	if (!running)
		return;
	pthread_join(thread, NULL);
	background.ending = false;
}
