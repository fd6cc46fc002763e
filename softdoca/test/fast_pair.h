/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer and a producer on two sides of one connection, for the tests of the fast path. */
#ifndef DMA_COPY_FAST_PAIR_H
#define DMA_COPY_FAST_PAIR_H

#include "fast_end.h"

/* The host consumes and the DPU produces; both directions run the same code. */
struct pair {
	struct end client, server;
	struct fast_end consumer, producer;
};

/* Shared by all tests. */
extern struct pair pair;

/* Progresses all four ends until none moves. */
void settle_pair(void);

/* All running. */
void pair_open(void);
void pair_close(void);

#endif
