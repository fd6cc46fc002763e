/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer and a producer on two sides of one connection, as the tests of the fast path use them. */
#ifndef DMA_COPY_FAST_PAIR_H
#define DMA_COPY_FAST_PAIR_H

#include "fast_end.h"

/* The host consumes and the DPU produces; the other way round is the same code. */
struct pair {
	struct end client, server;
	struct fast_end consumer, producer;
};

/* The one that all tests use. */
extern struct pair pair;

/* Progresses all four until nothing moves. */
void settle_pair(void);

/* All running. */
void pair_open(void);
void pair_close(void);

#endif
