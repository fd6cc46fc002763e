/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a completion context: elements arrive, are polled by code of the DPA, and are acked by it, which frees
 * them, oldest first. The context itself has the elements; here are only their numbers. All functions are called with
 * the lock held.
 */
#ifndef DMA_COPY_SOFT_DPA_RING_H
#define DMA_COPY_SOFT_DPA_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

struct soft_ring {
	struct doca_dpa_thread *thread;  /* which an arrival activates; may be NULL */
	uint32_t size;                   /* a power of two */
	bool armed;                      /* the next arrival activates the thread */
	uint32_t arrived, polled, acked; /* since the start, modulo 2^32 */
};

/* Empties the queue and arms it, so that the first arrival activates the thread without a request. */
void soft_ring_start(struct soft_ring *ring, uint32_t size, struct doca_dpa_thread *thread);

bool soft_ring_is_full(const struct soft_ring *ring);

/* Adds an element and returns its place. The queue must not be full. */
uint32_t soft_ring_arrive(struct soft_ring *ring);

/* Returns the handle of the next element, for a context with this handle; 0: there is none. */
uint64_t soft_ring_poll(struct soft_ring *ring, uint32_t context);

/* Returns the handle of the context of an element. */
uint32_t soft_ring_context(uint64_t element);

/* Sets the place of an element. False: it has not been polled, or has been acked. */
bool soft_ring_place(const struct soft_ring *ring, uint64_t element, uint32_t *place);

/* Returns the place of the oldest element and frees it. There must be one that has been polled. */
uint32_t soft_ring_ack(struct soft_ring *ring);

/* Returns how many elements can be acked. */
uint32_t soft_ring_unacked(const struct soft_ring *ring);

/* Arms the queue. If elements have not been polled, the thread is activated at once, so that none is forgotten. */
void soft_ring_arm(struct soft_ring *ring);

#endif
