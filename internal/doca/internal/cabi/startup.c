/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs before Go's runtime, which ends with a stack trace if it cannot reserve memory or create threads: names the
 * resource limits that are too low. It also sets what has to be set before the first thread.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXIT_CONFIGURATION 3 /* as in the program's help */

/*
 * Address space that a copy reserves: the runtime's heap, and a stack for each thread. Most of it is never used.
 */
#define MIN_ADDRESS_SPACE ((rlim_t)2 << 30)

/* A copy has about 12. */
#define MIN_THREADS 16

/* Only below this limit on processes and threads, creating threads is tried; it takes a millisecond. */
#define LOW_THREAD_LIMIT 4096

static void check_address_space(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= MIN_ADDRESS_SPACE)
		return;
	fprintf(stderr,
		"dma-copy: cannot reserve enough memory: the limit on address space is %llu MiB of %llu: "
		"raise it (ulimit -v unlimited)\n",
		(unsigned long long)(limit.rlim_cur >> 20), (unsigned long long)(MIN_ADDRESS_SPACE >> 20));
	_exit(EXIT_CONFIGURATION);
}

static void *wait_for_all(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	return NULL;
}

/* Creates up to `wanted` threads at once. Returns 0, or the errno of the first that cannot be created. */
static int try_threads(int wanted, int *made)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[MIN_THREADS];
	int err = 0;
	pthread_mutex_lock(&gate);
	for (*made = 0; *made < wanted; (*made)++) {
		err = pthread_create(&threads[*made], NULL, wait_for_all, &gate);
		if (err != 0)
			break;
	}
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < *made; i++)
		pthread_join(threads[i], NULL);
	return err;
}

/* The limits of control groups, version 2 and 1, as seen inside a container. */
static const char *const pids_limits[] = {"/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"};

static bool is_low_limit(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	char *end;
	unsigned long most = strtoul(text, &end, 10);
	return length > 0 && end != text && most < LOW_THREAD_LIMIT; /* or "max" */
}

static bool thread_limit_is_low(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < LOW_THREAD_LIMIT)
		return true;
	for (size_t i = 0; i < sizeof(pids_limits) / sizeof(pids_limits[0]); i++)
		if (is_low_limit(pids_limits[i]))
			return true;
	return false;
}

static void check_threads(void)
{
	if (!thread_limit_is_low())
		return;
	int made;
	int err = try_threads(MIN_THREADS, &made);
	if (err == 0)
		return;
	fprintf(stderr,
		"dma-copy: cannot make enough threads: %d of %d (%s): raise the limit on processes (ulimit -u), "
		"or the control group's (pids.max)\n",
		made, MIN_THREADS, strerror(err));
	_exit(EXIT_CONFIGURATION);
}

/*
 * One arena for all threads: an arena of its own, which each thread gets otherwise, costs it three system calls and
 * some page faults when it starts. C code allocates little while a copy runs.
 */
static void share_arena(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
}

__attribute__((constructor)) static void start(void)
{
	share_arena();
	check_address_space();
	check_threads();
}
