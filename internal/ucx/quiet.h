/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that UCX starts inherit the signal mask of their creator: with all signals blocked, Go keeps getting them. */
#ifndef DMA_COPY_UCX_QUIET_H
#define DMA_COPY_UCX_QUIET_H

#include <pthread.h>
#include <signal.h>

static inline sigset_t signals_block(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	return before;
}

static inline void signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
